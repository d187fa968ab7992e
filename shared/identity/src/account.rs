//! Accounts and their keys: what credentials are checked against.
//!
//! A key is stored only in the forms that signing and comparison need, both of them ring's. Every
//! check takes as long for an absent account as for an existing one.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;

use trestle_service::name::AccountName;

/// Shortest accepted key, in bytes: as long as a signature, or it would be the weaker of the two.
pub const KEY_BYTES_MIN: usize = 32;
/// Longest accepted key, in bytes.
pub const KEY_BYTES_MAX: usize = 512;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 32;

/// Keys that an account may have at a time, so that one can be replaced while the other is in use.
const KEYS_MAX: usize = 2;

/// The key of the development account, which every storage emulator and its clients have.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A signature: HMAC-SHA256.
pub type Signature = [u8; SIGNATURE_BYTES];

/// A key of an account. Its bytes cannot be extracted, and it is never printed.
#[derive(Clone)]
pub struct AccountKey {
    signer: hmac::Key,
    /// The digest for comparisons: equal for equal keys only, and of one length for all.
    digest: hmac::Tag,
}

/// An invalid key. Contains nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be base64 of {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes")]
pub struct KeyError;

impl AccountKey {
    /// Reads a key, written as base64.
    ///
    /// # Errors
    /// A text that is not base64, or of too few or too many bytes.
    pub fn decode(text: &str) -> Result<Self, KeyError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| KeyError)?;
        let fits = (KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&bytes.len());
        if fits { Ok(Self::of(&bytes)) } else { Err(KeyError) }
    }

    /// The key of the development account.
    #[must_use]
    pub fn development() -> Self {
        Self::decode(DEVELOPMENT_KEY).expect("the well-known key is base64 of 64 bytes")
    }

    fn of(bytes: &[u8]) -> Self {
        let digest = hmac::sign(comparer(), bytes);
        Self { signer: hmac::Key::new(hmac::HMAC_SHA256, bytes), digest }
    }

    /// The signature of `text`.
    #[must_use]
    pub fn sign(&self, text: &str) -> Signature {
        let mut signature = Signature::default();
        let tag = hmac::sign(&self.signer, text.as_bytes());
        signature.copy_from_slice(tag.as_ref());
        signature
    }

    /// Whether `signature` is that of `text`, in constant time.
    fn verifies(&self, text: &str, signature: &Signature) -> bool {
        hmac::verify(&self.signer, text.as_bytes(), signature).is_ok()
    }

    /// Whether this is the key with these bytes, in constant time.
    fn is(&self, bytes: &[u8]) -> bool {
        hmac::verify(comparer(), bytes, self.digest.as_ref()).is_ok()
    }
}

/// Computes digests to compare keys by; no secret.
fn comparer() -> &'static hmac::Key {
    static COMPARER: LazyLock<hmac::Key> =
        LazyLock::new(|| hmac::Key::new(hmac::HMAC_SHA256, b"trestle compares account keys"));
    &COMPARER
}

/// Replaces an absent key, so that a check takes as long. Never accepted.
fn nobodys() -> &'static AccountKey {
    static NOBODYS: LazyLock<AccountKey> = LazyLock::new(|| AccountKey::of(&[0; 64]));
    &NOBODYS
}

/// Equal keys have equal digests; a timing difference of the comparison discloses no secret, since
/// both sides are configured keys.
impl PartialEq for AccountKey {
    fn eq(&self, other: &Self) -> bool {
        self.digest.as_ref() == other.digest.as_ref()
    }
}

impl Eq for AccountKey {}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(redacted)")
    }
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: AccountName,
    /// Its keys, all equally valid; those past the second are ignored.
    pub keys: Vec<AccountKey>,
    /// Whether it is disabled: its credentials are valid, and refused.
    pub is_disabled: bool,
}

impl Account {
    /// The development account with its well-known key.
    #[must_use]
    pub fn development() -> Self {
        let (name, keys) = (AccountName::development(), vec![AccountKey::development()]);
        Self { name, keys, is_disabled: false }
    }

    /// Whether a key of the account made `signature` of `text`.
    #[must_use]
    pub fn verifies(&self, text: &str, signature: &Signature) -> bool {
        matches_any(Some(self), |key| key.verifies(text, signature))
    }
}

/// Whether one of the account's keys passes `check`, which runs as often for every account, and for
/// an absent one.
fn matches_any(account: Option<&Account>, check: impl Fn(&AccountKey) -> bool) -> bool {
    let keys = account.map(|account| account.keys.as_slice()).unwrap_or_default();
    (0..KEYS_MAX).any(|index| match keys.get(index) {
        Some(key) => check(key),
        None => {
            std::hint::black_box(check(nobodys()));
            false
        }
    })
}

/// A snapshot of the accounts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountSet(BTreeMap<String, Account>);

impl AccountSet {
    /// The account `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Account> {
        self.0.get(name)
    }

    /// Every account.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.0.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The account `name`, if the key with these bytes is one of its keys. Takes as long for an
    /// absent account.
    #[must_use]
    pub fn with_key(&self, name: &str, key: &[u8]) -> Option<&Account> {
        let account = self.get(name);
        let matches = matches_any(account, |own| own.is(key));
        account.filter(|_| matches)
    }

    /// The account `name`, if one of its keys made `signature` of the text that `text` derives from
    /// the name. Takes as long for an absent account.
    #[must_use]
    pub fn with_signature(
        &self,
        name: &str,
        text: impl Fn(&str) -> String,
        signature: &Signature,
    ) -> Option<&Account> {
        let account = self.get(name);
        let text = text(name);
        let matches = matches_any(account, |key| key.verifies(&text, signature));
        account.filter(|_| matches)
    }
}

impl FromIterator<Account> for AccountSet {
    fn from_iter<I: IntoIterator<Item = Account>>(accounts: I) -> Self {
        let named = |account: Account| (account.name.as_str().to_owned(), account);
        Self(accounts.into_iter().map(named).collect())
    }
}

/// The accounts of a process, which change while it runs. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    current: Arc<RwLock<Arc<AccountSet>>>,
}

impl Accounts {
    /// Creates the accounts, until they are replaced.
    pub fn new(accounts: impl IntoIterator<Item = Account>) -> Self {
        let current = Arc::new(accounts.into_iter().collect());
        Self { current: Arc::new(RwLock::new(current)) }
    }

    /// Replaces all accounts; calls in progress keep theirs.
    pub fn replace(&self, accounts: AccountSet) {
        let accounts = Arc::new(accounts);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = accounts;
    }

    /// The current accounts.
    #[must_use]
    pub fn now(&self) -> Arc<AccountSet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> AccountKey {
        AccountKey::decode(&STANDARD.encode([byte; 64])).expect("a key")
    }

    fn account(name: &str, keys: &[u8]) -> Account {
        let name = AccountName::parse(name).expect("a name");
        Account { name, keys: keys.iter().map(|byte| key(*byte)).collect(), is_disabled: false }
    }

    #[test]
    fn accepts_base64_keys_of_valid_length_with_an_optional_line_break() {
        for bytes in [KEY_BYTES_MIN, 64, KEY_BYTES_MAX] {
            let text = format!(" {}\n", STANDARD.encode(vec![7; bytes]));
            assert!(AccountKey::decode(&text).is_ok(), "{bytes}");
        }
        for bytes in [0, KEY_BYTES_MIN - 1, KEY_BYTES_MAX + 1] {
            let text = STANDARD.encode(vec![7; bytes]);
            assert_eq!(AccountKey::decode(&text), Err(KeyError), "{bytes}");
        }
        for text in ["", "=", "no base64!", "QUJD QUJD"] {
            assert_eq!(AccountKey::decode(text), Err(KeyError), "{text}");
        }
    }

    #[test]
    fn a_key_is_never_printed() {
        let shown = format!("{:?} {}", account("acme", &[7]), KeyError);

        assert!(shown.contains("redacted"), "{shown}");
        assert!(!shown.contains(&STANDARD.encode([7; 64])) && !shown.contains("7, 7"), "{shown}");
    }

    #[test]
    fn either_of_two_keys_authenticates_the_account_and_no_other_does() {
        let set: AccountSet =
            [account("acme", &[1, 2]), account("other", &[3])].into_iter().collect();
        let opens = |name: &str, byte: u8| set.with_key(name, &[byte; 64]).is_some();

        assert!(opens("acme", 1) && opens("acme", 2) && opens("other", 3));
        assert!(!opens("acme", 3) && !opens("other", 1) && !opens("nobody", 1));
        // The replacement for absent keys is no valid key.
        assert!(!opens("other", 0) && !opens("nobody", 0));
    }

    #[test]
    fn a_signature_is_valid_for_one_text_and_one_of_the_keys() {
        let set: AccountSet = [account("acme", &[1, 2])].into_iter().collect();
        let signed = |name: &str, signature: &Signature| {
            set.with_signature(name, |name| format!("{name} text"), signature).is_some()
        };

        let mut signature = key(2).sign("acme text");
        assert!(signed("acme", &signature));
        assert!(!signed("nobody", &key(2).sign("nobody text")));
        assert!(!signed("acme", &nobodys().sign("acme text")));
        signature[31] ^= 1;
        assert!(!signed("acme", &signature));
    }

    #[test]
    fn a_snapshot_keeps_accounts_that_are_replaced() {
        let accounts = Accounts::new([account("acme", &[1])]);
        let before = accounts.now();

        accounts.clone().replace([account("acme", &[2])].into_iter().collect());

        assert!(before.with_key("acme", &[1; 64]).is_some());
        assert!(accounts.now().with_key("acme", &[1; 64]).is_none());
        assert!(accounts.now().with_key("acme", &[2; 64]).is_some());
    }
}
