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
fn broken_text_is_rejected_and_left_in_place() {
    for broken in
        [&b""[..], b"a", b"a\0", b"a\0\x02", b"\xEE\x80\x80\0\x01", b"\xFF\0\x01", b"\x80\0\x01"]
    {
        let mut input = broken;

        assert_eq!(take_text(&mut input), None, "{broken:?}");
        assert_eq!(input, broken);
    }
}

#[test]
fn a_short_number_is_rejected_and_left_in_place() {
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
    fn any_bytes_are_accepted_or_rejected_without_panic(bytes: Vec<u8>) {
        let mut input = &bytes[..];
        if let Some(text) = take_text(&mut input) {
            let mut again = encoded(&text);
            again.extend_from_slice(input);

            prop_assert_eq!(again, bytes);
        }
    }
}
