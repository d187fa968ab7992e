//! The values of fields in a query string.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Malformed;

/// The characters that need no escape in a query string.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',');

/// The value of a field, as a query string writes it.
pub(super) fn decode(name: &'static str, value: &str) -> Result<String, Malformed> {
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
