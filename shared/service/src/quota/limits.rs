//! The rate limits of an account.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use super::{bucket::Rate, calls::CallRates};
use crate::name::AccountName;

/// The limits of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// For its calls of every service.
    pub calls: CallRates,
    /// For all its work on entities together; none: no limit.
    pub account: Option<Rate>,
    /// For the work on each partition of a table; none: no limit.
    pub partition: Option<Rate>,
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
}

/// The current limits. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LiveQuotas {
    current: Arc<RwLock<Quotas>>,
}

impl LiveQuotas {
    /// These limits, until they are replaced.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self { current: Arc::new(RwLock::new(quotas)) }
    }

    /// Replaces all limits, from the next call on. Reserved tokens remain reserved.
    pub fn replace(&self, quotas: Quotas) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = quotas;
    }

    /// The current limits of an account.
    #[must_use]
    pub fn of(&self, account: &AccountName) -> Quota {
        self.current.read().unwrap_or_else(PoisonError::into_inner).of(account)
    }
}
