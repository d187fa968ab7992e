//! The form of a token: three parts of base64url (RFC 7515), and its claims (RFC 7519).

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Number, Value};

use super::jwks::{Algorithm, decoded};
use trestle_model::time::Ticks;

/// Longest token, in bytes.
pub const BEARER_BYTES_MAX: usize = 8192;

/// Longest id of a user, in bytes.
pub(super) const USER_BYTES_MAX: usize = 256;

/// A token, parsed and not verified.
#[derive(Debug)]
pub(super) struct Jwt<'a> {
    pub(super) algorithm: Algorithm,
    /// The id of its key.
    pub(super) key_id: Option<String>,
    pub(super) claims: Claims,
    /// What the signature is of.
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
}

#[derive(Deserialize)]
struct JoseHeader {
    alg: String,
    kid: Option<String>,
    #[serde(default, deserialize_with = "present")]
    crit: Option<Value>,
}

/// A value that is there, also `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The claims of a token. A claim with a wrong type is an error, not an absent one.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    pub(super) iss: String,
    aud: OneOrMore,
    exp: Number,
    nbf: Option<Number>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl<'a> Jwt<'a> {
    /// Parses a token.
    ///
    /// # Errors
    /// The violated rule. It does not repeat the token.
    pub(super) fn parse(token: &'a str) -> Result<Self, &'static str> {
        const RULE: &str = "must be a JSON Web Token, three parts of base64url separated by dots";
        if token.len() > BEARER_BYTES_MAX {
            return Err("must have at most 8192 bytes");
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(RULE)?;
        let (header, claims) = signed.split_once('.').ok_or(RULE)?;
        let signature = decoded(signature).ok_or(RULE)?;
        let header: JoseHeader = json(header).ok_or("the header must be JSON with `alg`")?;
        let algorithm = Algorithm::parse(&header.alg).ok_or("`alg` must be RS256 or ES256")?;
        if header.crit.is_some() {
            return Err("the header must have no `crit`, since no extension is supported");
        }
        let claims = json(claims)
            .ok_or("the claims must be JSON with texts `iss` and `aud`, and a number `exp`")?;
        Ok(Self { algorithm, key_id: header.kid, claims, signed, signature })
    }
}

impl Claims {
    /// Whether the token is for this audience.
    pub(super) fn is_for(&self, audience: &str) -> bool {
        match &self.aud {
            OneOrMore::One(one) => one == audience,
            OneOrMore::More(more) => more.iter().any(|one| one == audience),
        }
    }

    /// The time from which the token is invalid; none where it is out of range.
    pub(super) fn expiry(&self) -> Option<Ticks> {
        time(&self.exp)
    }

    /// The time from which the token is valid.
    ///
    /// # Errors
    /// A time out of range.
    pub(super) fn start(&self) -> Result<Option<Ticks>, ()> {
        self.nbf.as_ref().map(|nbf| time(nbf).ok_or(())).transpose()
    }

    /// The texts of a claim: one, or an array of them.
    pub(super) fn texts(&self, claim: &str) -> impl Iterator<Item = &str> {
        let values = match self.others.get(claim) {
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
            None => &[],
        };
        values.iter().filter_map(Value::as_str)
    }
}

impl Claims {
    /// The id of the user: `oid`, or without it `sub`; none where it is no visible ASCII, since a shared access
    /// signature contains it.
    pub(super) fn user(&self) -> Option<&str> {
        let claim = self.others.get("oid").or_else(|| self.others.get("sub"))?;
        let fits = |id: &&str| (1..=USER_BYTES_MAX).contains(&id.len());
        let is_visible = |id: &&str| id.bytes().all(|byte| byte.is_ascii_graphic());
        claim.as_str().filter(fits).filter(is_visible)
    }
}

/// A `NumericDate`: seconds since 1970, of which fractions are dropped.
fn time(number: &Number) -> Option<Ticks> {
    let seconds = number.to_string();
    // So are written those that are far out of range.
    if seconds.contains('e') {
        return None;
    }
    let whole = seconds.split_once('.').map_or(seconds.as_str(), |(whole, _)| whole);
    Ticks::from_unix(whole.parse().ok()?, 0)
}

fn json<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&decoded(part)?).ok()
}
