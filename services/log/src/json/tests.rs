use proptest::prelude::*;
use prost::Message as _;
use trestle_proto::opentelemetry::proto::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, KeyValueList, any_value::Value,
};

use super::*;
use crate::{
    record::{any_value_ref, entries_of, find_entry},
    row::ValueRef,
    samples,
};

fn json_of(entries: &[(&str, Option<Value>)]) -> String {
    let entry = |(key, value): &(&str, Option<Value>)| {
        samples::entry(((*key).to_owned(), AnyValue { value: value.clone() }))
    };
    let list = KeyValueList { values: entries.iter().map(entry).collect() };
    let mut json = String::new();
    write_object(&mut json, entries_of(&list.encode_to_vec(), 1)).unwrap();
    json
}

#[test]
fn types_are_visible_in_the_text() {
    let text = |text: &str| Some(Value::StringValue(text.to_owned()));
    let json = json_of(&[
        ("s", text("a\"\\\n\u{1}é")),
        ("i", Some(Value::IntValue(-7))),
        ("d", Some(Value::DoubleValue(7.0))),
        ("e", Some(Value::DoubleValue(1e300))),
        ("n", Some(Value::DoubleValue(f64::NAN))),
        ("b", Some(Value::BytesValue(bytes::Bytes::from_static(b"hi")))),
        ("t", Some(Value::BoolValue(true))),
        ("z", None),
        ("$bytes", text("x")),
    ]);

    assert_eq!(
        json,
        r#"{"s":"a\"\\\n\u0001é","i":-7,"d":7.0,"e":1e+300,"n":{"$double":"NaN"},"#.to_owned()
            + r#""b":{"$bytes":"aGk="},"t":true,"z":null,"$$bytes":"x"}"#
    );
}

#[test]
fn members_are_found_by_key_and_nowhere_else() {
    let nested = KeyValueList {
        values: vec![samples::entry((
            "inner".to_owned(),
            AnyValue { value: Some(Value::IntValue(1)) },
        ))],
    };
    let json = json_of(&[
        ("text", Some(Value::StringValue("inner".to_owned()))),
        ("map", Some(Value::KvlistValue(nested))),
        ("a\"b", Some(Value::IntValue(2))),
        ("$x", Some(Value::DoubleValue(f64::INFINITY))),
    ]);

    assert_eq!(find_member(&json, "inner"), None);
    assert_eq!(find_member(&json, "map"), None);
    assert_eq!(find_member(&json, "tex"), None);
    assert_eq!(find_member(&json, "text"), Some(ValueRef::Str("inner".into())));
    assert_eq!(find_member(&json, "a\"b"), Some(ValueRef::Int(2)));
    assert_eq!(find_member(&json, "$x"), Some(ValueRef::Double(f64::INFINITY)));
}

#[test]
fn malformed_text_is_an_error() {
    for json in ["", "[]", "{", r#"{"a":1"#, r#"{"a":1}x"#, r#"{"a":{"$bytes":"?"}}"#] {
        assert!(read_entries(json, 1, &mut Vec::new()).is_err(), "{json}");
        assert_eq!(find_member(json, "b"), None);
    }
}

proptest! {
    #[test]
    fn entries_are_exact_in_both_directions(attributes in samples::attributes()) {
        let list = KeyValueList { values: attributes.into_iter().map(samples::entry).collect() };
        let encoded = list.encode_to_vec();
        let mut json = String::new();
        write_object(&mut json, entries_of(&encoded, 1)).unwrap();

        let mut read = Vec::new();
        read_entries(&json, 1, &mut read).unwrap();

        let read = KeyValueList::decode(read.as_slice()).unwrap();
        prop_assert_eq!(read.encode_to_vec(), encoded, "{}", json);
    }

    #[test]
    fn a_member_is_the_value_of_the_entry(attributes in samples::attributes(), other in "[a-c]") {
        let keys: Vec<_> = attributes.keys().cloned().chain([other]).collect();
        let list = KeyValueList { values: attributes.into_iter().map(samples::entry).collect() };
        let encoded = list.encode_to_vec();
        let mut json = String::new();
        write_object(&mut json, entries_of(&encoded, 1)).unwrap();

        for key in keys {
            let expected = find_entry(&encoded, 1, &key).and_then(any_value_ref);
            // NaN differs from itself.
            prop_assert_eq!(
                format!("{:?}", find_member(&json, &key)),
                format!("{expected:?}"),
                "{}",
                json
            );
        }
    }

    #[test]
    fn scopes_are_exact_in_both_directions(scope in samples::scope()) {
        let mut json = String::new();
        write_scope(&mut json, &scope.encode_to_vec()).unwrap();

        let mut read = Vec::new();
        read_scope(&json, &mut read).unwrap();

        let read = InstrumentationScope::decode(read.as_slice()).unwrap();
        prop_assert_eq!(read.encode_to_vec(), scope.encode_to_vec(), "{}", json);
        prop_assert_eq!(scope_name(&json), scope.name);
    }

    #[test]
    fn no_text_panics(json in "\\PC{0,20}", key in "\\PC{0,3}") {
        let _ = read_entries(&json, 1, &mut Vec::new());
        let _ = read_scope(&json, &mut Vec::new());
        let _ = find_member(&json, &key);
    }
}

#[test]
fn an_entry_without_a_value_has_an_empty_one() {
    let entry = KeyValue { key: "a".to_owned(), value: None };
    let list = KeyValueList { values: vec![entry] };
    let mut json = String::new();

    write_object(&mut json, entries_of(&list.encode_to_vec(), 1)).unwrap();

    assert_eq!(json, r#"{"a":null}"#);
}
