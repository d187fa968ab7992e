//! The tokens of one call.

use std::{hash::BuildHasher as _, time::Duration};

use opentelemetry::KeyValue;
use trestle_model::fault::quoted;
use trestle_rpc::quota::Usage;
use trestle_rpc::semconv;

use super::{
    HotPartition, QuotaExceeded, TableRef, Throttle,
    charged::{ChargedBuckets, LimitExceeded, LimitScope},
};
use crate::keys;

/// Most tokens that a scan reserves ahead of its need, to touch the buckets less often.
const AHEAD_MAX: u64 = 64;
/// A scan borrows at its start one in so many of the tokens of a second where fewer are left, so that a partition at
/// its limit is read in pages that are worth their call.
const BORROWED_SHARE: u64 = 10;

/// Reserves tokens for the work of a call, entity by entity. When dropped, unused ones are refunded.
pub(crate) struct TokenReservation<'a> {
    throttle: &'a Throttle,
    table: TableRef<'a>,
    charged: ChargedBuckets,
    /// Prefix of the keys of the present partition; empty before the first.
    partition: Vec<u8>,
    /// Reserved and not used.
    ahead: u64,
    /// Used in this partition.
    used: u64,
    /// For a scan.
    scan: Option<ScanState>,
}

/// The part of a reservation that only scans have.
struct ScanState {
    /// Most entities that it needs.
    requested: u64,
    /// Whether it reserved anything.
    started: bool,
}

impl<'a> TokenReservation<'a> {
    /// For writes and point reads, which reserve exactly what they need.
    pub(crate) fn for_points(throttle: &'a Throttle, table: TableRef<'a>) -> Self {
        let charged = throttle.charged(table.account);
        Self { throttle, table, charged, partition: Vec::new(), ahead: 0, used: 0, scan: None }
    }

    /// For a scan, whose cost depends on what it finds: at most so many entities.
    pub(crate) fn for_scan(throttle: &'a Throttle, table: TableRef<'a>, requested: usize) -> Self {
        let mut reservation = Self::for_points(throttle, table);
        reservation.scan = Some(ScanState { requested: requested as u64, started: false });
        reservation
    }

    /// Whether the caller is limited.
    pub(crate) fn is_limited(&self) -> bool {
        !self.charged.quota.is_unlimited()
    }

    /// Checks, before anything is read, that one token is left for a scan from `start` on.
    ///
    /// # Errors
    /// When none is left.
    pub(crate) fn check(&mut self, start: &[u8]) -> Result<(), QuotaExceeded> {
        if !self.is_limited() {
            return Ok(());
        }
        if let Some(partition) = keys::partition_of(start) {
            self.enter_partition(partition);
            self.check_limit(LimitScope::Partition)?;
        }
        self.check_limit(LimitScope::Account)
    }

    /// Reserves tokens for work on the entity with this key.
    ///
    /// # Errors
    /// When a limit would be exceeded. Nothing was reserved.
    pub(crate) fn reserve(&mut self, key: &[u8], tokens: u64) -> Result<(), QuotaExceeded> {
        self.enter_partition_of(key);
        if self.is_limited() {
            self.fill(tokens).map_err(|exceeded| self.reject(&exceeded))?;
            self.ahead -= tokens;
        }
        self.used += tokens;
        Ok(())
    }

    /// Charges tokens for work that was done on the entity with this key, whether they are available or not.
    pub(crate) fn debit(&mut self, key: &[u8], tokens: u64) {
        self.enter_partition_of(key);
        if self.is_limited() && tokens > 0 {
            self.charged.debit(&self.throttle.buckets, tokens, self.throttle.now());
        }
        self.used += tokens;
    }

    /// Reserves until so many tokens are ahead.
    fn fill(&mut self, tokens: u64) -> Result<(), LimitExceeded> {
        let Some(missing) = tokens.checked_sub(self.ahead).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let (buckets, now) = (&self.throttle.buckets, self.throttle.now());
        if let Some(scan) = &mut self.scan {
            if !scan.started {
                scan.started = true;
                let worth = self.charged.rates().map(|rate| rate.per_second() / BORROWED_SHARE);
                let worth = worth.min().unwrap_or_default().min(scan.requested);
                if self.charged.is_low(buckets, worth, now) {
                    let borrowed = missing.max(worth);
                    self.charged.reserve(buckets, borrowed, true, now)?;
                    self.ahead += borrowed;
                    return Ok(());
                }
            }
            // The more of a partition was read, the more of it is likely to follow.
            let more = missing + self.used.min(AHEAD_MAX);
            let fits = self.charged.rates().all(|rate| more <= rate.burst());
            let is_worth_it = more > missing && fits;
            if is_worth_it && self.charged.reserve(buckets, more, false, now).is_ok() {
                self.ahead += more;
                return Ok(());
            }
        }
        self.charged.reserve(buckets, missing, false, now)?;
        self.ahead += missing;
        Ok(())
    }

    /// Enters the partition of an entity, unless it is the present one.
    fn enter_partition_of(&mut self, key: &[u8]) {
        if self.partition.is_empty() || !key.starts_with(&self.partition) {
            self.enter_partition(keys::partition_of(key).unwrap_or(key));
        }
    }

    fn enter_partition(&mut self, prefix: &[u8]) {
        self.finish_partition();
        self.partition.clear();
        self.partition.extend_from_slice(prefix);
        self.charged.partition = self.throttle.hasher.hash_one(prefix);
    }

    /// Refunds unused tokens, and counts the used ones for the heavy hitters.
    fn finish_partition(&mut self) {
        if self.ahead > 0 {
            self.charged.refund(&self.throttle.buckets, self.ahead);
        }
        if self.used > 0 {
            self.count(Usage::Used(self.used), self.throttle.now());
        }
        (self.ahead, self.used) = (0, 0);
    }

    fn count(&self, usage: Usage, now: Duration) {
        let hash = self.charged.partition;
        let name = || HotPartition {
            account: self.table.account.clone(),
            table: self.table.table.as_str().to_owned(),
            partition_key: keys::partition_key(&self.partition).unwrap_or_default(),
            hash,
        };
        self.throttle.heavy_hitters.record(hash, usage, now, name);
    }

    /// Fails when no token is left under this limit.
    fn check_limit(&self, scope: LimitScope) -> Result<(), QuotaExceeded> {
        let limit = self.charged.wait(&self.throttle.buckets, scope, self.throttle.now());
        match limit.filter(|limit| !limit.wait.is_zero()) {
            Some(exceeded) => Err(self.reject(&exceeded)),
            None => Ok(()),
        }
    }

    fn reject(&self, exceeded: &LimitExceeded) -> QuotaExceeded {
        let labels = [KeyValue::new(semconv::THROTTLE_SCOPE, exceeded.scope.label())];
        self.throttle.throttled.add(1, &labels);
        if !self.partition.is_empty() {
            self.count(Usage::Rejected, self.throttle.now());
        }
        let subject = match exceeded.scope {
            LimitScope::Account => format!("account `{}`", self.table.account),
            LimitScope::Partition => {
                let key = keys::partition_key(&self.partition).unwrap_or_default();
                format!("partition `{}` of table `{}`", quoted(&key), self.table.table)
            }
        };
        QuotaExceeded { subject, rate: exceeded.rate, wait: exceeded.wait }
    }
}

impl Drop for TokenReservation<'_> {
    fn drop(&mut self) {
        self.finish_partition();
    }
}
