//! Keys that sign tokens, for an issuer on this machine: ES256 only, which `ring` can make keys for.

use std::fmt;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};

/// Largest file with a key, in bytes.
pub const SIGNING_KEY_BYTES_MAX: usize = 4096;
/// Characters of a line of base64.
const LINE_CHARS: usize = 64;
/// The first and the last line of a key.
const LINES: [&str; 2] = ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"];
/// Bytes of a coordinate of P-256.
const COORDINATE_BYTES: usize = 32;

/// A key that signs tokens. It is never printed.
pub struct SigningKey {
    key: EcdsaKeyPair,
    id: String,
}

/// Why a key is none. Contains nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    /// The text is no key that signs ES256.
    #[error("must be a private key of P-256 in PKCS #8, as PEM, with its public key")]
    Form,
    /// The system has no random bytes.
    #[error("the system provides no random bytes")]
    Random,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// A new key, as a text for its file.
    ///
    /// # Errors
    /// [`SigningKeyError::Random`].
    pub fn generate() -> Result<String, SigningKeyError> {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
        let text = STANDARD.encode(made.map_err(|_| SigningKeyError::Random)?.as_ref());
        let mut pem = format!("{}\n", LINES[0]);
        for (index, character) in text.chars().enumerate() {
            if index > 0 && index % LINE_CHARS == 0 {
                pem.push('\n');
            }
            pem.push(character);
        }
        Ok(format!("{pem}\n{}\n", LINES[1]))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`SigningKeyError::Form`] for every other text.
    pub fn parse(pem: &str) -> Result<Self, SigningKeyError> {
        let inside = pem.trim().strip_prefix(LINES[0]);
        let inside = inside.and_then(|text| text.strip_suffix(LINES[1]));
        let text: String = inside.ok_or(SigningKeyError::Form)?.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(text).map_err(|_| SigningKeyError::Form)?;
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let key = EcdsaKeyPair::from_pkcs8(algorithm, &bytes, &random);
        let key = key.map_err(|_| SigningKeyError::Form)?;
        let [x, y] = coordinates(&key).ok_or(SigningKeyError::Form)?;
        // The thumbprint of RFC 7638: the members in this order, without spaces.
        let members = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let id = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, members.as_bytes()));
        Ok(Self { key, id })
    }

    /// The id of the key, which tokens and key sets name it by.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key set with the public part of the key, as [`super::PublicKeys`] reads it.
    #[must_use]
    pub fn key_set(&self) -> String {
        let [x, y] = coordinates(&self.key).unwrap_or_default();
        let key = json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": x, "y": y
        });
        json!({ "keys": [key] }).to_string()
    }

    /// A token with these claims, an object.
    ///
    /// # Errors
    /// [`SigningKeyError::Random`].
    pub fn sign(&self, claims: &Value) -> Result<String, SigningKeyError> {
        let header = json!({"alg": "ES256", "kid": self.id, "typ": "JWT"});
        let [header, claims] =
            [&header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let text = format!("{header}.{claims}");
        let signature = self.key.sign(&SystemRandom::new(), text.as_bytes());
        let signature = signature.map_err(|_| SigningKeyError::Random)?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The coordinates of the public key, in base64url.
fn coordinates(key: &EcdsaKeyPair) -> Option<[String; 2]> {
    let (x, y) = key.public_key().as_ref().get(1..)?.split_at_checked(COORDINATE_BYTES)?;
    Some([x, y].map(|bytes| URL_SAFE_NO_PAD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bearer::PublicKeys;

    #[test]
    fn a_key_survives_its_file_and_its_set_verifies_its_tokens_alone() {
        let pem = SigningKey::generate().expect("a key");
        assert!(pem.lines().all(|line| line.len() <= LINE_CHARS), "{}", pem.len());
        let key = SigningKey::parse(&format!("\n{}", pem.replace('\n', "\r\n"))).expect("its text");
        assert_eq!(key.id(), SigningKey::parse(&pem).expect("its text").id());
        let other = SigningKey::parse(&SigningKey::generate().expect("a key")).expect("its text");
        assert_ne!(key.id(), other.id());
        let token = key.sign(&json!({"iss": "i"})).expect("a token");
        let (signed, signature) = token.rsplit_once('.').expect("three parts");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
        let verified = |set: &SigningKey, signed: &str| {
            let keys = PublicKeys::parse(set.key_set().as_bytes()).expect("a key set");
            keys.verify(super::super::jwks::Algorithm::Es256, None, signed.as_bytes(), &signature)
        };
        assert_eq!(verified(&key, signed), Some(true));
        assert_eq!(verified(&key, &format!("{signed}x")), Some(false));
        assert_eq!(verified(&other, signed), Some(false));
        let secret = pem.lines().nth(1).expect("a line");
        assert!(!format!("{key:?} {}", key.key_set()).contains(secret));
    }

    #[test]
    fn the_id_of_a_key_is_its_thumbprint() {
        let key = SigningKey::parse(&SigningKey::generate().expect("a key")).expect("its text");
        let set: Value = serde_json::from_str(&key.key_set()).expect("JSON");
        let [x, y] = ["x", "y"].map(|name| set["keys"][0][name].as_str().expect("a text"));
        let text = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let expected = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, text.as_bytes()));
        assert_eq!((key.id(), set["keys"][0]["kid"].as_str()), (&*expected, Some(&*expected)));
    }

    #[test]
    fn other_texts_are_no_keys() {
        let pem = SigningKey::generate().expect("a key");
        for text in [
            String::new(),
            "a".to_owned(),
            pem.replace("PRIVATE", "EC PRIVATE"),
            pem.replacen("MIG", "MIH", 1),
            pem.replacen("\n-----END", "A\n-----END", 1),
            format!("{}\nAAAA\n{}", LINES[0], LINES[1]),
            format!("{pem}{pem}"),
        ] {
            assert_eq!(SigningKey::parse(&text).err(), Some(SigningKeyError::Form), "{text}");
        }
    }
}
