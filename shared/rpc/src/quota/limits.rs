//! The rate limits of an account.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
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
        self.0.quotas.read().unwrap_or_else(PoisonError::into_inner).of(account)
    }

    /// Whether any account has this limit on what it stores.
    #[must_use]
    pub fn has_storage(&self, limit: StorageLimit) -> bool {
        self.0.storage.get(limit as usize).is_some_and(|is_on| is_on.load(Relaxed))
    }
}
