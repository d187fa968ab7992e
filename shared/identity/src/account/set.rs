//! The accounts of a process, and snapshots of them.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;

use super::{Account, Signature, matches_any};
use crate::bearer::Issuers;

/// A snapshot of the accounts by name, and of the issuers whose tokens act for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountSet {
    accounts: BTreeMap<String, Account>,
    issuers: Arc<Issuers>,
}

impl AccountSet {
    /// The same accounts, with the issuers of bearer tokens.
    #[must_use]
    pub fn with_issuers(self, issuers: Issuers) -> Self {
        Self { issuers: Arc::new(issuers), ..self }
    }

    /// The same set with those accounts alone for which `is_kept` is true.
    #[must_use]
    pub fn filtered(mut self, is_kept: impl Fn(&Account) -> bool) -> Self {
        self.accounts.retain(|_, account| is_kept(account));
        self
    }

    /// The issuers of bearer tokens.
    #[must_use]
    pub fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// The account `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Account> {
        self.accounts.get(name)
    }

    /// Every account.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.accounts.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// The account `name`, if the key with these bytes is one of its keys. Takes as long for an
    /// absent account.
    #[must_use]
    pub fn with_key(&self, name: &str, key: &[u8]) -> Option<&Account> {
        let account = self.get(name);
        let matches = matches_any(account, |own| own.is(key));
        account.filter(|_| matches)
    }

    /// The account `name`, if one of its keys made `signature` of `text`. Takes as long for an absent account.
    #[must_use]
    pub fn with_signature(
        &self,
        name: &str,
        text: &str,
        signature: &Signature,
    ) -> Option<&Account> {
        let account = self.get(name);
        let matches = matches_any(account, |key| key.verifies(text, signature));
        account.filter(|_| matches)
    }
}

impl FromIterator<Account> for AccountSet {
    fn from_iter<I: IntoIterator<Item = Account>>(accounts: I) -> Self {
        let named = |account: Account| (account.name.as_str().to_owned(), account);
        Self { accounts: accounts.into_iter().map(named).collect(), issuers: Arc::default() }
    }
}

/// The accounts of a process, which change while it runs. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    current: Arc<watch::Sender<Arc<AccountSet>>>,
}

impl Accounts {
    /// Creates the accounts, until they are replaced.
    pub fn new(accounts: impl IntoIterator<Item = Account>) -> Self {
        let current = Arc::new(accounts.into_iter().collect());
        Self { current: Arc::new(watch::Sender::new(current)) }
    }

    /// Replaces all accounts. Streams and calls that wait end if their credentials are not valid any more; other calls
    /// in progress complete.
    pub fn replace(&self, accounts: AccountSet) {
        self.current.send_replace(Arc::new(accounts));
    }

    /// Reports each replacement from now on.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<AccountSet>> {
        self.current.subscribe()
    }

    /// The current accounts.
    #[must_use]
    pub fn now(&self) -> Arc<AccountSet> {
        Arc::clone(&self.current.borrow())
    }
}
