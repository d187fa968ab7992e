//! Holds accounts and partitions to their limits, and watches which partitions are used most.
//!
//! Every entity that is written or examined pays its weight in tokens, see
//! [`trestle_service::quota`]: writes before they happen, reads while they go. Only who asks for
//! too much waits; others never notice.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

#[cfg(test)]
use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter},
};
use tokio::time::Instant;
use trestle_service::{
    fault::{self, Fault, quoted},
    name::{AccountName, TableName},
    quota::{Hot, HotKey, KeyedBuckets, LiveQuotas, Quota, Rate, Use},
    semconv,
};

use crate::keys;

/// Ranks that a metric tells of the hottest partitions, which bounds its label.
const RANKS: usize = 10;
/// Most tokens that a scan takes ahead of its need, to come back for more less often.
const AHEAD_MAX: u64 = 64;
/// One in so many of the tokens of a second: what a scan borrows at its start where less is there,
/// so that a partition at its limit is read in pages that are worth their call.
const BORROWED_SHARE: u64 = 10;

/// The limits of every account, and what was used of them.
pub(crate) struct Throttle {
    quotas: LiveQuotas,
    buckets: KeyedBuckets,
    hot: Hot<HotPartition>,
    /// Keyed by the process, so that no client can aim at the bucket of another.
    hasher: RandomState,
    started: Instant,
    over: Counter<u64>,
}

/// Whose work it is, and in which table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The account.
    pub(crate) account: &'a AccountName,
    /// The table.
    pub(crate) table: &'a TableName,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotPartition {
    /// The account.
    pub account: AccountName,
    /// The table, as a client spelled it.
    pub table: String,
    /// The partition key.
    pub partition_key: String,
    /// A number that stands for the partition in this process, and tells nothing of it.
    pub hash: u64,
}

/// A limit that would be passed.
#[derive(Debug, Clone)]
pub struct OverQuota {
    /// What has the limit.
    pub(crate) subject: String,
    rate: Rate,
    /// How long until there is room, if nobody else takes it.
    pub(crate) wait: Duration,
}

impl From<OverQuota> for Fault {
    fn from(over: OverQuota) -> Self {
        let (per_second, burst) = (over.rate.per_second(), over.rate.burst());
        let description = format!(
            "{per_second} entities of 1 KiB a second, {burst} at once; examined ones count too"
        );
        let quota = fault::OverQuota { subject: over.subject, description };
        Self::over_quota(quota, over.wait)
    }
}

/// Tells how hot the hottest partitions are whenever metrics are asked for; a rank that no partition
/// has is 0. Holds the throttle weakly: metrics keep no service alive.
pub(crate) fn observe(throttle: &Arc<Throttle>, meter: &Meter) {
    let (metric, throttle) = (semconv::HOT_PARTITIONS, Arc::downgrade(throttle));
    let gauge = meter.f64_observable_gauge(metric.name).with_unit(metric.unit);
    let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
        let Some(throttle) = throttle.upgrade() else { return };
        let hottest = throttle.hottest(None, RANKS);
        let rates = hottest.iter().map(|hot| hot.per_second).chain(std::iter::repeat(0.0));
        for (rank, rate) in (1_i64..).zip(rates).take(RANKS) {
            observer.observe(rate, &[KeyValue::new(semconv::PARTITION_RANK, rank)]);
        }
    });
    let _ = gauge.build();
}

impl Throttle {
    /// Limits nothing and counts nowhere.
    #[cfg(test)]
    pub(crate) fn open() -> Self {
        let meter = NoopMeterProvider::new().meter("tests");
        Self::new(LiveQuotas::default(), &meter)
    }

    /// Nothing was used yet.
    pub(crate) fn new(quotas: LiveQuotas, meter: &Meter) -> Self {
        Self {
            quotas,
            buckets: KeyedBuckets::default(),
            hot: Hot::default(),
            hasher: RandomState::new(),
            started: Instant::now(),
            over: semconv::throttled(meter),
        }
    }

    /// The partitions of an account, or of all, that were used most in the last seconds.
    pub(crate) fn hottest(
        &self,
        account: Option<&AccountName>,
        count: usize,
    ) -> Vec<HotKey<HotPartition>> {
        let wanted =
            |partition: &HotPartition| account.is_none_or(|account| partition.account == *account);
        self.hot.hottest(count, self.now(), wanted)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether a bucket has less than so many tokens, and is not full.
    fn is_low(&self, work: &Work<'_>, tokens: u64) -> bool {
        let now = self.now();
        let low = |key, rate: Option<Rate>| {
            rate.is_some_and(|rate| !self.buckets.wait(key, rate, tokens, now).is_zero())
        };
        low(work.partition.hash, work.quota.partition) || low(work.account, work.quota.account)
    }

    /// Takes tokens of a partition and of its account, from both or from none.
    fn take(&self, work: &Work<'_>, tokens: u64, borrow: bool) -> Result<(), Refused> {
        let now = self.now();
        let take = |key, rate| match borrow {
            true => self.buckets.borrow(key, rate, tokens, now),
            false => self.buckets.take(key, rate, tokens, now),
        };
        if let Some(rate) = work.quota.partition
            && let Err(wait) = take(work.partition.hash, rate)
        {
            // The whole wait, lest the client comes back to be told of the other limit.
            let account = work.quota.account.map(|rate| {
                self.buckets.wait(work.account, rate, if borrow { 1 } else { tokens }, now)
            });
            return Err(Refused {
                account: false,
                rate,
                wait: wait.max(account.unwrap_or_default()),
            });
        }
        if let Some(rate) = work.quota.account
            && let Err(wait) = take(work.account, rate)
        {
            if let Some(rate) = work.quota.partition {
                self.buckets.give_back(work.partition.hash, rate, tokens);
            }
            return Err(Refused { account: true, rate, wait });
        }
        Ok(())
    }
}

/// A limit that would be passed, not told yet.
struct Refused {
    /// Whether it is that of the account.
    account: bool,
    rate: Rate,
    wait: Duration,
}

/// What pays, and the partition that it pays for.
struct Work<'a> {
    place: Place<'a>,
    quota: Quota,
    /// The key of the bucket of the account.
    account: u64,
    partition: Partition,
}

#[derive(Default)]
struct Partition {
    /// What the keys of its entities begin with; empty before the first.
    prefix: Vec<u8>,
    /// The key of its bucket.
    hash: u64,
}

/// Pays for the work of a call, entity by entity. When dropped, what was not used is given back.
pub(crate) struct Toll<'a> {
    throttle: &'a Throttle,
    work: Work<'a>,
    /// Paid for and not used.
    ahead: u64,
    /// Used in this partition.
    used: u64,
    /// Whether to take more than is needed.
    scans: bool,
    /// Most entities that a scan needs.
    wanted: u64,
    /// Whether a scan paid for anything.
    begun: bool,
}

impl<'a> Toll<'a> {
    /// For writes, which pay what they take.
    pub(crate) fn of_writes(throttle: &'a Throttle, place: Place<'a>) -> Self {
        let quota = throttle.quotas.of(place.account);
        let account = match quota.account {
            Some(_) => throttle.hasher.hash_one(("account", place.account)),
            None => 0,
        };
        let work = Work { place, quota, account, partition: Partition::default() };
        Self { throttle, work, ahead: 0, used: 0, scans: false, wanted: 0, begun: false }
    }

    /// For a scan, which does not know what it will need: at most so many entities.
    pub(crate) fn of_scan(throttle: &'a Throttle, place: Place<'a>, wanted: usize) -> Self {
        let mut toll = Self::of_writes(throttle, place);
        (toll.scans, toll.wanted) = (true, wanted as u64);
        toll
    }

    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        !self.work.quota.is_unlimited()
    }

    /// Asks before anything is read whether there is anything left for a scan from `start` on.
    ///
    /// # Errors
    /// When there is nothing.
    pub(crate) fn begin(&mut self, start: &[u8]) -> Result<(), OverQuota> {
        if !self.is_limited() {
            return Ok(());
        }
        let Throttle { buckets, .. } = self.throttle;
        let now = self.throttle.now();
        if let Some(partition) = keys::partition_of(start) {
            self.enter(partition);
            if let Some(rate) = self.work.quota.partition {
                let wait = buckets.wait(self.work.partition.hash, rate, 1, now);
                self.open(&Refused { account: false, rate, wait })?;
            }
        }
        match self.work.quota.account {
            None => Ok(()),
            Some(rate) => {
                let wait = buckets.wait(self.work.account, rate, 1, now);
                self.open(&Refused { account: true, rate, wait })
            }
        }
    }

    /// Pays for work on the entity with this key.
    ///
    /// # Errors
    /// When a limit would be passed. Nothing was paid.
    pub(crate) fn pay(&mut self, key: &[u8], tokens: u64) -> Result<(), OverQuota> {
        self.approach(key);
        if self.is_limited() {
            self.afford(tokens).map_err(|refused| self.refuse(&refused))?;
            self.ahead -= tokens;
        }
        self.used += tokens;
        Ok(())
    }

    /// Pays for work that was done on the entity with this key, whether there is room or not.
    pub(crate) fn owe(&mut self, key: &[u8], tokens: u64) {
        self.approach(key);
        let (buckets, work) = (&self.throttle.buckets, &self.work);
        if self.is_limited() && tokens > 0 {
            let now = self.throttle.now();
            if let Some(rate) = work.quota.partition {
                buckets.owe(work.partition.hash, rate, tokens, now);
            }
            if let Some(rate) = work.quota.account {
                buckets.owe(work.account, rate, tokens, now);
            }
        }
        self.used += tokens;
    }

    /// Takes what is missing until so many tokens are ahead.
    fn afford(&mut self, tokens: u64) -> Result<(), Refused> {
        let Some(missing) = tokens.checked_sub(self.ahead).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let rates = [self.work.quota.partition, self.work.quota.account];
        let rates = || rates.into_iter().flatten();
        if self.scans && !self.begun {
            self.begun = true;
            let worth = rates().map(|rate| rate.per_second() / BORROWED_SHARE).min();
            let worth = worth.unwrap_or_default().min(self.wanted);
            if self.throttle.is_low(&self.work, worth) {
                let borrowed = missing.max(worth);
                self.throttle.take(&self.work, borrowed, true)?;
                self.ahead += borrowed;
                return Ok(());
            }
        }
        if self.scans {
            // The more of a partition was read, the more of it is likely to follow.
            let more = missing + self.used.min(AHEAD_MAX);
            let fits = rates().all(|rate| more <= rate.burst());
            if more > missing && fits && self.throttle.take(&self.work, more, false).is_ok() {
                self.ahead += more;
                return Ok(());
            }
        }
        self.throttle.take(&self.work, missing, false)?;
        self.ahead += missing;
        Ok(())
    }

    /// Enters the partition of an entity, unless it is there.
    fn approach(&mut self, key: &[u8]) {
        let prefix = &self.work.partition.prefix;
        if prefix.is_empty() || !key.starts_with(prefix) {
            self.enter(keys::partition_of(key).unwrap_or(key));
        }
    }

    fn enter(&mut self, prefix: &[u8]) {
        self.settle();
        let partition = &mut self.work.partition;
        partition.prefix.clear();
        partition.prefix.extend_from_slice(prefix);
        partition.hash = self.throttle.hasher.hash_one(prefix);
    }

    /// Ends the work on a partition.
    fn settle(&mut self) {
        let (buckets, work) = (&self.throttle.buckets, &self.work);
        if self.ahead > 0 {
            if let Some(rate) = work.quota.partition {
                buckets.give_back(work.partition.hash, rate, self.ahead);
            }
            if let Some(rate) = work.quota.account {
                buckets.give_back(work.account, rate, self.ahead);
            }
        }
        if self.used > 0 {
            self.note(Use::Taken(self.used), self.throttle.now());
        }
        (self.ahead, self.used) = (0, 0);
    }

    fn note(&self, usage: Use, now: Duration) {
        let Work { place, partition, .. } = &self.work;
        let name = || HotPartition {
            account: place.account.clone(),
            table: place.table.as_str().to_owned(),
            partition_key: keys::partition_key(&partition.prefix).unwrap_or_default(),
            hash: partition.hash,
        };
        self.throttle.hot.note(partition.hash, usage, now, name);
    }

    /// The failure, unless there is no wait.
    fn open(&self, limit: &Refused) -> Result<(), OverQuota> {
        if limit.wait.is_zero() { Ok(()) } else { Err(self.refuse(limit)) }
    }

    fn refuse(&self, refused: &Refused) -> OverQuota {
        let Work { place, partition, .. } = &self.work;
        let scope = if refused.account { "account" } else { "partition" };
        self.throttle.over.add(1, &[KeyValue::new(semconv::THROTTLE_SCOPE, scope)]);
        if !partition.prefix.is_empty() {
            self.note(Use::Refused, self.throttle.now());
        }
        let subject = if refused.account {
            format!("account `{}`", place.account)
        } else {
            let key = keys::partition_key(&partition.prefix).unwrap_or_default();
            format!("partition `{}` of table `{}`", quoted(&key), place.table)
        };
        OverQuota { subject, rate: refused.rate, wait: refused.wait }
    }
}

impl Drop for Toll<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}
