//! The key of an account, stored only in the forms that signing and comparison need, both of them ring's.

use std::{fmt, sync::LazyLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;

/// Shortest accepted key, in bytes: as long as a signature, or it would be the weaker of the two.
pub const KEY_BYTES_MIN: usize = 32;
/// Longest accepted key, in bytes.
pub const KEY_BYTES_MAX: usize = 512;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 32;

/// The key of the development account, which every storage emulator and its clients have.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// What the key that derives user delegation keys is the signature of. No text that a client has signed is on one line.
const DELEGATION: &[u8] = b"trestle derives user delegation keys";

/// A signature: HMAC-SHA256.
pub type Signature = [u8; SIGNATURE_BYTES];

/// A key of an account. Its bytes cannot be extracted, and it is never printed.
#[derive(Clone)]
pub struct AccountKey {
    signer: hmac::Key,
    /// Derives the user delegation keys of the account: the signature of [`DELEGATION`], which no caller can request.
    /// So no delegation key is the signature of a token or of a request.
    delegator: hmac::Key,
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
        let signer = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let delegator = hmac::sign(&signer, DELEGATION);
        let delegator = hmac::Key::new(hmac::HMAC_SHA256, delegator.as_ref());
        Self { signer, delegator, digest }
    }

    /// The signature of `text`.
    #[must_use]
    pub fn sign(&self, text: &str) -> Signature {
        signature(&self.signer, text)
    }

    /// The user delegation key with these terms, which are its derivation. It is a secret.
    pub(crate) fn delegated(&self, derivation: &str) -> Signature {
        signature(&self.delegator, derivation)
    }

    /// Whether the user delegation key with this derivation made `signature` of `text`, in constant time.
    pub(crate) fn delegated_verifies(
        &self,
        derivation: &str,
        text: &str,
        signature: &Signature,
    ) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.delegated(derivation));
        hmac::verify(&key, text.as_bytes(), signature).is_ok()
    }

    /// Whether `signature` is that of `text`, in constant time.
    pub(super) fn verifies(&self, text: &str, signature: &Signature) -> bool {
        hmac::verify(&self.signer, text.as_bytes(), signature).is_ok()
    }

    /// Whether this is the key with these bytes, in constant time.
    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        hmac::verify(comparer(), bytes, self.digest.as_ref()).is_ok()
    }
}

fn signature(key: &hmac::Key, text: &str) -> Signature {
    let mut signature = Signature::default();
    signature.copy_from_slice(hmac::sign(key, text.as_bytes()).as_ref());
    signature
}

/// Computes digests to compare keys by; no secret.
fn comparer() -> &'static hmac::Key {
    static COMPARER: LazyLock<hmac::Key> =
        LazyLock::new(|| hmac::Key::new(hmac::HMAC_SHA256, b"trestle compares account keys"));
    &COMPARER
}

/// Replaces an absent key, so that a check takes as long. Never accepted.
pub(super) fn placeholder_key() -> &'static AccountKey {
    static PLACEHOLDER: LazyLock<AccountKey> = LazyLock::new(|| AccountKey::of(&[0; 64]));
    &PLACEHOLDER
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
