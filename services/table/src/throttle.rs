//! Enforces the quotas of accounts and partitions, and measures which partitions are used most.
//!
//! Every entity that is written or examined costs its weight in tokens, see [`trestle_rpc::quota`]: writes reserve
//! them before they run, reads while they run. Only a caller over its own limit waits.

mod charged;
mod exceeded;
mod observe;
mod reservation;

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use opentelemetry::metrics::{Counter, Meter};
#[cfg(test)]
use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use tokio::time::Instant;
use trestle_model::name::{AccountName, TableName};
use trestle_rpc::quota::{HeavyHitter, HeavyHitters, KeyedBuckets, LiveQuotas};
use trestle_rpc::semconv;

use self::charged::ChargedBuckets;
pub(crate) use self::exceeded::QuotaExceeded;
pub(crate) use self::{observe::observe, reservation::TokenReservation};

/// The limits of every account, and what was used of them.
pub(crate) struct Throttle {
    quotas: LiveQuotas,
    buckets: KeyedBuckets,
    heavy_hitters: HeavyHitters<HotPartition>,
    /// Keyed by the process, so that no client can aim at the bucket of another.
    hasher: RandomState,
    started: Instant,
    /// Counts operations over a quota.
    throttled: Counter<u64>,
}

/// A table of an account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableRef<'a> {
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
    /// Identifies the partition in this process, and reveals nothing of its key.
    pub hash: u64,
}

impl Throttle {
    /// Limits nothing and counts nowhere.
    #[cfg(test)]
    pub(crate) fn unlimited() -> Self {
        let meter = NoopMeterProvider::new().meter("tests");
        Self::new(LiveQuotas::default(), &meter)
    }

    /// Nothing was used before.
    pub(crate) fn new(quotas: LiveQuotas, meter: &Meter) -> Self {
        Self {
            quotas,
            buckets: KeyedBuckets::default(),
            heavy_hitters: HeavyHitters::default(),
            hasher: RandomState::new(),
            started: Instant::now(),
            throttled: semconv::throttled(meter),
        }
    }

    /// The partitions of an account, or of all, that were used most in the last seconds.
    pub(crate) fn hottest(
        &self,
        account: Option<&AccountName>,
        count: usize,
    ) -> Vec<HeavyHitter<HotPartition>> {
        let filter =
            |partition: &HotPartition| account.is_none_or(|account| partition.account == *account);
        self.heavy_hitters.hottest(count, self.now(), filter)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The buckets of an account, before any partition.
    fn charged(&self, account: &AccountName) -> ChargedBuckets {
        let quota = self.quotas.of(account);
        let account = match quota.account {
            Some(_) => self.hasher.hash_one(("account", account)),
            None => 0,
        };
        ChargedBuckets { quota, account, partition: 0 }
    }
}
