//! Accounts and their keys: what credentials are checked against. Every check takes as long for an absent account as
//! for an existing one.

mod key;
mod set;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use trestle_model::name::AccountName;

use self::key::placeholder_key;
pub use self::{
    key::{
        AccountKey, DEVELOPMENT_KEY, KEY_BYTES_MAX, KEY_BYTES_MIN, KeyError, SIGNATURE_BYTES,
        Signature,
    },
    set::{AccountSet, Accounts},
};

/// Keys that an account may have at a time, so that one can be replaced while the other is in use.
const KEYS_MAX: usize = 2;

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: AccountName,
    /// Its keys, all equally valid; those past the second are ignored.
    pub keys: Vec<AccountKey>,
    /// Whether it is disabled: its credentials are valid, and rejected.
    pub is_disabled: bool,
    /// Whether callers without credentials may read its containers of blobs that have a public access level.
    pub allows_public_access: bool,
}

impl Account {
    /// The development account with its well-known key. It allows public access, as Azure's emulator does.
    #[must_use]
    pub fn development() -> Self {
        let (name, keys) = (AccountName::development(), vec![AccountKey::development()]);
        Self { name, keys, is_disabled: false, allows_public_access: true }
    }

    /// Whether a key of the account is the well-known one of the development account.
    #[must_use]
    pub fn has_public_key(&self) -> bool {
        static PUBLIC: LazyLock<AccountKey> = LazyLock::new(AccountKey::development);
        self.name.is_development() && self.keys.contains(&PUBLIC)
    }

    /// Whether a key of the account made `signature` of `text`.
    #[must_use]
    pub fn verifies(&self, text: &str, signature: &Signature) -> bool {
        matches_any(Some(self), |key| key.verifies(text, signature))
    }
}

/// Whether one of the account's keys passes `check`, which runs as often for every account, and for
/// an absent one.
pub(crate) fn matches_any(account: Option<&Account>, check: impl Fn(&AccountKey) -> bool) -> bool {
    let keys = account.map(|account| account.keys.as_slice()).unwrap_or_default();
    (0..KEYS_MAX).any(|index| match keys.get(index) {
        Some(key) => check(key),
        None => {
            std::hint::black_box(check(placeholder_key()));
            false
        }
    })
}
