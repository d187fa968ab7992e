//! Values as texts for people and programs.

use proptest::prelude::*;
use trestle_proto::table::v1::{Property, Value as PropertyValue, value::Kind};

use super::*;

fn shown(name: &str, value: &Value) -> String {
    cell(name, value, 80)
}

#[test]
fn stored_text_cannot_control_or_flood_the_terminal() {
    assert_eq!(shortened("a\x1b[31m\n", 80), "a\\u001b[31m\\n");
    assert_eq!(shortened(&"é".repeat(81), 80), format!("{}…", "é".repeat(80)));
    assert_eq!(shortened(&"é".repeat(80), 80), "é".repeat(80));
}

#[test]
fn a_text_cannot_be_read_in_another_direction() {
    let name = "invoice\u{202e}gpj.exe\u{2066}\u{200f}\u{61c}";
    assert_eq!(escaped(name), "invoice\\u202egpj.exe\\u2066\\u200f\\u061c");
    assert_eq!(escaped("שלום\u{200d}"), "שלום\u{200d}", "letters have a direction of their own");
}

proptest! {
    #[test]
    fn no_text_contains_a_control_character(
        chars in proptest::collection::vec(
            prop_oneof![
                proptest::char::range('\0', '\u{9f}'),
                proptest::char::range('\u{2000}', '\u{2070}'),
                any::<char>(),
            ],
            0..40,
        ),
        chars_max in 0..40_usize,
    ) {
        let text: String = chars.iter().collect();
        let cell = shortened(&text, chars_max);

        prop_assert!(!cell.contains(controls_terminal), "{cell:?}");
        prop_assert_eq!(cell == escaped(&text), chars.len() <= chars_max);
        let plain: String = text.chars().filter(|c| !controls_terminal(*c)).collect();
        prop_assert_eq!(escaped(&plain), plain);
    }

    #[test]
    fn a_whole_number_is_shown_exactly(number in any::<i64>()) {
        let digits = shown("count", &json!(number)).replace(',', "");

        prop_assert_eq!(digits, number.to_string());
    }
}

#[test]
fn a_value_is_shown_with_separators_units_and_words() {
    for (name, value, expected) in [
        ("count", json!(1_234_567), "1,234,567"),
        ("count", json!(-1_234_567), "-1,234,567"),
        ("count", json!(-5), "-5"),
        ("count", json!(u64::MAX), "18,446,744,073,709,551,615"),
        ("count", json!(2.25), "2.2"),
        ("free_bytes", json!(2048), "2.00 KiB"),
        ("is_on", json!(true), "yes"),
        ("is_on", json!(false), "no"),
        ("none", json!(null), ""),
        ("list", json!([1000, "a\n"]), "1,000\na\\n"),
        ("pool_bytes", json!({ "a": 2048, "b": "x" }), "a=2.00 KiB, b=x"),
        ("list", json!([]), ""),
    ] {
        assert_eq!(shown(name, &value), expected, "{name}={value}");
    }
}

#[test]
fn a_column_has_the_name_of_its_field_as_its_title() {
    // Their values have the unit.
    for (name, expected) in [
        ("storage_bytes", "Storage"),
        ("free_bytes", "Free"),
        ("size_bytes", "Size"),
        ("bytes", "Size"),
        ("segment_bytes", "Segment size"),
        ("segments", "Segments"),
    ] {
        assert_eq!(title(name), expected);
    }
    assert_eq!(title("x"), "X");
    assert_eq!(title(""), "");
    assert_eq!(title("état_now"), "état now", "no name is lost");
}

#[test]
fn records_in_a_field_are_a_list_or_objects_by_name() {
    let list = json!([{ "a": 1 }, { "a": 2 }]);
    assert_eq!(nested("hot", &list), Some(vec![json!({ "a": 1 }), json!({ "a": 2 })]));
    let named = json!({ "x": { "a": 1 }, "y": {} });
    let expected = vec![json!({ "p": "x", "a": 1 }), json!({ "p": "y" })];
    assert_eq!(nested("p", &named), Some(expected));
    for plain in [json!([1]), json!([]), json!({ "a": 1 }), json!("x"), json!(null)] {
        assert_eq!(nested("p", &plain), None, "{plain}");
    }
}

#[test]
fn later_fields_follow_and_replace_those_of_a_record() {
    let merged = with_fields(json!({ "a": 1, "b": 2 }), json!({ "b": 3, "c": 4 }));

    assert_eq!(merged, json!({ "a": 1, "b": 3, "c": 4 }));
    assert_eq!(with_fields(json!({ "a": 1 }), Value::Null), json!({ "a": 1 }));
}

#[test]
fn a_program_reads_values_unchanged() {
    for (value, expected) in [
        (json!(null), ""),
        (json!("a\n1,000"), "a\n1,000"),
        (json!(1_234_567), "1234567"),
        (json!(true), "true"),
        (json!({ "a": [1] }), "{\"a\":[1]}"),
    ] {
        assert_eq!(raw(&value), expected);
    }
}

#[test]
fn plain_columns_have_flat_values() {
    let record = json!({
        "terms": { "se": "x", "none": null, "inner": { "a": 1 } },
        "checks": [{ "outcome": "passed" }, { "outcome": "open" }],
        "names": ["a", "b"],
        "empty": {},
        "size": 5,
    });

    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let expected = [
        ("terms.se", "x"),
        ("terms.inner.a", "1"),
        ("checks[0].outcome", "passed"),
        ("checks[1].outcome", "open"),
        ("names", "a,b"),
        ("size", "5"),
    ];
    assert_eq!(flat_fields(&record), expected.map(pair));
    for (value, expected) in [
        (json!({ "queue": "q", "dequeue_count": 2 }), "queue=q,dequeue_count=2"),
        (json!(["a", 1]), "a,1"),
        (json!({}), ""),
        (json!({ "a": [1] }), "{\"a\":[1]}"),
    ] {
        assert_eq!(flat(&value), expected);
    }
}

#[test]
fn an_entity_is_a_record_of_its_keys_and_the_properties_with_values() {
    let property = |name: &str, kind: Option<Kind>| {
        let value = Some(PropertyValue { kind });
        Property { name: name.to_owned(), value }
    };
    let properties = vec![
        property("z", Some(Kind::Int64Value(i64::MIN))),
        property("a", Some(Kind::DoubleValue(f64::NAN))),
        property("none", None),
        Property { name: "absent".to_owned(), value: None },
    ];
    let row_key = "r".to_owned();
    let entity = Entity { row_key, properties, ..Entity::default() };

    let record = entity_record(&entity, &[]).unwrap();

    let expected =
        json!({ "PartitionKey": "", "RowKey": "r", "z": "-9223372036854775808", "a": "NaN" });
    assert_eq!(record, expected);
}
