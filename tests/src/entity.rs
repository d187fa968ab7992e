//! Building and taking apart entities.

use trestle_proto::table::v1::{Entity, Property, Value, value::Kind};

/// An entity with a key and properties.
pub fn entity<const N: usize>(partition: &str, row: &str, properties: [Property; N]) -> Entity {
    Entity {
        partition_key: partition.to_owned(),
        row_key: row.to_owned(),
        properties: properties.into(),
        ..Default::default()
    }
}

/// An entity with a key and any number of properties.
pub fn entity_of(partition: &str, row: &str, properties: Vec<Property>) -> Entity {
    Entity { properties, ..entity(partition, row, []) }
}

/// A property.
pub fn prop(name: &str, kind: Kind) -> Property {
    Property { name: name.to_owned(), value: Some(Value { kind: Some(kind) }) }
}

/// A string property.
pub fn string(name: &str, text: &str) -> Property {
    prop(name, Kind::StringValue(text.to_owned()))
}

/// An Int32 property.
pub fn int(name: &str, number: i32) -> Property {
    prop(name, Kind::Int32Value(number))
}

/// A property without a value.
pub fn null(name: &str) -> Property {
    Property { name: name.to_owned(), value: None }
}

/// A double property.
pub fn double(name: &str, number: f64) -> Property {
    prop(name, Kind::DoubleValue(number))
}

/// The value of a property, if the entity has it.
pub fn value_of<'a>(entity: &'a Entity, name: &str) -> Option<&'a Kind> {
    let property = entity.properties.iter().find(|property| property.name == name)?;
    property.value.as_ref()?.kind.as_ref()
}

/// The key of an entity.
pub fn key_of(entity: &Entity) -> (&str, &str) {
    (&entity.partition_key, &entity.row_key)
}

/// A text in the order in which keys and names are sorted.
pub fn utf16(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}
