//! What accounts store, as far as it is known: measured last, and written since.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use tokio::sync::Mutex;

use super::StorageLimit;

/// A service that stores data of accounts, and measures it by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageOwner {
    /// Tables and entities.
    Tables,
    /// Queues and messages.
    Queues,
    /// Containers and blobs.
    Blobs,
    /// Streams of log records.
    Logs,
}

impl StorageOwner {
    const COUNT: usize = 4;

    /// The resources that it counts.
    #[must_use]
    pub fn resources(self) -> &'static [StorageLimit] {
        match self {
            Self::Tables => &[StorageLimit::Tables],
            Self::Queues => &[StorageLimit::Queues],
            Self::Blobs => &[StorageLimit::Containers, StorageLimit::Blobs],
            Self::Logs => &[StorageLimit::Streams],
        }
    }

    /// Whose resources a limit is on; none for bytes, which every service has.
    pub(super) fn of(limit: StorageLimit) -> Option<Self> {
        match limit {
            StorageLimit::StoredBytes => None,
            StorageLimit::Tables => Some(Self::Tables),
            StorageLimit::Queues => Some(Self::Queues),
            StorageLimit::Containers | StorageLimit::Blobs => Some(Self::Blobs),
            StorageLimit::Streams => Some(Self::Logs),
        }
    }
}

/// What an account stores in one service, as one pass measured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeasuredUsage([u64; StorageLimit::COUNT]);

impl MeasuredUsage {
    /// Adds a part.
    pub fn add(&mut self, limit: StorageLimit, amount: u64) {
        if let Some(sum) = self.0.get_mut(limit as usize) {
            *sum = sum.saturating_add(amount);
        }
    }

    /// The sum of what a limit is on.
    #[must_use]
    pub fn of(&self, limit: StorageLimit) -> u64 {
        self.0.get(limit as usize).copied().unwrap_or_default()
    }
}

/// The usage of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Which.
    pub limit: StorageLimit,
    /// What is used of it: measured at most some seconds ago, and written since.
    pub used: u64,
    /// The quota.
    pub max: u64,
}

impl From<QuotaUsage> for trestle_proto::service::v1::QuotaUsage {
    fn from(QuotaUsage { limit, used, max }: QuotaUsage) -> Self {
        Self { quota: limit.setting().to_owned(), usage: used, limit: max }
    }
}

/// The usage of an account.
#[derive(Default)]
pub(super) struct AccountUsage {
    by_owner: [[UsagePart; StorageLimit::COUNT]; StorageOwner::COUNT],
    /// Held while a resource is created.
    creating: [Arc<Mutex<()>>; StorageLimit::COUNT],
}

/// A part of a usage, of one service.
#[derive(Default)]
struct UsagePart {
    measured: AtomicU64,
    /// Written before the pass that is in progress began, and not measured by a pass before it.
    before: AtomicU64,
    /// Written since.
    since: AtomicU64,
}

/// The usage of a quota as a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UsageSum {
    pub(super) measured: u64,
    /// Written since: less may be stored, where it replaced what was stored before.
    pub(super) written: u64,
}

impl UsageSum {
    pub(super) fn total(self) -> u64 {
        self.measured.saturating_add(self.written)
    }
}

impl AccountUsage {
    pub(super) fn creating(&self, limit: StorageLimit) -> Arc<Mutex<()>> {
        self.creating.get(limit as usize).map(Arc::clone).unwrap_or_default()
    }

    pub(super) fn add(&self, owner: StorageOwner, limit: StorageLimit, amount: u64) {
        if let Some(part) = self.part(owner, limit) {
            part.since.fetch_add(amount, Relaxed);
        }
    }

    pub(super) fn of(&self, limit: StorageLimit) -> UsageSum {
        let (mut measured, mut written) = (0_u64, 0_u64);
        for part in self.by_owner.iter().filter_map(|parts| parts.get(limit as usize)) {
            measured = measured.saturating_add(part.measured.load(Relaxed));
            let since = part.before.load(Relaxed).saturating_add(part.since.load(Relaxed));
            written = written.saturating_add(since);
        }
        UsageSum { measured, written }
    }

    /// A pass over what a service stores begins: it may or may not measure what is written from now on.
    pub(super) fn begin(&self, owner: StorageOwner) {
        for part in self.by_owner.get(owner as usize).into_iter().flatten() {
            part.before.fetch_add(part.since.swap(0, Relaxed), Relaxed);
        }
    }

    /// The pass has ended.
    pub(super) fn measured(&self, owner: StorageOwner, usage: &MeasuredUsage) {
        for limit in StorageLimit::ALL {
            if let Some(part) = self.part(owner, limit) {
                part.measured.store(usage.of(limit), Relaxed);
                part.before.store(0, Relaxed);
            }
        }
    }

    /// One kind of resources was counted.
    pub(super) fn counted(&self, limit: StorageLimit, count: u64) {
        let part = StorageOwner::of(limit).and_then(|owner| self.part(owner, limit));
        if let Some(part) = part {
            part.measured.store(count, Relaxed);
        }
    }

    fn part(&self, owner: StorageOwner, limit: StorageLimit) -> Option<&UsagePart> {
        self.by_owner.get(owner as usize)?.get(limit as usize)
    }
}
