//! Literals: what is one, what is none, and how each is written.

use trestle_model::time::Ticks;
use uuid::Uuid;

use super::*;

/// The literal that a property is compared with.
fn literal(text: &str) -> Literal {
    match plain(&format!("a eq {text}")) {
        Expr::Compare(comparison) => comparison.literal,
        other => panic!("{text}: {other:?}"),
    }
}

fn rejected(text: &str) -> String {
    plain_error(&format!("a eq {text}")).1
}

#[test]
fn numbers_have_the_type_of_their_form() {
    for (text, expected) in [
        ("0", Literal::Int32(0)),
        ("-0", Literal::Int32(0)),
        ("007", Literal::Int32(7)),
        ("2147483647", Literal::Int32(i32::MAX)),
        ("-2147483648", Literal::Int32(i32::MIN)),
        ("2147483648L", Literal::Int64(2_147_483_648)),
        ("9223372036854775807L", Literal::Int64(i64::MAX)),
        ("-9223372036854775808L", Literal::Int64(i64::MIN)),
        ("1.5", Literal::Double(1.5)),
        ("-1.5", Literal::Double(-1.5)),
        ("1e3", Literal::Double(1000.0)),
        ("1E+3", Literal::Double(1000.0)),
        ("1.25e-2", Literal::Double(0.0125)),
        ("1.7976931348623157e308", Literal::Double(f64::MAX)),
        ("5e-324", Literal::Double(5e-324)),
        ("1e-400", Literal::Double(0.0)),
    ] {
        assert_eq!(literal(text), expected, "{text}");
    }
}

#[test]
fn malformed_numbers_are_shown_as_a_whole() {
    for (text, expected) in [
        ("1.", "Malformed number `1.`"),
        ("-.5", "Malformed number `-.5`"),
        ("1.5.2", "Malformed number `1.5.2`"),
        ("1e", "Malformed number `1e`"),
        ("1e+", "Malformed number `1e+`"),
        ("1x", "Malformed number `1x`"),
        ("0x10", "Malformed number `0x10`"),
        ("--1", "Malformed number `-`"),
        ("1_000", "Malformed number `1_000`"),
        ("L", ""),
        ("-L", "Malformed number `-L`"),
        ("1.5L", "Malformed number `1.5L`"),
        ("1l", "Malformed number `1l`"),
        ("1٣", "Malformed number `1٣`"),
        ("2147483648", "out of the range of 32 bits; longer ones end in `L`"),
        ("99999999999999999999", "out of the range of 64 bits"),
        ("-9223372036854775809", "out of the range of 64 bits"),
        ("9223372036854775808L", "out of the range of 64 bits"),
        ("1e309", "out of the range of a double"),
        ("-1e309", "out of the range of a double"),
    ] {
        let error = rejected(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    // A sign belongs to a number at its beginning and after `e` only.
    assert!(rejected("1-2").ends_with("found `-2`"), "{}", rejected("1-2"));
}

#[test]
fn texts_escape_quotes_by_doubling_them() {
    for (text, expected) in [
        ("''", ""),
        ("''''", "'"),
        ("'it''s'", "it's"),
        ("'a\nb'", "a\nb"),
        ("'\\n'", "\\n"),
        ("'é𝄞\u{0}'", "é𝄞\u{0}"),
    ] {
        assert_eq!(literal(text), Literal::String(expected.to_owned()), "{text}");
    }
    for text in ["'", "'''", "'a", "'a''"] {
        assert!(rejected(text).contains("Text has no closing quote"), "{text}");
    }
}

#[test]
fn times_have_minutes_and_up_to_seven_digits_of_a_second() {
    let at = |seconds, nanos| Literal::DateTime(Ticks::from_unix(seconds, nanos).unwrap());
    for (text, expected) in [
        ("datetime'1970-01-01T00:00Z'", at(0, 0)),
        ("datetime'1970-01-01T00:00'", at(0, 0)),
        ("datetime'1970-01-01T00:00:01Z'", at(1, 0)),
        ("datetime'1970-01-01T00:00:01.5'", at(1, 500_000_000)),
        ("datetime'1970-01-01T00:00:01.1234567Z'", at(1, 123_456_700)),
        ("datetime'1970-01-01T00:00:01.123456789Z'", at(1, 123_456_700)),
        ("datetime'1970-01-01T01:00:01+01:00'", at(1, 0)),
        ("datetime'1970-01-01T01:00:01+0100'", at(1, 0)),
        (
            "datetime'1601-01-01T00:00:00Z'",
            Literal::DateTime(Ticks::from_unix(-11_644_473_600, 0).unwrap()),
        ),
    ] {
        assert_eq!(literal(text), expected, "{text}");
    }
    for text in [
        "datetime''",
        "datetime'1970-01-01'",
        "datetime'1970-02-30T00:00:00Z'",
        "datetime'1970-01-01T24:00:00Z'",
        "datetime'1970-01-01T00:00:00+01'",
        "datetime'1970-01-01T00:00:00.Z'",
        "datetime'1970-01-01T00:00:00ZZ'",
        "datetime'ééééééééÿ'",
    ] {
        let error = rejected(text);
        assert!(error.contains("Expected datetime'YYYY"), "{text}: {error}");
    }
}

#[test]
fn guids_and_bytes_are_hexadecimal_in_any_case() {
    let guid = "0123456789abcdef0123456789abcdef";
    let expected = Literal::Guid(Uuid::try_parse(guid).unwrap());
    assert_eq!(literal("guid'01234567-89AB-cdef-0123-456789ABCDEF'"), expected);
    for text in ["guid''", &format!("guid'{guid}'"), "guid'{01234567-89ab-cdef-0123-456789abcdef}'"]
    {
        assert!(rejected(text).contains("Expected guid'8-4-4-4-12 hex digits'"), "{text}");
    }
    assert_eq!(literal("X''"), Literal::Binary(bytes::Bytes::new()));
    assert_eq!(literal("X'00Ff'"), Literal::Binary(vec![0, 255].into()));
    assert_eq!(literal("binary'00Ff'"), Literal::Binary(vec![0, 255].into()));
    for text in ["X'0'", "X'0g'", "X'é'", "X'+1'"] {
        assert!(rejected(text).contains("Expected X'pairs of hex digits'"), "{text}");
    }
}

#[test]
fn the_canonical_text_of_a_literal_is_unambiguous() {
    for (literal, text) in [
        (Literal::String("it's".to_owned()), "'it''s'"),
        (Literal::Int32(-1), "-1"),
        (Literal::Int64(-1), "-1L"),
        (Literal::Double(1.0), "1.0"),
        (Literal::Double(-0.0), "-0.0"),
        (Literal::Double(1e300), "1e300"),
        (Literal::Double(1e-7), "1e-7"),
        (Literal::Boolean(false), "false"),
        (
            Literal::DateTime(Ticks::from_unix(0, 100).unwrap()),
            "datetime'1970-01-01T00:00:00.0000001Z'",
        ),
        (Literal::Guid(Uuid::nil()), "guid'00000000-0000-0000-0000-000000000000'"),
        (Literal::Binary(vec![0, 255].into()), "X'00ff'"),
    ] {
        assert_eq!(literal.to_string(), text);
    }
}

#[test]
fn names_have_the_shape_of_identifiers() {
    for c in ['a', 'Z', '_', 'é', 'ǅ', 'ʰ', '中', 'Ⅷ'] {
        assert!(is_name_start(c) && is_name_part(c), "{c}");
    }
    for c in ['0', '٣', '\u{301}', '\u{903}', '\u{200d}', '‿'] {
        assert!(!is_name_start(c) && is_name_part(c), "{c:?}");
    }
    for c in ['-', '.', ' ', '€', '\u{0}', '\u{2028}', '😀'] {
        assert!(!is_name_part(c), "{c:?}");
    }
    assert_eq!(
        (shown('a'), shown('\u{7f}'), shown('\u{85}')),
        ("a".into(), "U+007F".into(), "U+0085".into())
    );
}
