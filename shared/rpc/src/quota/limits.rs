//! The rate limits of an account.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use super::{
    bucket::Rate,
    calls::CallRates,
    storage::{StorageLimit, StorageMax},
};
use trestle_model::name::AccountName;

/// The limits of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// For its calls of every service.
    pub calls: CallRates,
    /// For all its work on entities together; none: no limit.
    pub account: Option<Rate>,
    /// For the work on each partition of a table; none: no limit.
    pub partition: Option<Rate>,
    /// For what it stores.
    pub storage: StorageMax,
}

impl Quota {
    /// The part of one process, where as many share the limits. What is stored is limited as a whole.
    #[must_use]
    fn shared_by(self, processes: u64) -> Self {
        let part = |rate: Option<Rate>| rate.map(|rate| rate.shared_by(processes));
        let CallRates { operations, bytes } = self.calls;
        Self {
            calls: CallRates { operations: part(operations), bytes: part(bytes) },
            account: part(self.account),
            partition: part(self.partition),
            storage: self.storage,
        }
    }

    /// Whether work on entities is not limited.
    #[must_use]
    pub fn is_unlimited(self) -> bool {
        self.account.is_none() && self.partition.is_none()
    }
}

/// The limits of every account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Of every account without limits of its own.
    pub default: Quota,
    /// Of those that have some.
    pub accounts: HashMap<AccountName, Quota>,
}

impl Quotas {
    /// The limits of an account.
    #[must_use]
    pub fn of(&self, account: &AccountName) -> Quota {
        // Most installations have no exceptions: no hash then.
        if self.accounts.is_empty() {
            return self.default;
        }
        self.accounts.get(account).copied().unwrap_or(self.default)
    }

    fn has_storage(&self, limit: StorageLimit) -> bool {
        let mut each = self.accounts.values().chain([&self.default]);
        each.any(|quota| quota.storage.of(limit).is_some())
    }
}

/// The current limits. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LiveQuotas(Arc<CurrentQuotas>);

#[derive(Debug, Default)]
struct CurrentQuotas {
    quotas: RwLock<Quotas>,
    /// Whether any account has the limit with this number on what it stores.
    storage: [AtomicBool; StorageLimit::COUNT],
    /// How many other processes share the limits on rates.
    others: AtomicUsize,
}

impl LiveQuotas {
    /// These limits, until they are replaced.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        let live = Self::default();
        live.replace(quotas);
        live
    }

    /// Replaces all limits, from the next call on. Reserved tokens remain reserved.
    pub fn replace(&self, quotas: Quotas) {
        for (limit, is_on) in StorageLimit::ALL.into_iter().zip(&self.0.storage) {
            is_on.store(quotas.has_storage(limit), Relaxed);
        }
        *self.0.quotas.write().unwrap_or_else(PoisonError::into_inner) = quotas;
    }

    /// The current limits of an account.
    #[must_use]
    pub fn of(&self, account: &AccountName) -> Quota {
        let quota = self.0.quotas.read().unwrap_or_else(PoisonError::into_inner).of(account);
        match self.0.others.load(Relaxed) {
            0 => quota,
            others => quota.shared_by(others as u64 + 1),
        }
    }

    /// Divides the limits on rates among as many processes, from the next call on; how many it were before. Reserved
    /// tokens remain reserved.
    pub fn share(&self, processes: usize) -> usize {
        self.0.others.swap(processes.saturating_sub(1), Relaxed) + 1
    }

    /// Whether any account has this limit on what it stores.
    #[must_use]
    pub fn has_storage(&self, limit: StorageLimit) -> bool {
        self.0.storage.get(limit as usize).is_some_and(|is_on| is_on.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_share_the_limits_on_rates_and_not_those_on_what_is_stored() {
        let account = AccountName::parse("someaccount").expect("a name");
        let rate = Rate::new(1000, 10);
        let bytes = Rate::new(1, 1);
        let storage = StorageMax::default();
        let calls = CallRates { operations: rate, bytes };
        let default = Quota { calls, account: rate, partition: None, storage };
        let quotas = LiveQuotas::new(Quotas { default, ..Quotas::default() });

        assert_eq!((quotas.share(3), quotas.of(&account).account), (1, Rate::new(334, 4)));
        assert_eq!(quotas.of(&account).calls, CallRates { operations: Rate::new(334, 4), bytes });
        assert_eq!(quotas.of(&account).partition, None);
        assert_eq!((quotas.share(1), quotas.of(&account)), (3, default));
        assert_eq!((quotas.share(0), quotas.share(2)), (1, 1), "there is always one");
    }
}
