//! Which records match.

use super::*;

/// A filter, and whether the record matches it.
const CASES: &[(&str, bool)] = &[
    ("severity ge 'error'", true),
    ("severity gt 'error'", false),
    ("severity eq 'error'", true),
    ("severity eq 18.0 and severity lt 18.5", true),
    ("severity_text eq 'ERR'", true),
    ("severity_text eq 'err'", false),
    ("contains(body, 'time')", true),
    ("contains(body, '')", true),
    ("startswith(body, 'time')", false),
    ("startswith(body, 'a time')", true),
    ("body gt 'a' and body lt 'b'", true),
    ("event_name eq 'e' or scope eq 's'", true),
    ("event_name ne 'x'", false),
    ("scope ne 'x'", true),
    ("value gt 1 and value lt 2L", true),
    ("trace_id eq '000102030405060708090A0b0c0d0e0f'", true),
    ("startswith(trace_id, '0001')", true),
    ("startswith(trace_id, '00F1')", false),
    ("span_id ne '0000000000000001'", false),
    ("not span_id eq '0000000000000001'", true),
    ("time ge datetime'1970-01-01T00:00:01Z'", true),
    ("time gt datetime'1970-01-01T00:00:01Z'", true),
    ("time gt datetime'1970-01-01T00:00:01.0000001Z'", false),
    ("time gt datetime'1601-01-01T00:00:00Z'", true),
    ("sequence eq 7", true),
    ("attributes/int eq 5", true),
    ("attributes/int eq 5.0", true),
    ("attributes/int lt 5.5", true),
    ("attributes/double eq 5", true),
    ("attributes/double ge 6L", false),
    ("attributes/big gt 9007199254740992.0", true),
    ("attributes/flag", true),
    ("attributes/flag gt false", true),
    ("attributes/bytes eq X'00ff'", true),
    ("attributes/text gt '\u{ffff}'", true),
    ("contains(attributes/text, '𝄞')", true),
    ("contains(attributes/int, '5')", false),
    // Values of different types are unequal, and neither is greater.
    ("attributes/text ne 5", true),
    ("attributes/text gt 5 or attributes/text lt 5", false),
    ("attributes/int eq '5'", false),
    ("attributes/absent ne 5", false),
    ("not attributes/absent eq 5", true),
    ("attributes/'a key' eq 'x' and resource/'a key' eq 'y'", true),
    ("resource/int eq 5", false),
    ("true", true),
    ("not true", false),
];

#[test]
fn records_match_by_their_properties() {
    let values = [
        ("int", ValueRef::Int(5)),
        ("double", ValueRef::Double(5.0)),
        ("big", ValueRef::Int(9_007_199_254_740_993)),
        ("flag", ValueRef::Bool(true)),
        ("bytes", ValueRef::Bytes(vec![0, 255].into())),
        // After every character of the first plane by bytes; by UTF-16 code unit it is not.
        ("text", text("𝄞")),
        ("a key", text("x")),
    ];
    let row = SampleRow {
        time: 1_000_000_050,
        sequence: 7,
        severity: 18,
        severity_text: "ERR".to_owned(),
        body: Some("a time out".to_owned()),
        value: Some(1.5),
        trace_id: (0..16).collect(),
        attributes: values.map(|(key, value)| (key.to_owned(), value)).into(),
        resource: [("a key".to_owned(), text("y"))].into(),
        scope: "s".to_owned(),
        ..SampleRow::default()
    };
    for (text, expected) in CASES {
        assert_eq!(filter(text).matches(&row), *expected, "{text}");
    }
}

#[test]
fn comparisons_with_absent_properties_are_false() {
    let row = SampleRow::default();
    for property in ["severity", "value", "attributes/a", "resource/a"] {
        for operator in ["eq", "ne", "lt", "ge"] {
            assert!(!filter(&format!("{property} {operator} 0")).matches(&row), "{property}");
        }
    }
    for property in ["severity_text", "body", "event_name", "trace_id", "span_id", "scope"] {
        for condition in [format!("{property} ne 'a'"), format!("contains({property}, '')")] {
            assert!(!filter(&condition).matches(&row), "{condition}");
        }
    }
}
