//! The secret by which a role in another process recognises a gateway, and a process another one of its store. It is
//! sent with every call.

use std::{fmt, sync::LazyLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;

/// Shortest secret, in bytes.
pub const SECRET_BYTES_MIN: usize = 32;
/// Longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 512;

/// The header of a call with the secret of gateways.
const HEADER: HeaderName = HeaderName::from_static("trestle-gateway-secret");
/// The header of a call with the secret of the processes of a store.
pub(crate) const STORE_HEADER: HeaderName = HeaderName::from_static("trestle-store-secret");

/// A secret of gateways, or of the processes of a store. Never printed.
#[derive(Clone)]
pub struct GatewaySecret {
    /// The header that has it.
    name: HeaderName,
    /// Marked as sensitive, so that no layer prints it and HTTP/2 does not index it.
    value: HeaderValue,
    /// The digest for comparisons, of one length for all secrets.
    digest: hmac::Tag,
}

/// An invalid secret. Contains nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} visible ASCII characters, such as those of \
     `openssl rand -base64 32`"
)]
pub struct GatewaySecretError;

impl GatewaySecret {
    /// Reads a secret of gateways, without the space around it.
    ///
    /// # Errors
    /// Too few or too many characters, or others than visible ASCII.
    pub fn parse(text: &str) -> Result<Self, GatewaySecretError> {
        Self::with_header(text, HEADER)
    }

    /// Reads a secret of the processes of a store, as [`GatewaySecret::parse`] does.
    ///
    /// # Errors
    /// As there.
    pub fn of_store(text: &str) -> Result<Self, GatewaySecretError> {
        Self::with_header(text, STORE_HEADER)
    }

    fn with_header(text: &str, name: HeaderName) -> Result<Self, GatewaySecretError> {
        let text = text.trim();
        let fits = (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(GatewaySecretError);
        }
        let mut value = HeaderValue::from_str(text).map_err(|_| GatewaySecretError)?;
        value.set_sensitive(true);
        Ok(Self { name, value, digest: hmac::sign(comparer(), text.as_bytes()) })
    }

    /// The header that a gateway, or a process, adds to its calls.
    #[must_use]
    pub fn header(&self) -> (HeaderName, HeaderValue) {
        (self.name.clone(), self.value.clone())
    }

    /// Whether a call has this secret, once. The comparison takes constant time.
    #[must_use]
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(&self.name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => {
                hmac::verify(comparer(), value.as_bytes(), self.digest.as_ref()).is_ok()
            }
            (None, _) | (_, Some(_)) => false,
        }
    }

    /// Removes the secret of a call.
    pub(crate) fn remove_from(&self, headers: &mut HeaderMap) {
        headers.remove(&self.name);
    }
}

/// Computes digests to compare secrets by; no secret itself.
fn comparer() -> &'static hmac::Key {
    static COMPARER: LazyLock<hmac::Key> =
        LazyLock::new(|| hmac::Key::new(hmac::HMAC_SHA256, b"trestle compares gateway secrets"));
    &COMPARER
}

impl fmt::Debug for GatewaySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatewaySecret(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_secret_has_32_to_512_visible_characters() {
        for good in [SECRET, &"x".repeat(512), &format!(" {SECRET}\n")] {
            assert!(GatewaySecret::parse(good).is_ok(), "{good}");
        }
        let long = "x".repeat(513);
        let spaced = format!("{SECRET} {SECRET}");
        for bad in ["", &SECRET[1..], &long, &spaced, &SECRET.replace('0', "ä")] {
            assert_eq!(GatewaySecret::parse(bad).err(), Some(GatewaySecretError), "{bad}");
        }
    }

    #[test]
    fn only_the_same_secret_given_once_is_accepted() {
        let secret = GatewaySecret::parse(SECRET).expect("a secret");
        let with = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, HeaderValue::from_static(value));
            }
            headers
        };
        assert!(secret.is_in(&with(&[SECRET])));
        for other in [&[][..], &[""], &[&SECRET[1..]], &[SECRET, SECRET], &["other"]] {
            assert!(!secret.is_in(&with(other)), "{other:?}");
        }
        let (name, value) = secret.header();
        assert!(secret.is_in(&[(name, value)].into_iter().collect()));
        let of_store = GatewaySecret::of_store(SECRET).expect("a secret");
        assert!(!of_store.is_in(&with(&[SECRET])), "it is in a header of its own");
        assert!(of_store.is_in(&[of_store.header()].into_iter().collect()));
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = GatewaySecret::parse(SECRET).expect("a secret");
        assert!(!format!("{secret:?} {:?}", secret.header()).contains(SECRET));
    }
}
