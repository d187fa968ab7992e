//! The quotas of an account on what it stores: numbers of resources, and bytes.
//!
//! Numbers of tables, queues, containers and streams are exact: [`StorageQuotas::room`] counts them before one is
//! created, one creation of an account at a time. Bytes and blobs are too many to count for each call: their usage is
//! what a pass over the store measured last, and what calls have written since.

mod usage;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter, MeterProvider as _, noop::NoopMeterProvider},
};
use tokio::sync::OwnedMutexGuard;

use self::usage::AccountUsage;
pub use self::usage::{MeasuredUsage, QuotaUsage, StorageOwner};
use super::{LiveQuotas, Quota, Quotas};
use crate::semconv;
use trestle_model::fault::{Fault, OverQuota, Reason};
use trestle_model::name::AccountName;

/// How often usage is measured at most, and when a call should be retried that is over a quota by what was written
/// since the last measurement.
pub const MEASURE_EVERY: Duration = Duration::from_secs(10);
/// The quotas whose usage is not counted for each call.
const METERED: [StorageLimit; 2] = [StorageLimit::StoredBytes, StorageLimit::Blobs];
/// Rows that are counted beyond a quota, so that an error has the usage of an account that is over a lowered quota.
const COUNTED_BEYOND: u64 = 1000;

/// A quota on what an account stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StorageLimit {
    /// Bytes of tables, queues, blobs and log records.
    StoredBytes,
    /// Tables.
    Tables,
    /// Queues.
    Queues,
    /// Containers of blobs.
    Containers,
    /// Blobs.
    Blobs,
    /// Streams of log records.
    Streams,
}

impl StorageLimit {
    /// How many exist.
    pub const COUNT: usize = 6;
    /// Each, in the order of its number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::StoredBytes,
        Self::Tables,
        Self::Queues,
        Self::Containers,
        Self::Blobs,
        Self::Streams,
    ];

    /// The key of its setting, without the section.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::StoredBytes => "account_stored_bytes_max",
            Self::Tables => "account_tables_max",
            Self::Queues => "account_queues_max",
            Self::Containers => "account_containers_max",
            Self::Blobs => "account_blobs_max",
            Self::Streams => "account_streams_max",
        }
    }

    /// As in the labels of metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::StoredBytes => "account_stored_bytes",
            Self::Tables => "account_tables",
            Self::Queues => "account_queues",
            Self::Containers => "account_containers",
            Self::Blobs => "account_blobs",
            Self::Streams => "account_streams",
        }
    }

    /// What it counts.
    fn unit(self) -> &'static str {
        match self {
            Self::StoredBytes => "stored bytes",
            Self::Tables => "tables",
            Self::Queues => "queues",
            Self::Containers => "containers",
            Self::Blobs => "blobs",
            Self::Streams => "streams",
        }
    }

    fn over(self, account: &AccountName, usage: u64, max: u64) -> OverQuota {
        let (unit, setting) = (self.unit(), self.setting());
        let description = format!("at most {max} {unit} (quotas.{setting}): usage=`{usage}`");
        OverQuota { subject: format!("account `{account}`"), description }
    }

    /// The error of an account that has used all of it.
    fn exceeded(self, account: &AccountName, usage: u64, max: u64) -> Fault {
        let quota = self.over(account, usage, max);
        let message = format!("over a quota: {}: {}", quota.subject, quota.description);
        Fault { quota: Some(quota), ..Fault::new(Reason::StorageQuotaExceeded, message) }
    }

    /// The error of an account that has used all of it by what was written since the last measurement: less may be
    /// stored, where that replaced what was stored before.
    fn maybe_exceeded(self, account: &AccountName, usage: u64, max: u64) -> Fault {
        let OverQuota { subject, description } = self.over(account, usage, max);
        let description = format!("{description}, measured again in some seconds");
        Fault::over_quota(OverQuota { subject, description }, MEASURE_EVERY)
    }
}

/// The most that an account may store. 0: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageMax([u64; StorageLimit::COUNT]);

impl StorageMax {
    /// Those of each limit.
    #[must_use]
    pub fn new(of: impl Fn(StorageLimit) -> u64) -> Self {
        Self(StorageLimit::ALL.map(of))
    }

    /// That of one limit; none: no limit.
    #[must_use]
    pub fn of(&self, limit: StorageLimit) -> Option<u64> {
        self.0.get(limit as usize).copied().filter(|max| *max > 0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.0.iter().all(|max| *max == 0)
    }
}

/// The quotas of every account on what it stores in this process, and the usage. Clones share it.
#[derive(Clone)]
pub struct StorageQuotas(Arc<SharedStorageQuotas>);

struct SharedStorageQuotas {
    quotas: LiveQuotas,
    usage: Mutex<HashMap<AccountName, Arc<AccountUsage>>>,
    /// Counts calls over a quota.
    rejected: Counter<u64>,
}

/// No account has a quota.
impl Default for StorageQuotas {
    fn default() -> Self {
        Self::without_metrics(StorageMax::default())
    }
}

/// Prints no accounts.
impl std::fmt::Debug for StorageQuotas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageQuotas").finish_non_exhaustive()
    }
}

impl StorageQuotas {
    /// Nothing was measured yet. Calls over a quota are counted on `meter`.
    #[must_use]
    pub fn new(quotas: LiveQuotas, meter: &Meter) -> Self {
        let rejected = semconv::throttled(meter);
        Self(Arc::new(SharedStorageQuotas { quotas, usage: Mutex::default(), rejected }))
    }

    /// Those of every account, without metrics: of services that are built alone.
    #[must_use]
    pub fn without_metrics(storage: StorageMax) -> Self {
        let default = Quota { storage, ..Quota::default() };
        let quotas = LiveQuotas::new(Quotas { default, ..Quotas::default() });
        Self::new(quotas, &NoopMeterProvider::new().meter("quotas"))
    }

    /// Whether an account has a quota of this kind.
    #[must_use]
    pub fn is_on(&self, limit: StorageLimit) -> bool {
        self.0.quotas.has_storage(limit)
    }

    /// Whether what accounts store in a service has to be measured.
    fn measures(&self, owner: StorageOwner) -> bool {
        let mut limits = owner.resources().iter().chain(&[StorageLimit::StoredBytes]);
        limits.any(|limit| self.is_on(*limit))
    }

    /// Whether an account has room for one more resource. Where it has a quota, no other one of this kind is created
    /// for it before the result is dropped.
    ///
    /// # Errors
    /// `count` failed, which counts up to a maximum.
    pub async fn room<E, C>(
        &self,
        account: &AccountName,
        limit: StorageLimit,
        count: impl FnOnce(usize) -> C,
    ) -> Result<CreationRoom, E>
    where
        C: Future<Output = Result<usize, E>>,
    {
        if !self.is_on(limit) {
            return Ok(CreationRoom::default());
        }
        let Some(max) = self.max(account, limit) else { return Ok(CreationRoom::default()) };
        let usage = self.of(account);
        let creating = usage.creating(limit).lock_owned().await;
        let counted_max = usize::try_from(max.saturating_add(COUNTED_BEYOND)).unwrap_or(usize::MAX);
        let counted = u64::try_from(count(counted_max).await?).unwrap_or(u64::MAX);
        usage.counted(limit, counted);
        let full = (counted >= max).then(|| {
            let fault = limit.exceeded(account, counted, max);
            FullQuota { fault, limit, quotas: self.clone() }
        });
        Ok(CreationRoom { full, _creating: Some(creating) })
    }

    /// Where what a call of an account writes to a service counts; none where no quota needs it.
    #[must_use]
    pub fn meter(&self, owner: StorageOwner, account: &AccountName) -> Option<StorageMeter> {
        if !self.has_meters() {
            return None;
        }
        let max = self.0.quotas.of(account).storage;
        METERED.into_iter().any(|limit| max.of(limit).is_some()).then(|| {
            let (quotas, usage, account) = (self.clone(), self.of(account), account.clone());
            StorageMeter { quotas, usage, account, owner }
        })
    }

    /// Whether an account may write more bytes.
    ///
    /// # Errors
    /// It has used its quota.
    pub fn check_bytes(&self, owner: StorageOwner, account: &AccountName) -> Result<(), Fault> {
        self.meter(owner, account).map_or(Ok(()), |meter| meter.check(StorageLimit::StoredBytes))
    }

    /// Runs a pass over what accounts store in a service, if an account has a quota on it.
    ///
    /// # Errors
    /// The pass failed; the usage is as before.
    pub async fn measure<E>(
        &self,
        owner: StorageOwner,
        pass: impl Future<Output = Result<HashMap<AccountName, MeasuredUsage>, E>>,
    ) -> Result<(), E> {
        if !self.measures(owner) {
            return Ok(());
        }
        self.accounts().iter().for_each(|(_, usage)| usage.begin(owner));
        let measured = pass.await?;
        measured.keys().for_each(|account| drop(self.of(account)));
        for (account, usage) in self.accounts() {
            usage.measured(owner, &measured.get(&account).copied().unwrap_or_default());
        }
        Ok(())
    }

    /// The quotas that an account has on bytes and on the resources of these services, with their usage, for a
    /// response.
    #[must_use]
    pub fn report<T: From<QuotaUsage>>(
        &self,
        owners: &[StorageOwner],
        account: &AccountName,
    ) -> Vec<T> {
        let is_of = |usage: &QuotaUsage| {
            StorageOwner::of(usage.limit).is_none_or(|owner| owners.contains(&owner))
        };
        self.usage(account).into_iter().filter(is_of).map(T::from).collect()
    }

    /// Whether an account has a quota that [`StorageQuotas::meter`] is for.
    #[must_use]
    pub fn has_meters(&self) -> bool {
        METERED.into_iter().any(|limit| self.is_on(limit))
    }

    /// The quotas that an account has, with their usage.
    #[must_use]
    pub fn usage(&self, account: &AccountName) -> Vec<QuotaUsage> {
        let (max, usage) = (self.0.quotas.of(account).storage, self.of(account));
        let of = |limit| {
            let (used, max) = (usage.of(limit).total(), max.of(limit)?);
            Some(QuotaUsage { limit, used, max })
        };
        StorageLimit::ALL.into_iter().filter_map(of).collect()
    }

    /// The same of every account that stores something, by name.
    #[must_use]
    pub fn every_usage(&self) -> Vec<(AccountName, Vec<QuotaUsage>)> {
        if !StorageLimit::ALL.into_iter().any(|limit| self.is_on(limit)) {
            return Vec::new();
        }
        let mut accounts: Vec<_> = self.accounts().into_iter().map(|(name, _)| name).collect();
        accounts.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        accounts.into_iter().map(|name| (name.clone(), self.usage(&name))).collect()
    }

    fn accounts(&self) -> Vec<(AccountName, Arc<AccountUsage>)> {
        let usage = self.0.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.iter().map(|(name, usage)| (name.clone(), Arc::clone(usage))).collect()
    }

    fn count_rejected(&self, limit: StorageLimit) {
        self.0.rejected.add(1, &[KeyValue::new(semconv::THROTTLE_SCOPE, limit.label())]);
    }

    fn max(&self, account: &AccountName, limit: StorageLimit) -> Option<u64> {
        self.0.quotas.of(account).storage.of(limit)
    }

    fn of(&self, account: &AccountName) -> Arc<AccountUsage> {
        let mut usage = self.0.usage.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(usage.entry(account.clone()).or_default())
    }
}

/// Whether one more resource may be created.
#[derive(Default)]
pub struct CreationRoom {
    full: Option<FullQuota>,
    _creating: Option<OwnedMutexGuard<()>>,
}

/// A quota that is used.
#[derive(Clone)]
pub struct FullQuota {
    fault: Fault,
    limit: StorageLimit,
    quotas: StorageQuotas,
}

impl CreationRoom {
    /// The quota that is used, if it is: for a decision that creates the resource unless it exists.
    #[must_use]
    pub fn full(&self) -> Option<FullQuota> {
        self.full.clone()
    }
}

impl FullQuota {
    /// The error of a call that would create one more. Counts it.
    #[must_use]
    pub fn rejected(&self) -> Fault {
        self.quotas.count_rejected(self.limit);
        self.fault.clone()
    }
}

/// Where what a call writes counts.
#[derive(Clone)]
pub struct StorageMeter {
    quotas: StorageQuotas,
    usage: Arc<AccountUsage>,
    account: AccountName,
    owner: StorageOwner,
}

impl StorageMeter {
    /// Whether the account may write more.
    ///
    /// # Errors
    /// It has used its quota: with a delay where that is so only by what was written since the last measurement.
    pub fn check(&self, limit: StorageLimit) -> Result<(), Fault> {
        let Some(max) = self.quotas.max(&self.account, limit) else { return Ok(()) };
        let usage = self.usage.of(limit);
        if usage.total() < max {
            return Ok(());
        }
        self.quotas.count_rejected(limit);
        Err(match usage.measured >= max {
            true => limit.exceeded(&self.account, usage.total(), max),
            false => limit.maybe_exceeded(&self.account, usage.total(), max),
        })
    }

    /// Counts what was written.
    pub fn add(&self, limit: StorageLimit, amount: u64) {
        self.usage.add(self.owner, limit, amount);
    }
}

#[cfg(test)]
mod tests;
