//! The texts of headers, and their order.

use std::borrow::Cow;

/// The bytes of a header as text: UTF-8, or else Latin-1, in which some clients send non-ASCII
/// text.
pub(super) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text.trim_ascii()),
        Err(_) => Cow::Owned(bytes.trim_ascii().iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// The value with every run of white space as one space.
pub(super) fn collapsed(value: &str) -> Cow<'_, str> {
    let is_plain = !value.contains('\t') && !value.contains("  ");
    if is_plain {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

/// The sort key of header names in the culture-aware order: first without `-` and `'`, symbols
/// before digits before letters; then by the positions of those.
pub(super) fn word_order(name: &str) -> (Vec<usize>, Vec<usize>) {
    /// Every other character that a name of a header can have, in their order.
    const CHARACTERS: &[u8] = b"!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";
    const LAST: &[u8] = b"'-";
    let rank = |among: &[u8], byte: u8| among.iter().position(|candidate| *candidate == byte);
    let words = name.bytes().filter_map(|byte| rank(CHARACTERS, byte));
    let marks = name.bytes().map(|byte| rank(LAST, byte).map_or(0, |rank| rank + 1));
    (words.collect(), marks.collect())
}
