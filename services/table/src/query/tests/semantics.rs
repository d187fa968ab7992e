//! Which entities a filter matches.

use bytes::Bytes;
use trestle_model::{etag::parse_time, time::Ticks};
use uuid::Uuid;

use super::*;
use crate::{
    entity::{Entity, EntityKey},
    stored::{encode_body, seal, wire},
    value::Value,
};

/// An encoded entity with these properties.
pub(super) fn encoded(properties: &[(&str, Value)]) -> Bytes {
    let key = EntityKey { partition_key: "p".to_owned(), row_key: "r".to_owned() };
    let mut properties: Vec<_> =
        properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    properties.sort_by(|a, b| a.0.cmp(&b.0));
    let written_at = parse_time("2026-01-31T08:00:00Z").unwrap();
    wire(&seal(&encode_body(&Entity { key, properties }), written_at)).unwrap()
}

fn matches(filter: &str, properties: &[(&str, Value)]) -> bool {
    Filter::parse(filter).unwrap().unwrap().matches(&encoded(properties)).unwrap()
}

/// Checks all operators: the value is expected to be `lt`, `eq` or `gt`, or neither (`none`).
fn assert_compares(value: &Value, literal: &str, expected: &str) {
    let holding: &[&str] = match expected {
        "lt" => &["ne", "lt", "le"],
        "eq" => &["eq", "ge", "le"],
        "gt" => &["ne", "gt", "ge"],
        _ => &["ne"],
    };
    for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
        let filter = format!("v {operator} {literal}");
        let found = matches(&filter, &[("v", value.clone())]);
        assert_eq!(found, holding.contains(&operator), "{value:?}: {filter}");
        assert_eq!(matches(&format!("not ({filter})"), &[("v", value.clone())]), !found);
    }
}

/// A text.
pub(super) fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

#[test]
fn values_of_one_type_compare_naturally() {
    let time = |text| Value::DateTime(parse_time(text).unwrap());
    let binary = |bytes: &'static [u8]| Value::Binary(Bytes::from_static(bytes));

    assert_compares(&Value::Boolean(false), "true", "lt");
    assert_compares(&Value::Boolean(true), "true", "eq");
    assert_compares(&Value::Int32(-5), "-4", "lt");
    assert_compares(&Value::Int64(i64::MAX), "9223372036854775806L", "gt");
    assert_compares(&Value::Double(-0.0), "0.0", "eq");
    assert_compares(&Value::Double(f64::INFINITY), "1e308", "gt");
    assert_compares(&time("2026-01-31T08:00:00.0000001Z"), "datetime'2026-01-31T08:00:00Z'", "gt");
    assert_compares(&binary(b"\xFF"), "X'00ff'", "gt");
    assert_compares(&binary(b"ab"), "X'616263'", "lt");
    let guid = Value::Guid(Uuid::from_u128(0xAB << 120));
    assert_compares(&guid, "guid'AB000000-0000-0000-0000-000000000000'", "eq");
    assert_compares(&guid, "guid'1b000000-ffff-ffff-ffff-ffffffffffff'", "gt");
}

#[test]
fn text_compares_by_utf16_code_unit() {
    assert_compares(&text("B"), "'a'", "lt");
    assert_compares(&text("aa"), "'a'", "gt");
    assert_compares(&text("é"), "'e\u{301}'", "gt");
    assert_compares(&text("\u{10000}"), "'\u{FFFF}'", "lt");
    assert_compares(&text("a\u{10000}"), "'a\u{E000}'", "lt");
    assert_compares(&text("\u{10000}"), "'\u{D7FF}'", "gt");
    assert_compares(&text(""), "''", "eq");
}

#[test]
fn numbers_of_different_types_compare_by_exact_value() {
    const TWO_53: i64 = 1 << 53;
    assert_compares(&Value::Int64(5), "5", "eq");
    assert_compares(&Value::Int32(5), "5L", "eq");
    assert_compares(&Value::Int32(5), "5.0", "eq");
    assert_compares(&Value::Int32(5), "5.5", "lt");
    assert_compares(&Value::Int32(-5), "-5.5", "gt");
    assert_compares(&Value::Double(5.0), "5", "eq");
    assert_compares(&Value::Double(-5.5), "-5L", "lt");
    // 2^53 + 1 is not a double; rounding would make it equal.
    assert_compares(&Value::Int64(TWO_53 + 1), "9007199254740992.0", "gt");
    assert_compares(&Value::Double(9_007_199_254_740_992.0), "9007199254740993L", "lt");
    assert_compares(&Value::Int64(i64::MAX), "9223372036854775808.0", "lt");
    assert_compares(&Value::Int64(i64::MIN), "-9223372036854775808.0", "eq");
    assert_compares(&Value::Double(f64::NEG_INFINITY), "-9223372036854775808L", "lt");
}

#[test]
fn nan_compares_only_as_not_equal() {
    for literal in ["0", "0L", "0.5"] {
        assert_compares(&Value::Double(f64::NAN), literal, "none");
    }
}

#[test]
fn values_of_other_types_are_ordered_by_type() {
    let ascending = [
        (Value::Boolean(true), "true"),
        (Value::Double(1e300), "9223372036854775807L"),
        (Value::DateTime(Ticks::MAX), "datetime'1601-01-01T00:00:00Z'"),
        (Value::Guid(Uuid::max()), "guid'00000000-0000-0000-0000-000000000000'"),
        (Value::Binary(Bytes::from_static(b"\xFF")), "X''"),
        (text(""), "''"),
    ];

    for (i, (value, _)) in ascending.iter().enumerate() {
        for (j, (_, literal)) in ascending.iter().enumerate() {
            match i.cmp(&j) {
                std::cmp::Ordering::Less => assert_compares(value, literal, "lt"),
                std::cmp::Ordering::Greater => assert_compares(value, literal, "gt"),
                std::cmp::Ordering::Equal => {}
            }
        }
    }
}

#[test]
fn every_comparison_with_a_missing_property_is_false() {
    for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
        assert!(!matches(&format!("v {operator} ''"), &[]), "{operator}");
        assert!(matches(&format!("not (v {operator} '')"), &[]), "{operator}");
    }
    assert!(!matches("v", &[]));
    assert!(matches("not v", &[]));
}

#[test]
fn a_property_alone_is_true_only_as_the_boolean_true() {
    assert!(matches("v", &[("v", Value::Boolean(true))]));
    for value in [Value::Boolean(false), Value::Int32(1), text("true")] {
        assert!(!matches("v", &[("v", value)]));
    }
}

#[test]
fn keys_and_timestamp_can_be_compared() {
    assert!(matches("PartitionKey eq 'p' and RowKey gt 'q'", &[]));
    assert!(!matches("RowKey eq 'R'", &[]));
    assert!(matches("Timestamp eq datetime'2026-01-31T08:00:00Z'", &[("z", Value::Int32(1))]));
    assert!(!matches("Timestamp gt datetime'2026-01-31T08:00:00Z'", &[]));
    assert!(matches("Timestamp lt '' and PartitionKey gt 5 and PartitionKey ne 5", &[]));
}

#[test]
fn conditions_combine_by_two_valued_logic() {
    let entity = [("a", Value::Int32(1)), ("b", text("x")), ("c", Value::Boolean(false))];
    let table = [
        ("a eq 1 and b eq 'x'", true),
        ("a eq 1 and c", false),
        ("a eq 2 or b eq 'x'", true),
        ("a eq 2 or c", false),
        ("a eq 1 or b eq 'y' and c", true),
        ("(a eq 1 or b eq 'y') and c", false),
        ("not a eq 2 and not c", true),
        ("not (a eq 1 or missing eq 1)", false),
        ("true", true),
        ("false or a eq 1", true),
        ("A eq 1", false),
    ];

    for (filter, expected) in table {
        assert_eq!(matches(filter, &entity), expected, "{filter}");
    }
}

#[test]
fn a_filter_on_sixty_properties_reads_each() {
    let names: Vec<_> = (0..60).map(|index| format!("p{index}")).collect();
    let entity: Vec<_> =
        names.iter().zip(0..).map(|(name, number)| (name.as_str(), Value::Int32(number))).collect();
    let each: Vec<_> =
        names.iter().zip(0..).map(|(name, number)| format!("{name} eq {number}")).collect();

    assert!(matches(&each.join(" and "), &entity));
    assert!(!matches(&each.join(" and "), &entity[1..]));
}
