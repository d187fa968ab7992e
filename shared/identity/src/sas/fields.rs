//! A token as the fields of a query string: known names only, each at most once, values decoded.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Longest accepted token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 8192;

/// The valid field names of a token. Other names are rejected, so that no issuer relies on a
/// restriction that is not enforced.
const NAMES: [&str; 22] = [
    "sv", "ss", "srt", "sp", "st", "se", "si", "sip", "spr", "ses", "sr", "tn", "spk", "srk",
    "epk", "erk", "rscc", "rscd", "rsce", "rscl", "rsct", "sig",
];

/// Whether a parameter of a query string is a field of a token.
#[must_use]
pub fn is_field(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The characters that need no escape in a query string.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',');

/// The error of an invalid token. Quotes at most one field of it, and never the signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct Malformed {
    /// The field; `token` if it is not a field.
    pub field: &'static str,
    /// The rule that it breaks, and its value.
    pub rule: String,
}

impl Malformed {
    pub(super) fn new(field: &'static str, rule: impl Into<String>) -> Self {
        Self { field, rule: rule.into() }
    }
}

/// The fields of a token, in the order of [`NAMES`].
#[derive(Default)]
pub(super) struct Fields([Option<String>; NAMES.len()]);

impl Fields {
    /// Parses a token. A leading `?`, as in tokens copied from addresses, is skipped.
    pub(super) fn parse(text: &str) -> Result<Self, Malformed> {
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
            let place = NAMES.iter().position(|known| *known == name);
            let Some((place, name)) = place.and_then(|at| Some((at, *NAMES.get(at)?))) else {
                return Err(whole(format!("field {number}: is none that a token may have")));
            };
            let value = decode(name, value)?;
            match fields.0.get_mut(place) {
                Some(slot) if slot.is_none() => *slot = Some(value),
                _ => return Err(Malformed::new(name, "must not be there more than once")),
            }
        }
        Ok(fields)
    }

    /// Removes a field and returns it.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let place = NAMES.iter().position(|known| *known == name)?;
        self.0.get_mut(place)?.take()
    }

    /// Removes a field and returns it; none if it is empty, which is signed like an absent one.
    pub(super) fn filled(&mut self, name: &str) -> Option<String> {
        self.take(name).filter(|value| !value.is_empty())
    }

    /// Whether a field remains.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut fields = NAMES.iter().zip(&self.0);
        fields.any(|(known, value)| *known == name && value.is_some())
    }

    /// A field that was not consumed.
    pub(super) fn left(&self) -> Option<&'static str> {
        let mut fields = NAMES.iter().zip(&self.0);
        fields.find(|(_, value)| value.is_some()).map(|(name, _)| *name)
    }
}

/// The value of a field, as a query string writes it.
fn decode(name: &'static str, value: &str) -> Result<String, Malformed> {
    // Most values need no decoding, and this runs for every call with a token.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%' && byte != b'+';
    if value.bytes().all(is_plain) {
        return Ok(value.to_owned());
    }
    let mut rest = value.split('%');
    rest.next();
    let escaped = |part: &str| {
        part.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !rest.all(escaped) {
        return Err(Malformed::new(name, "must have two hexadecimal digits after each %"));
    }
    let spaced = match value.contains('+') {
        true => Cow::Owned(value.replace('+', " ")),
        false => Cow::Borrowed(value),
    };
    let decoded = percent_decode_str(&spaced).decode_utf8();
    let decoded = decoded.map_err(|_| Malformed::new(name, "must be UTF-8 behind its escapes"))?;
    // Line breaks separate the fields in the signed text: within a field they would move its end.
    if decoded.chars().any(char::is_control) {
        return Err(Malformed::new(name, "must not have control characters"));
    }
    Ok(decoded.into_owned())
}

/// Writes the present fields as a query string.
pub(super) fn write<'a>(fields: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        let Some(value) = value else {
            continue;
        };
        if !text.is_empty() {
            text.push('&');
        }
        text.push_str(name);
        text.push('=');
        text.extend(utf8_percent_encode(value, ESCAPED));
    }
    text
}
