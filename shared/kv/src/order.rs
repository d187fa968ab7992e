//! Key parts whose bytes sort like the values they stand for.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        push_text(&mut out, text);
        out
    }

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    /// Characters near every boundary of the encoding, and any other.
    fn any_text() -> impl Strategy<Value = String> {
        let edge = prop::sample::select(vec![
            '\0',
            '\u{1}',
            '\u{7f}',
            '\u{80}',
            '\u{7ff}',
            '\u{800}',
            '\u{d7ff}',
            '\u{e000}',
            '\u{efff}',
            '\u{f000}',
            '\u{ffff}',
            '\u{10000}',
            '\u{10ffff}',
            'a',
        ]);
        prop::collection::vec(prop_oneof![edge, any::<char>()], 0..6)
            .prop_map(|chars| chars.into_iter().collect())
    }

    #[test]
    fn private_use_characters_sort_after_supplementary_ones() {
        let supplementary = "\u{10000}";
        let private_use = "\u{e000}";

        assert!(supplementary > private_use, "UTF-8 has them the other way round");
        assert!(encoded(supplementary) < encoded(private_use));
        assert_eq!(compare_text(supplementary, private_use), Ordering::Less);
    }

    #[test]
    fn broken_text_is_refused_and_left_in_place() {
        for broken in [
            &b""[..],
            b"a",
            b"a\0",
            b"a\0\x02",
            b"\xEE\x80\x80\0\x01",
            b"\xFF\0\x01",
            b"\x80\0\x01",
        ] {
            let mut input = broken;

            assert_eq!(take_text(&mut input), None, "{broken:?}");
            assert_eq!(input, broken);
        }
    }

    #[test]
    fn a_short_number_is_refused_and_left_in_place() {
        let mut input = &[1, 2, 3, 4, 5, 6, 7][..];

        assert_eq!(take_u64(&mut input), None);
        assert_eq!(take_u64_descending(&mut input), None);
        assert_eq!(input.len(), 7);
    }

    proptest! {
        #[test]
        fn text_comes_back_and_leaves_what_follows(text in any_text(), rest: Vec<u8>) {
            let mut key = encoded(&text);
            key.extend_from_slice(&rest);
            let mut input = &key[..];

            prop_assert_eq!(take_text(&mut input), Some(text));
            prop_assert_eq!(input, &rest[..]);
        }

        #[test]
        fn encodings_compare_like_utf16(a in any_text(), b in any_text()) {
            let expected = utf16(&a).cmp(&utf16(&b));

            prop_assert_eq!(encoded(&a).cmp(&encoded(&b)), expected);
            prop_assert_eq!(compare_text(&a, &b), expected);
        }

        #[test]
        fn concatenations_compare_part_by_part(
            a in (any_text(), any::<u64>(), any_text(), any::<u64>()),
            b in (any_text(), any::<u64>(), any_text(), any::<u64>()),
        ) {
            let key = |parts: &(String, u64, String, u64)| {
                let mut out = encoded(&parts.0);
                push_u64(&mut out, parts.1);
                push_text(&mut out, &parts.2);
                push_u64_descending(&mut out, parts.3);
                out
            };
            let expected = (utf16(&a.0), a.1, utf16(&a.2), std::cmp::Reverse(a.3))
                .cmp(&(utf16(&b.0), b.1, utf16(&b.2), std::cmp::Reverse(b.3)));

            prop_assert_eq!(key(&a).cmp(&key(&b)), expected);
        }

        #[test]
        fn no_text_is_a_prefix_of_another(a in any_text(), b in any_text()) {
            prop_assume!(a != b);

            prop_assert!(!encoded(&b).starts_with(&encoded(&a)));
        }

        #[test]
        fn numbers_come_back_and_keep_their_order(a: u64, b: u64) {
            let (mut up, mut down) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
            push_u64(&mut up.0, a);
            push_u64(&mut up.1, b);
            push_u64_descending(&mut down.0, a);
            push_u64_descending(&mut down.1, b);

            prop_assert_eq!(up.0.cmp(&up.1), a.cmp(&b));
            prop_assert_eq!(down.0.cmp(&down.1), b.cmp(&a));
            prop_assert_eq!(take_u64(&mut &up.0[..]), Some(a));
            prop_assert_eq!(take_u64_descending(&mut &down.0[..]), Some(a));
        }

        #[test]
        fn any_bytes_are_taken_or_refused_without_panic(bytes: Vec<u8>) {
            let mut input = &bytes[..];
            if let Some(text) = take_text(&mut input) {
                let mut again = encoded(&text);
                again.extend_from_slice(input);

                prop_assert_eq!(again, bytes);
            }
        }
    }
}
