//! Key parts whose bytes sort like the values they encode.
//!
//! Keys are concatenations of parts. Two properties make that safe: the bytes of a part compare
//! like its value, and no part is a prefix of another part of the same type, so a longer value
//! never runs into the part that follows it. Numbers have a fixed width; text ends with a mark
//! that no text contains.
//!
//! Text is ordered by UTF-16 code unit, the order in which table keys are compared everywhere
//! else. UTF-8 bytes have that order already, with one exception: U+E000 to U+FFFF come after
//! the supplementary characters. Their lead bytes EE and EF are therefore stored as F5 and F6,
//! which UTF-8 never uses. The byte 00 is stored as 00 FF, and 00 01 ends the text.
//!
//! This file is independent of what a key means; each service has its own list of keys.

use std::cmp::Ordering;

const ESCAPED_ZERO: u8 = 0xFF;
const TERMINATOR: u8 = 0x01;

/// Appends a text.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    for byte in text.bytes() {
        out.push(to_ordered(byte));
        if byte == 0 {
            out.push(ESCAPED_ZERO);
        }
    }
    out.extend_from_slice(&[0, TERMINATOR]);
}

/// Takes a text from the front; `None` if there is none, and then `input` is left as it was.
pub fn take_text(input: &mut &[u8]) -> Option<String> {
    let mut text = Vec::new();
    let mut rest = *input;
    loop {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        match byte {
            0 => {
                let (&mark, tail) = rest.split_first()?;
                rest = tail;
                match mark {
                    TERMINATOR => break,
                    ESCAPED_ZERO => text.push(0),
                    _ => return None,
                }
            }
            0xEE | 0xEF => return None,
            0xF5 => text.push(0xEE),
            0xF6 => text.push(0xEF),
            other => text.push(other),
        }
    }
    let text = String::from_utf8(text).ok()?;
    *input = rest;
    Some(text)
}

/// Compares two texts by UTF-16 code unit, as their encodings compare.
#[must_use]
pub fn compare_text(a: &str, b: &str) -> Ordering {
    a.bytes().map(to_ordered).cmp(b.bytes().map(to_ordered))
}

/// Appends a number that sorts ascending.
pub fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Takes a number from the front; `None` if there is none, and then `input` is left as it was.
pub fn take_u64(input: &mut &[u8]) -> Option<u64> {
    let (bytes, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(u64::from_be_bytes(*bytes))
}

/// Appends a number that sorts descending: the greatest comes first.
pub fn push_u64_descending(out: &mut Vec<u8>, number: u64) {
    push_u64(out, !number);
}

/// Takes a number of [`push_u64_descending`] from the front; `None` if there is none, and then
/// `input` is left as it was.
pub fn take_u64_descending(input: &mut &[u8]) -> Option<u64> {
    take_u64(input).map(|number| !number)
}

/// Lead bytes of U+E000 to U+FFFF go after F4, the last lead byte of a supplementary character.
/// No other byte of UTF-8 is EE or EF.
fn to_ordered(byte: u8) -> u8 {
    match byte {
        0xEE => 0xF5,
        0xEF => 0xF6,
        other => other,
    }
}

#[cfg(test)]
mod tests;
