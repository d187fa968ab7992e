//! The hash of the content of an entity.

use prost::Message as _;
use trestle_proto::table::v1::{Entity, value::Kind};
use xxhash_rust::xxh3::xxh3_128;

/// The hash of keys and properties, in any order. Etag and timestamp are not part of it.
#[must_use]
pub fn entity_hash(entity: &Entity) -> u128 {
    let mut content = Entity {
        partition_key: entity.partition_key.clone(),
        row_key: entity.row_key.clone(),
        properties: entity.properties.clone(),
        ..Entity::default()
    };
    content
        .properties
        .retain(|property| property.value.as_ref().is_some_and(|value| value.kind.is_some()));
    content.properties.sort_by(|a, b| a.name.cmp(&b.name));
    for property in &mut content.properties {
        let kind = property.value.as_mut().and_then(|value| value.kind.as_mut());
        // NaN has many encodings and one meaning.
        if let Some(Kind::DoubleValue(number)) = kind
            && number.is_nan()
        {
            *number = f64::NAN;
        }
    }
    xxh3_128(&content.encode_to_vec())
}

#[cfg(test)]
mod tests {
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
        assert_eq!(entity_hash(&plain), entity_hash(&turned));

        for other in [
            entity("s", &[("a", one.clone()), ("b", two.clone())]),
            entity("r", &[("a", one.clone())]),
            entity("r", &[("a", Kind::Int64Value(1)), ("b", two)]),
        ] {
            assert_ne!(entity_hash(&plain), entity_hash(&other));
        }
    }
}
