//! The public keys of an issuer: a JSON Web Key Set (RFC 7517).

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// Largest key set, in bytes.
pub const JWKS_BYTES_MAX: usize = 65_536;
/// Most keys of a set.
const KEYS_MAX: usize = 32;
/// Bytes of a coordinate of P-256.
const COORDINATE_BYTES: usize = 32;
/// Bytes of an RSA modulus: 2048 to 8192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// The first byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

/// The signature algorithms of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    /// The algorithm with this name in the header of a token; none for every other one, `none` and `HS256` included.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

/// Why a key set is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// The document is too large.
    #[error("must have at most {JWKS_BYTES_MAX} bytes")]
    Size,
    /// The document is no key set.
    #[error("must be a JSON Web Key Set, an object with an array `keys`: {0}")]
    Form(String),
    /// The set has too many keys.
    #[error("must have at most {KEYS_MAX} keys")]
    Count,
    /// A key for signatures is malformed.
    #[error("key {index}: {rule}")]
    Key {
        /// Its place in the set, from 0.
        index: usize,
        /// The violated rule.
        rule: &'static str,
    },
    /// No key of the set verifies RS256 or ES256.
    #[error("must have a key for RS256 (RSA, 2048 to 8192 bits) or ES256 (EC, P-256)")]
    Empty,
}

/// The usable keys of a set; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicKeys(Vec<VerificationKey>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct VerificationKey {
    id: Option<String>,
    material: KeyMaterial,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyMaterial {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256 { point: Vec<u8> },
}

#[derive(Deserialize)]
struct KeySetDocument {
    keys: Vec<KeyDocument>,
}

#[derive(Deserialize)]
struct KeyDocument {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl PublicKeys {
    /// Reads a key set. Keys for encryption, and of other types and algorithms, are ignored, as RFC 7517 requires.
    ///
    /// # Errors
    /// A document that is no key set or exceeds its bounds, a malformed key, an id that two keys have, and a set
    /// without a usable key.
    pub fn parse(document: &[u8]) -> Result<Self, JwksError> {
        if document.len() > JWKS_BYTES_MAX {
            return Err(JwksError::Size);
        }
        let set: KeySetDocument =
            serde_json::from_slice(document).map_err(|error| JwksError::Form(error.to_string()))?;
        if set.keys.len() > KEYS_MAX {
            return Err(JwksError::Count);
        }
        let (mut keys, mut ids) = (Vec::new(), BTreeSet::new());
        for (index, key) in set.keys.into_iter().enumerate() {
            let fails = |rule| JwksError::Key { index, rule };
            let Some(material) = key.material().map_err(fails)? else { continue };
            if !ids.insert(key.kid.clone()) {
                return Err(fails("`kid` must differ from that of every other key"));
            }
            keys.push(VerificationKey { id: key.kid, material });
        }
        if keys.is_empty() { Err(JwksError::Empty) } else { Ok(Self(keys)) }
    }

    /// Whether there is no key, as before a set is fetched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the key with this id made `signature` of `text`; none where there is no such key. A token without an id
    /// is for the only key of a set.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
        text: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        let key = match (id, self.0.as_slice()) {
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id))?,
            (None, [key]) => key,
            (None, _) => return None,
        };
        Some(key.material.verifies(algorithm, text, signature))
    }
}

impl KeyMaterial {
    /// The type of the key decides, not the token: a token for another algorithm fails.
    fn verifies(&self, algorithm: Algorithm, text: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, Algorithm::Rs256) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature).is_ok()
            }
            (Self::P256 { point }, Algorithm::Es256) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(text, signature).is_ok()
            }
            _ => false,
        }
    }
}

impl KeyDocument {
    /// The key; none where it is not for these signatures.
    fn material(&self) -> Result<Option<KeyMaterial>, &'static str> {
        let is_for = |algorithm| self.alg.as_deref().is_none_or(|alg| alg == algorithm);
        if self.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return Ok(None);
        }
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) if is_for("RS256") => {
                let [modulus, exponent] = [&self.n, &self.e].map(|field| number(field.as_deref()));
                let modulus = modulus.filter(|bytes| MODULUS_BYTES.contains(&bytes.len()));
                let modulus = modulus.ok_or("`n` must be base64url of 2048 to 8192 bits")?;
                let exponent = exponent.filter(|bytes| (1..=4).contains(&bytes.len()));
                let exponent = exponent.ok_or("`e` must be base64url of at most 32 bits")?;
                Ok(Some(KeyMaterial::Rsa { modulus, exponent }))
            }
            ("EC", Some("P-256")) if is_for("ES256") => {
                let mut point = vec![UNCOMPRESSED];
                for (field, rule) in [
                    (&self.x, "`x` must be base64url of 32 bytes"),
                    (&self.y, "`y` must be base64url of 32 bytes"),
                ] {
                    let bytes = field.as_deref().and_then(decoded);
                    let bytes = bytes.filter(|bytes| bytes.len() == COORDINATE_BYTES);
                    point.extend(bytes.ok_or(rule)?);
                }
                Ok(Some(KeyMaterial::P256 { point }))
            }
            _ => Ok(None),
        }
    }
}

/// A number without leading zeros, which ring rejects and some issuers write.
fn number(field: Option<&str>) -> Option<Vec<u8>> {
    let bytes = decoded(field?)?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    bytes.get(first..).map(<[u8]>::to_vec)
}

/// The bytes of base64url without padding.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
