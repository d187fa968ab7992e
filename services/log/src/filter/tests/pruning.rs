//! What a filter reads, and what every match of it has.

use super::*;

const SECOND: u64 = 1_000_000_000;

#[test]
fn conjuncts_on_time_bound_the_matches() {
    let at = "datetime'1970-01-01T00:00:10Z'";
    for (text, times) in [
        (format!("time ge {at}"), 10 * SECOND..u64::MAX),
        (format!("time gt {at}"), 10 * SECOND + 1..u64::MAX),
        (format!("time lt {at}"), 0..10 * SECOND),
        (format!("time le {at}"), 0..10 * SECOND + 1),
        (format!("time eq {at}"), 10 * SECOND..10 * SECOND + 1),
        (format!("time ne {at}"), 0..u64::MAX),
        (format!("time ge {at} or body eq 'a'"), 0..u64::MAX),
        (format!("not (time ge {at})"), 0..u64::MAX),
        (
            format!("body eq 'a' and {at} le time and time lt datetime'1970-01-01T00:00:20Z'"),
            10 * SECOND..20 * SECOND,
        ),
        ("time lt datetime'1960-01-01T00:00:00Z'".to_owned(), 0..0),
        ("time lt datetime'9999-01-01T00:00:00Z'".to_owned(), 0..u64::MAX),
    ] {
        assert_eq!(filter(&text).times(), times, "{text}");
    }
}

#[test]
fn conjuncts_on_identifiers_and_attributes_are_required() {
    let trace = "000102030405060708090A0B0C0D0E0F";
    let trace_id = RequiredEquality::TraceId(std::array::from_fn(|at| u8::try_from(at).unwrap()));
    let attribute = |value| RequiredEquality::Attribute("a".to_owned(), value);
    for (text, required) in [
        (format!("trace_id eq '{trace}'"), vec![trace_id.clone()]),
        (
            format!("'{trace}' eq trace_id and (attributes/a eq 'x' and severity gt 1)"),
            vec![trace_id, attribute(text("x"))],
        ),
        ("attributes/a".to_owned(), vec![attribute(ValueRef::Bool(true))]),
        ("attributes/a eq X'01'".to_owned(), vec![attribute(ValueRef::Bytes(vec![1].into()))]),
        // 5.0 equals 5 too.
        ("attributes/a eq 5".to_owned(), vec![]),
        ("attributes/a ne 'x'".to_owned(), vec![]),
        ("resource/a eq 'x'".to_owned(), vec![]),
        ("trace_id eq '00'".to_owned(), vec![]),
        (format!("trace_id eq '+{}'", "0".repeat(31)), vec![]),
        (format!("trace_id eq '{trace}' or attributes/a eq 'x'"), vec![]),
        (format!("not (trace_id eq '{trace}')"), vec![]),
    ] {
        assert_eq!(filter(&text).required(), required, "{text}");
    }
}

#[test]
fn the_properties_that_are_read_are_listed_once() {
    let read = filter("body eq 'a' or attributes/b eq 1 and (not body ne 'c' or resource/b eq 1)");
    let expected =
        [Property::Body, Property::Attribute("b".to_owned()), Property::Resource("b".to_owned())];
    assert_eq!(read.properties(), expected);
}
