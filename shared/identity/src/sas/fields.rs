//! A token as the fields of a query string: supported names only, each at most once, values decoded.

use super::{Malformed, query::decode};
use crate::spec::{SERVICES, ServiceSpec};

/// Longest accepted token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 8192;

/// The fields of every token; services declare further ones. Other names are rejected, so that no issuer relies on a
/// restriction that is not enforced.
const NAMES: [&str; 12] =
    ["sv", "ss", "srt", "sp", "st", "se", "si", "sip", "spr", "ses", "sr", "sig"];

/// The fields of tokens that are signed with a user delegation key.
const OF_USERS: [&str; 13] = [
    "skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "skdutid", "sduoid",
    "srh", "srq",
];

/// Whether a parameter of a query string is a field of a token, also of one that is rejected for it.
#[must_use]
pub fn is_field(name: &str) -> bool {
    field_name(name, None).is_some()
}

/// The field with this name, of every token or of those of a service.
fn field_name(name: &str, service: Option<&'static ServiceSpec>) -> Option<&'static str> {
    let declared = SERVICES.into_iter().chain(service).flat_map(|service| {
        let fields = service.fields.iter().filter(|field| field.of_request.is_empty());
        service.name_field.into_iter().chain(fields.map(|field| field.name))
    });
    NAMES.into_iter().chain(OF_USERS).chain(declared).find(|field| *field == name)
}

/// The fields of a token.
#[derive(Default)]
pub(super) struct Fields(Vec<(&'static str, String)>);

impl Fields {
    /// Parses a token, whose resource may be of `service`. A leading `?`, as in tokens copied from addresses, is
    /// skipped.
    pub(super) fn parse(
        text: &str,
        service: Option<&'static ServiceSpec>,
    ) -> Result<Self, Malformed> {
        let whole = |rule: String| Malformed::new("token", rule);
        if text.len() > TOKEN_BYTES_MAX {
            let rule = format!("must have at most {TOKEN_BYTES_MAX} bytes: bytes=`{}`", text.len());
            return Err(whole(rule));
        }
        let text = text.strip_prefix('?').unwrap_or(text);
        if text.is_empty() {
            return Err(whole("must not be empty".to_owned()));
        }
        let mut fields = Self::default();
        for (index, pair) in text.split('&').enumerate() {
            let number = index + 1;
            let Some((name, value)) = pair.split_once('=') else {
                return Err(whole(format!("field {number}: must be name=value")));
            };
            let Some(name) = field_name(name, service) else {
                return Err(whole(format!("field {number}: is not a field of a token")));
            };
            let value = decode(name, value)?;
            if fields.has(name) {
                return Err(Malformed::new(name, "must not be repeated"));
            }
            fields.0.push((name, value));
        }
        Ok(fields)
    }

    /// Removes a field and returns it.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(field, _)| *field == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Removes a field and returns it; none if it is empty, which is signed like an absent one.
    pub(super) fn filled(&mut self, name: &str) -> Option<String> {
        self.take(name).filter(|value| !value.is_empty())
    }

    /// Whether a field remains.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| *field == name)
    }

    /// Whether a field remains and is empty.
    pub(super) fn is_empty(&self, name: &str) -> bool {
        self.0.iter().any(|(field, value)| *field == name && value.is_empty())
    }

    /// A field that was not consumed.
    pub(super) fn left(&self) -> Option<&'static str> {
        self.0.first().map(|(name, _)| *name)
    }
}
