//! Tests of the module.

use trestle_proto::table::v1::{Property, Value};

use super::*;

fn entity(row_key: &str, properties: &[(&str, Kind)]) -> Entity {
    let property = |(name, kind): &(&str, Kind)| Property {
        name: (*name).to_owned(),
        value: Some(Value { kind: Some(kind.clone()) }),
    };
    let properties = properties.iter().map(property).collect();
    Entity { row_key: row_key.to_owned(), properties, ..Entity::default() }
}

#[test]
fn equal_content_has_equal_hashes_in_any_order_and_at_any_time() {
    let (one, two) = (Kind::Int32Value(1), Kind::DoubleValue(f64::NAN));
    let plain = entity("r", &[("a", one.clone()), ("b", two.clone())]);
    let mut turned = entity("r", &[("b", Kind::DoubleValue(-f64::NAN)), ("a", one.clone())]);
    turned.etag = "W/\"x\"".to_owned();
    turned.properties.push(Property { name: "null".to_owned(), value: None });
    assert_eq!(of_entity(&plain), of_entity(&turned));

    for other in [
        entity("s", &[("a", one.clone()), ("b", two.clone())]),
        entity("r", &[("a", one.clone())]),
        entity("r", &[("a", Kind::Int64Value(1)), ("b", two)]),
    ] {
        assert_ne!(of_entity(&plain), of_entity(&other));
    }
}

#[test]
fn sums_ignore_order_and_count_repeats() {
    let sum = |texts: &[&str]| {
        let mut digest = Digest::default();
        texts.iter().for_each(|text| digest.add(of_message(text.as_bytes())));
        digest
    };
    assert_eq!(sum(&["a", "b", "c"]), sum(&["c", "a", "b"]));
    assert_ne!(sum(&["a", "b"]), sum(&["a", "b", "b"]));
    assert_ne!(sum(&["a", "b"]), sum(&["a", "c"]));
    let kept: Digest = serde_json::from_str(&serde_json::to_string(&sum(&["a"])).expect("fits"))
        .expect("reads what was written");
    assert_eq!(kept, sum(&["a"]));
}
