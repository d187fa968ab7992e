#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use trestle_model::fault::quoted;
use trestle_proto::table::v1::{Property, value::Kind};

use super::{samples, *};

fn property(name: &str, kind: impl Into<Option<Kind>>) -> Property {
    Property { name: name.to_owned(), value: Some(proto::Value { kind: kind.into() }) }
}

fn entity(properties: Vec<Property>) -> proto::Entity {
    proto::Entity {
        partition_key: "p".to_owned(),
        row_key: "r".to_owned(),
        properties,
        ..proto::Entity::default()
    }
}

/// The entity, or the reason and field of every violation.
fn parse(entity: proto::Entity) -> Result<Entity, Vec<(Reason, String)>> {
    let mut violations = Violations::default();
    let parsed = Entity::parse(entity, "entity", &mut violations);
    match violations.check(()) {
        Ok(()) => Ok(parsed.unwrap()),
        Err(fault) => {
            assert_eq!(parsed, None);
            Err(fault.violations.into_iter().map(|v| (v.reason, v.field)).collect())
        }
    }
}

fn name_is_legal(name: &str) -> Result<(), Reason> {
    match parse(entity(vec![property(name, Kind::Int32Value(1))])) {
        Ok(parsed) => {
            assert_eq!(parsed.properties[0].0, name);
            Ok(())
        }
        Err(violations) => {
            assert_eq!(
                violations[0].1,
                format!("entity.properties[\"{}\"]", quoted(name).replace('"', "\\\""))
            );
            Err(violations[0].0)
        }
    }
}

#[test]
fn properties_are_sorted_by_utf16_code_unit_and_nulls_are_dropped() {
    // As UTF-16, U+10400 starts with D801, which is less than FF41.
    let names = ["b", "\u{FF41}", "\u{10400}", "a", "B"];
    let mut properties: Vec<_> =
        names.iter().map(|name| property(name, Kind::BooleanValue(true))).collect();
    properties.push(property("nothing", None));
    properties.push(Property { name: "unset".to_owned(), value: None });

    let parsed = parse(entity(properties)).unwrap();

    let sorted: Vec<_> = parsed.properties.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(sorted, ["B", "a", "b", "\u{10400}", "\u{FF41}"]);
}

#[test]
fn every_violation_is_reported_with_its_path() {
    let mut broken = entity(vec![
        property("fine", Kind::Int32Value(1)),
        property("1st", Kind::Int32Value(1)),
        property("guid", Kind::GuidValue("x".to_owned())),
        property("fine", None),
        property("RowKey", Kind::StringValue("s".repeat(40_000))),
    ]);
    broken.partition_key = "a/b".to_owned();
    broken.row_key = "r".repeat(1025);

    let violations = parse(broken).unwrap_err();

    let field = |field: &str| format!("entity.{field}");
    assert_eq!(
        violations,
        [
            (Reason::OutOfRangeInput, field("partition_key")),
            (Reason::PropertyValueTooLarge, field("row_key")),
            (Reason::PropertyNameInvalid, field("properties[\"1st\"]")),
            (Reason::InvalidInput, field("properties[\"guid\"]")),
            (Reason::PropertyNameInvalid, field("properties[\"RowKey\"]")),
            (Reason::PropertyValueTooLarge, field("properties[\"RowKey\"]")),
            (Reason::DuplicatePropertiesSpecified, field("properties[\"fine\"]")),
        ]
    );
}

#[test]
fn keys_reject_separators_and_control_characters() {
    let parse_key = |key: &str| {
        let mut violations = Violations::default();
        let key = EntityKey::parse(key.to_owned(), String::new(), "", &mut violations);
        (key.is_some(), violations.check(()).err().map(|fault| fault.violations[0].reason))
    };

    for key in ["", " ", "it's", "100%", "a+b", "é\u{A0}\u{FFFF}", "𝄞", "~\u{20}"] {
        assert_eq!(parse_key(key), (true, None), "{key}");
    }
    for c in ['/', '\\', '#', '?', '\0', '\u{1F}', '\u{7F}', '\u{80}', '\u{9F}'] {
        let rejected = (false, Some(Reason::OutOfRangeInput));
        assert_eq!(parse_key(&format!("a{c}")), rejected, "{c:?}");
    }
    assert_eq!(parse_key(&"𝄞".repeat(512)), (true, None));
    let rejected = (false, Some(Reason::PropertyValueTooLarge));
    assert_eq!(parse_key(&format!("{}a", "𝄞".repeat(512))), rejected);
}

#[test]
fn property_names_must_be_identifiers() {
    for name in ["a", "_", "_1", "Été", "变量", "a\u{301}", "a\u{200D}b", "a‿b", "Ⅷ", "timestamp"]
    {
        assert_eq!(name_is_legal(name), Ok(()), "{name}");
    }
    let rejected =
        ["", "1a", "a-b", "a b", "a.b", "\u{301}a", "\u{200D}a", "‿a", "a²", "PartitionKey", "a€"];
    for name in rejected {
        assert_eq!(name_is_legal(name), Err(Reason::PropertyNameInvalid), "{name}");
    }
    for reserved in ["RowKey", "Timestamp"] {
        assert_eq!(name_is_legal(reserved), Err(Reason::PropertyNameInvalid));
    }
    assert_eq!(name_is_legal(&"é".repeat(255)), Ok(()));
    assert_eq!(name_is_legal(&"é".repeat(256)), Err(Reason::PropertyNameTooLong));
}

#[test]
fn rejects_253_properties_not_counting_nulls() {
    let mut properties: Vec<_> =
        (0..252).map(|index| property(&format!("p{index}"), Kind::Int32Value(1))).collect();
    properties.push(property("nothing", None));

    assert_eq!(parse(entity(properties.clone())).unwrap().properties.len(), 252);

    properties.push(property("one_more", Kind::Int32Value(1)));
    let expected = (Reason::TooManyProperties, "entity.properties".to_owned());
    assert_eq!(parse(entity(properties)).unwrap_err(), [expected]);
}

#[test]
fn rejects_an_entity_one_byte_over_1_mebibyte() {
    // 4 + 2 x 2 for the key; 8 + 2 x 3 + 4 for each property, and its bytes.
    let binary =
        |name: &str, len| property(name, Kind::BinaryValue(bytes::Bytes::from(vec![0; len])));
    let properties: Vec<_> = (0..15).map(|index| binary(&format!("b{index:02}"), 65_536)).collect();
    let used = 4 + 2 * 2 + 15 * (8 + 2 * 3 + 4 + 65_536);
    let left = 1_048_576 - used - (8 + 2 * 3 + 4);
    let with_last = |len| {
        let mut properties = properties.clone();
        properties.push(binary("end", len));
        parse(entity(properties))
    };

    assert_eq!(with_last(left).unwrap().size(), 1_048_576);
    let expected = (Reason::EntityTooLarge, "entity".to_owned());
    assert_eq!(with_last(left + 1).unwrap_err(), [expected]);
}

#[test]
fn a_merge_replaces_and_adds_properties() {
    let parse = |names: &[&str], number| {
        let properties = names.iter().map(|name| property(name, Kind::Int32Value(number)));
        parse(entity(properties.collect())).unwrap()
    };

    let merged = Entity::merge(parse(&["b", "d", "e"], 1), parse(&["a", "b", "c", "e", "f"], 2));

    let merged: Vec<_> = merged.properties.into_iter().collect();
    let expected = [("a", 2), ("b", 2), ("c", 2), ("d", 1), ("e", 2), ("f", 2)];
    let expected = expected.map(|(name, number)| (name.to_owned(), Value::Int32(number)));
    assert_eq!(merged, expected);
}

proptest! {
    #[test]
    fn a_merge_equals_that_of_maps(
        stored in samples::entity(),
        update in samples::entity(),
    ) {
        let mut expected: std::collections::HashMap<_, _> =
            stored.properties.iter().cloned().collect();
        expected.extend(update.properties.iter().cloned());

        let merged = Entity::merge(stored.clone(), update);

        prop_assert_eq!(&merged.key, &stored.key);
        let in_order = merged
            .properties
            .is_sorted_by(|a, b| a.0.encode_utf16().lt(b.0.encode_utf16()));
        prop_assert!(in_order, "{:?}", merged);
        let merged: std::collections::HashMap<_, _> = merged.properties.into_iter().collect();
        prop_assert_eq!(merged, expected);
    }

    #[test]
    fn keys_are_ordered_by_utf16_code_unit(a in samples::key(), b in samples::key()) {
        let units = |key: &EntityKey| -> [Vec<u16>; 2] {
            [&key.partition_key, &key.row_key].map(|text| text.encode_utf16().collect())
        };

        prop_assert_eq!(a.cmp(&b), units(&a).cmp(&units(&b)));
    }
}
