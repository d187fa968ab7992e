//! How many parts a message has, counted before it is decoded.
//!
//! Two bytes on the wire, an empty entity, take a hundred in memory once decoded: without this count
//! a message at the limit of size could take fifty times its size before any limit on its content
//! is looked at. A part is an element of a repeated field, however deep.

use std::{collections::HashMap, sync::LazyLock};

use prost::{
    Message as _, Name,
    bytes::Buf,
    encoding::{WireType, decode_key, decode_varint},
};
use prost_types::{
    FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// Most parts of a message: a page of 1,000 entities with 252 properties each fits. Decoded, they
/// take some 50 MB.
pub const PARTS_MAX: usize = 300_000;

/// Messages up to this size are not looked at, as decoding takes little memory whatever is in them. In bytes.
const SMALL_BYTES: usize = 64 * 1024;

/// Deepest nesting that is looked at; the contracts have less than half of it.
const DEPTH_MAX: usize = 16;

/// The fields of a message type that hold parts.
#[derive(Debug, Default)]
struct Shape {
    fields: HashMap<u32, Field>,
}

#[derive(Debug)]
struct Field {
    is_repeated: bool,
    /// The type of the elements, where they are messages.
    message: Option<String>,
}

static SHAPES: LazyLock<HashMap<String, Shape>> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET).unwrap_or_default().file;
    let mut shapes = HashMap::new();
    for file in &files {
        for message in &file.message_type {
            add(file.package(), message, &mut shapes);
        }
    }
    shapes
});

fn add(scope: &str, message: &prost_types::DescriptorProto, shapes: &mut HashMap<String, Shape>) {
    let name = format!("{scope}.{}", message.name());
    for nested in &message.nested_type {
        add(&name, nested, shapes);
    }
    let mut shape = Shape::default();
    for field in &message.field {
        let is_repeated = field.label() == Label::Repeated;
        let is_message = field.r#type() == Type::Message;
        if let (true, Ok(number)) = (is_repeated || is_message, u32::try_from(field.number())) {
            let message = is_message.then(|| field.type_name().trim_start_matches('.').to_owned());
            shape.fields.insert(number, Field { is_repeated, message });
        }
    }
    shapes.insert(name, shape);
}

/// Whether an encoded message has more than [`PARTS_MAX`] parts. Bytes that are
/// no such message are for the decoder to refuse: they are counted as far as they can be read.
pub(crate) fn are_too_many<T: Name>(encoded: &[u8]) -> bool {
    if encoded.len() <= SMALL_BYTES {
        return false;
    }
    let mut left = PARTS_MAX;
    let shape = SHAPES.get(&T::full_name());
    shape.is_some_and(|shape| count(shape, encoded, DEPTH_MAX, &mut left).is_none())
}

/// Takes every part from `left`; none when that is not enough.
fn count(shape: &Shape, mut encoded: &[u8], depth: usize, left: &mut usize) -> Option<()> {
    while encoded.has_remaining() {
        let Ok((tag, wire_type)) = decode_key(&mut encoded) else {
            return Some(());
        };
        let Some(value) = value(wire_type, &mut encoded) else {
            return Some(());
        };
        let Some(field) = shape.fields.get(&tag) else {
            continue;
        };
        if field.is_repeated {
            *left = left.checked_sub(1)?;
        }
        let inner = field.message.as_ref().and_then(|name| SHAPES.get(name));
        if let (Some(inner), Some(depth)) = (inner, depth.checked_sub(1)) {
            count(inner, value, depth, left)?;
        }
    }
    Some(())
}

/// Passes the value of a field; its bytes where it has a length, none where it cannot be read.
fn value<'a>(wire_type: WireType, encoded: &mut &'a [u8]) -> Option<&'a [u8]> {
    let bytes = match wire_type {
        WireType::Varint => {
            decode_varint(encoded).ok()?;
            return Some(&[]);
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::LengthDelimited => usize::try_from(decode_varint(encoded).ok()?).ok()?,
        // Not in proto3; what is inside is no part of ours.
        WireType::StartGroup | WireType::EndGroup => return Some(&[]),
    };
    let (value, rest) = encoded.split_at_checked(bytes)?;
    *encoded = rest;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::v1::{
        BatchInsert, BatchOperation, Entity, ExecuteBatchRequest, ImportChunk,
        ImportEntitiesRequest, Property, PropertyMask, QueryEntitiesRequest,
        batch_operation::Operation, import_entities_request::Message,
    };

    fn refused<T: prost::Message + Name>(message: &T) -> bool {
        are_too_many::<T>(&message.encode_to_vec())
    }

    fn import(entities: usize, properties: usize) -> ImportEntitiesRequest {
        let properties = vec![Property::default(); properties];
        let entity = Entity { properties, ..Entity::default() };
        let chunk = ImportChunk { entities: vec![entity; entities] };
        ImportEntitiesRequest { message: Some(Message::Chunk(chunk)) }
    }

    #[test]
    fn the_most_that_the_limits_allow_is_not_too_many() {
        assert!(!refused(&import(1000, 252)));
    }

    #[test]
    fn elements_count_at_every_depth() {
        assert!(!refused(&import(PARTS_MAX, 0)));
        assert!(refused(&import(PARTS_MAX + 1, 0)));
        assert!(refused(&import(1, PARTS_MAX)));
        let select = Some(PropertyMask { paths: vec![String::new(); PARTS_MAX + 1] });
        assert!(refused(&QueryEntitiesRequest { select, ..QueryEntitiesRequest::default() }));
        let properties = vec![Property::default(); PARTS_MAX];
        let entity = Some(Entity { properties, ..Entity::default() });
        let operation = Some(Operation::Insert(BatchInsert { entity }));
        let operations = vec![BatchOperation { operation }];
        assert!(refused(&ExecuteBatchRequest { operations, ..ExecuteBatchRequest::default() }));
    }

    #[test]
    fn a_singular_message_that_is_sent_often_counts_what_is_in_each() {
        // On the wire a later occurrence adds to an earlier one.
        let once = import(PARTS_MAX / 2 + 1, 0).encode_to_vec();
        assert!(!are_too_many::<ImportEntitiesRequest>(&once));
        assert!(are_too_many::<ImportEntitiesRequest>(&[once.clone(), once].concat()));
    }

    #[test]
    fn bytes_that_are_no_message_are_left_to_the_decoder() {
        for byte in [0x00, 0x0A, 0x12, 0x80, 0xFF] {
            assert!(
                !are_too_many::<ImportEntitiesRequest>(&vec![byte; SMALL_BYTES + 1]),
                "{byte:#x}"
            );
        }
    }

    #[test]
    fn every_contract_has_a_shape_and_nests_less_than_is_looked_at() {
        fn depth(name: &str) -> usize {
            let fields = SHAPES.get(name).into_iter().flat_map(|shape| shape.fields.values());
            let inner = fields.filter_map(|field| field.message.as_ref());
            1 + inner.map(|name| depth(name)).max().unwrap_or_default()
        }
        assert!(SHAPES.contains_key("trestle.table.v1.Entity.PropertiesEntry"));
        for name in SHAPES.keys().filter(|name| name.starts_with("trestle.")) {
            assert!(depth(name) < DEPTH_MAX, "{name}");
        }
    }
}
