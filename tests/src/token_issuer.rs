//! An issuer of bearer tokens, with a key of its own.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use trestle_model::time::{Clock as _, SystemClock};

/// The audience of every token.
const AUDIENCE: &str = "trestle";
/// The claim `sub` of every token.
const SUBJECT: &str = "user-1";
/// The id of every key.
const KEY_ID: &str = "k1";

/// An issuer with one key, for ES256.
pub struct TokenIssuer {
    name: String,
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl TokenIssuer {
    /// An issuer with a new key, and `name` as the claim `iss`.
    pub fn new(name: &str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        Self { name: name.to_owned(), key, random }
    }

    /// Its key set.
    pub fn jwks(&self) -> String {
        let point = self.key.public_key().as_ref();
        let coordinates = point.get(1..).and_then(|both| both.split_at_checked(32));
        let (x, y) = coordinates.expect("a point of two coordinates");
        let [x, y] = [x, y].map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": KEY_ID, "x": x, "y": y}]}).to_string()
    }

    /// A token with a role, which expires after `seconds`; negative: before.
    pub fn token(&self, role: &str, seconds: i64) -> String {
        self.token_of(role, seconds, &json!({"sub": SUBJECT}))
    }

    /// The same with these claims about its user, an object.
    pub fn token_of(&self, role: &str, seconds: i64, user: &Value) -> String {
        let expiry = SystemClock.now().to_unix().0 + seconds;
        let mut claims = json!({"iss": self.name, "aud": AUDIENCE, "exp": expiry, "roles": [role]});
        let user = user.as_object().cloned().unwrap_or_default();
        claims.as_object_mut().unwrap().extend(user);
        let header = json!({"alg": "ES256", "kid": KEY_ID, "typ": "JWT"});
        let [header, claims] =
            [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let text = format!("{header}.{claims}");
        let signature = self.key.sign(&self.random, text.as_bytes()).unwrap();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
