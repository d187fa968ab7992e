#![allow(clippy::unwrap_used, reason = "tests")]

use trestle_proto::table::v1::value::Kind;

use super::*;

fn parse(kind: Kind) -> Result<Value, (Reason, String)> {
    let mut violations = Violations::default();
    let value = proto::Value { kind: Some(kind) };
    match Value::parse(value, &"entity.properties[\"p\"]", &mut violations) {
        Ok(value) => {
            assert!(violations.is_empty());
            Ok(value.unwrap())
        }
        Err(RuleBroken) => {
            let fault = violations.check(()).unwrap_err();
            let violation = fault.violations.into_iter().next().unwrap();
            assert_eq!(violation.field, "entity.properties[\"p\"]");
            Err((violation.reason, violation.description))
        }
    }
}

fn time(seconds: i64, nanos: i32) -> Kind {
    Kind::DatetimeValue(prost_types::Timestamp { seconds, nanos })
}

#[test]
fn every_type_round_trips() {
    let guid = "01234567-89ab-cdef-0123-456789abcdef";
    let kinds = [
        Kind::StringValue(" å𝄞 ".to_owned()),
        Kind::StringValue(String::new()),
        Kind::Int32Value(i32::MIN),
        Kind::Int64Value(i64::MAX),
        Kind::DoubleValue(f64::NEG_INFINITY),
        Kind::BooleanValue(false),
        time(-11_644_473_600, 0),
        time(253_402_300_799, 999_999_900),
        Kind::GuidValue(guid.to_owned()),
        Kind::BinaryValue(Bytes::from_static(&[0, 255])),
    ];

    for kind in kinds {
        let back = proto::Value::from(parse(kind.clone()).unwrap());
        assert_eq!(back.kind, Some(kind));
    }
    let nan = parse(Kind::DoubleValue(f64::NAN)).unwrap();
    assert!(matches!(nan, Value::Double(number) if number.is_nan()));
}

#[test]
fn null_parses_to_none_without_a_violation() {
    let mut violations = Violations::default();

    let parsed = Value::parse(proto::Value { kind: None }, &"value", &mut violations);

    assert_eq!(parsed, Ok(None));
    assert!(violations.is_empty());
}

#[test]
fn strings_are_limited_in_utf16_code_units() {
    let max = limits::STRING_UTF16_UNITS_MAX;
    let clefs = |count| Kind::StringValue("𝄞".repeat(count));

    assert!(parse(clefs(max / 2)).is_ok());
    let (reason, text) = parse(clefs(max / 2 + 1)).unwrap_err();
    assert_eq!(reason, Reason::PropertyValueTooLarge);
    assert!(text.contains("utf16_units=`32770`"), "{text}");
    assert!(parse(Kind::StringValue("é".repeat(max))).is_ok());
    assert!(parse(Kind::StringValue("é".repeat(max + 1))).is_err());
}

#[test]
fn binaries_are_limited_in_bytes() {
    let zeros = |count| Kind::BinaryValue(Bytes::from(vec![0; count]));

    assert!(parse(zeros(limits::BINARY_BYTES_MAX)).is_ok());
    let (reason, _) = parse(zeros(limits::BINARY_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(reason, Reason::PropertyValueTooLarge);
}

#[test]
fn rejects_times_outside_1601_to_9999() {
    let outside = [
        time(-11_644_473_601, 999_999_900),
        time(-62_135_596_800, 0),
        time(253_402_300_800, 0),
        time(i64::MAX, 0),
        time(i64::MIN, 0),
    ];

    for kind in outside {
        let (reason, text) = parse(kind.clone()).unwrap_err();
        assert_eq!(reason, Reason::OutOfRangeInput, "{kind:?}");
        assert!(text.contains("1601 to 9999"), "{text}");
    }
    for kind in [time(0, -100), time(0, 1_000_000_000)] {
        let (reason, text) = parse(kind.clone()).unwrap_err();
        assert_eq!(reason, Reason::InvalidInput, "{kind:?}");
        assert!(text.contains("0 to 999999999"), "{text}");
    }
}

#[test]
fn digits_of_a_time_below_a_tick_are_cut_off() {
    for (nanos, stored) in [(50, 0), (199, 100), (999_999_999, 999_999_900)] {
        assert_eq!(parse(time(-1, nanos)), parse(time(-1, stored)), "{nanos}");
    }
}

#[test]
fn guids_accept_one_form_and_render_in_lower_case() {
    let upper = "01234567-89AB-CDEF-0123-456789ABCDEF";
    let rejected = [
        "",
        "0123456789abcdef0123456789abcdef",
        "{01234567-89ab-cdef-0123-456789abcdef}",
        "urn:uuid:01234567-89ab-cdef-0123-456789abcdef",
        "0123456-789ab-cdef-0123-456789abcdef",
        "01234567-89ab-cdef-0123-456789abcdeg",
        "01234567-89ab-cdef-0123-456789abcdé",
    ];

    let value = parse(Kind::GuidValue(upper.to_owned())).unwrap();

    assert_eq!(proto::Value::from(value).kind, Some(Kind::GuidValue(upper.to_lowercase())));
    for text in rejected {
        let (reason, _) = parse(Kind::GuidValue(text.to_owned())).unwrap_err();
        assert_eq!(reason, Reason::InvalidInput, "{text}");
    }
}

#[test]
fn sizes_match_those_that_azure_publishes() {
    let sizes = [
        (Value::String("a𝄞".to_owned()), 4 + 2 * 3),
        (Value::Binary(Bytes::from_static(b"abc")), 7),
        (Value::DateTime(Ticks::MAX), 8),
        (Value::Int64(1), 8),
        (Value::Double(1.0), 8),
        (Value::Guid(Uuid::nil()), 16),
        (Value::Int32(1), 4),
        (Value::Boolean(true), 1),
    ];

    for (value, size) in sizes {
        assert_eq!(value.size(), size, "{value:?}");
    }
}

#[test]
fn utf16_lengths_equal_those_of_the_encoding() {
    for text in ["", "abc", "é", "\u{FFFF}", "𝄞", "a𝄞\u{E000}é"] {
        for count in [1, 126, 127, 128, 1000] {
            let text = text.repeat(count);
            assert_eq!(utf16_len(&text), text.encode_utf16().count(), "{text}");
        }
    }
}
