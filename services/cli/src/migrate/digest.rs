//! What a table or a queue holds, in a few bytes: a count and a sum of hashes, the same whatever
//! the order.
//!
//! Both sides of a copy are added up as they pass by, so that comparing them takes no memory.

use prost::Message as _;
use serde::{Deserialize, Serialize};
use trestle_proto::table::v1::{Entity, value::Kind};
use xxhash_rust::xxh3::xxh3_128;

/// The hash of one entity or message.
pub(super) type Hash = u128;

/// How many there are, and the sum of their hashes. Not a defence against deliberate collisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digest {
    /// How many.
    pub(super) count: u64,
    sum: u128,
}

impl Digest {
    /// One more.
    pub(super) fn add(&mut self, hash: Hash) {
        self.merge(Self { count: 1, sum: hash });
    }

    /// All of another digest.
    pub(super) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// The sum as text.
    pub(super) fn text(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

/// The content of an entity: keys and properties, in whatever order they came.
pub(super) fn of_entity(entity: &Entity) -> Hash {
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
        // There are many encodings of NaN, and one meaning.
        if let Some(Kind::DoubleValue(number)) = kind
            && number.is_nan()
        {
            *number = f64::NAN;
        }
    }
    xxh3_128(&content.encode_to_vec())
}

/// The content of a message.
pub(super) fn of_message(body: &[u8]) -> Hash {
    xxh3_128(body)
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
    fn equal_content_has_equal_hashes_whatever_its_order_and_time() {
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
    fn sums_do_not_depend_on_order_and_do_on_repeats() {
        let sum = |texts: &[&str]| {
            let mut digest = Digest::default();
            texts.iter().for_each(|text| digest.add(of_message(text.as_bytes())));
            digest
        };
        assert_eq!(sum(&["a", "b", "c"]), sum(&["c", "a", "b"]));
        assert_ne!(sum(&["a", "b"]), sum(&["a", "b", "b"]));
        assert_ne!(sum(&["a", "b"]), sum(&["a", "c"]));
        let kept: Digest =
            serde_json::from_str(&serde_json::to_string(&sum(&["a"])).expect("fits"))
                .expect("reads what was written");
        assert_eq!(kept, sum(&["a"]));
    }
}
