//! The buckets that work is charged to: that of its partition and that of its account.

use std::time::Duration;

use trestle_rpc::quota::{KeyedBuckets, Quota, Rate};

/// The buckets of a partition and of its account. Where one has no limit, it is never charged.
pub(super) struct ChargedBuckets {
    pub(super) quota: Quota,
    /// The key of the bucket of the account.
    pub(super) account: u64,
    /// The key of the bucket of the partition.
    pub(super) partition: u64,
}

/// The limit that rejected a reservation.
pub(super) struct LimitExceeded {
    pub(super) scope: LimitScope,
    pub(super) rate: Rate,
    /// How long until enough tokens are available, if no other caller reserves them.
    pub(super) wait: Duration,
}

/// Which of the two limits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitScope {
    /// That of the account.
    Account,
    /// That of the partition.
    Partition,
}

impl LimitScope {
    /// As in the labels of metrics.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Partition => "partition",
        }
    }
}

impl ChargedBuckets {
    /// The rate of each bucket that has a limit.
    pub(super) fn rates(&self) -> impl Iterator<Item = Rate> {
        [self.quota.partition, self.quota.account].into_iter().flatten()
    }

    /// Whether a bucket has less than so many tokens, and is not full.
    pub(super) fn is_low(&self, buckets: &KeyedBuckets, tokens: u64, now: Duration) -> bool {
        let low = |key, rate: Option<Rate>| {
            rate.is_some_and(|rate| !buckets.wait(key, rate, tokens, now).is_zero())
        };
        low(self.partition, self.quota.partition) || low(self.account, self.quota.account)
    }

    /// Reserves tokens of both buckets or of none. With `ahead`, one must be available and the others are borrowed.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(super) fn reserve(
        &self,
        buckets: &KeyedBuckets,
        tokens: u64,
        ahead: bool,
        now: Duration,
    ) -> Result<(), LimitExceeded> {
        let reserve = |key, rate| match ahead {
            true => buckets.reserve_ahead(key, rate, tokens, now),
            false => buckets.reserve(key, rate, tokens, now),
        };
        if let Some(rate) = self.quota.partition
            && let Err(wait) = reserve(self.partition, rate)
        {
            // The longer wait of both, so that a retry after it meets neither limit.
            let needed = if ahead { 1 } else { tokens };
            let account =
                self.quota.account.map(|rate| buckets.wait(self.account, rate, needed, now));
            let wait = wait.max(account.unwrap_or_default());
            return Err(LimitExceeded { scope: LimitScope::Partition, rate, wait });
        }
        if let Some(rate) = self.quota.account
            && let Err(wait) = reserve(self.account, rate)
        {
            if let Some(rate) = self.quota.partition {
                buckets.refund(self.partition, rate, tokens);
            }
            return Err(LimitExceeded { scope: LimitScope::Account, rate, wait });
        }
        Ok(())
    }

    /// Charges tokens that were used already, whether they are available or not.
    pub(super) fn debit(&self, buckets: &KeyedBuckets, tokens: u64, now: Duration) {
        if let Some(rate) = self.quota.partition {
            buckets.debit(self.partition, rate, tokens, now);
        }
        if let Some(rate) = self.quota.account {
            buckets.debit(self.account, rate, tokens, now);
        }
    }

    /// Returns tokens that were reserved and not used.
    pub(super) fn refund(&self, buckets: &KeyedBuckets, tokens: u64) {
        if let Some(rate) = self.quota.partition {
            buckets.refund(self.partition, rate, tokens);
        }
        if let Some(rate) = self.quota.account {
            buckets.refund(self.account, rate, tokens);
        }
    }

    /// How long until one token is in the bucket of this scope; none where it has no limit.
    pub(super) fn wait(
        &self,
        buckets: &KeyedBuckets,
        scope: LimitScope,
        now: Duration,
    ) -> Option<LimitExceeded> {
        let (key, rate) = match scope {
            LimitScope::Account => (self.account, self.quota.account?),
            LimitScope::Partition => (self.partition, self.quota.partition?),
        };
        Some(LimitExceeded { scope, rate, wait: buckets.wait(key, rate, 1, now) })
    }
}
