//! Tests of the module.

use super::*;
use crate::table::v1::{
    BatchInsert, BatchOperation, Entity, ExecuteBatchRequest, ImportChunk, ImportEntitiesRequest,
    Property, PropertyMask, QueryEntitiesRequest, UpsertEntityRequest, batch_operation::Operation,
    import_entities_request::Message,
};

fn rejected<T: prost::Message + Name>(message: &T) -> bool {
    are_too_many::<T>(&message.encode_to_vec())
}

fn import(entities: usize, properties: usize) -> ImportEntitiesRequest {
    let properties = vec![Property::default(); properties];
    let entity = Entity { properties, ..Entity::default() };
    let chunk = ImportChunk { entities: vec![entity; entities] };
    ImportEntitiesRequest { message: Some(Message::Chunk(chunk)) }
}

#[test]
fn accepts_the_largest_message_within_the_limits() {
    assert!(!rejected(&import(1000, 252)));
}

#[test]
fn elements_count_at_every_depth() {
    assert!(!rejected(&import(PARTS_MAX, 0)));
    assert!(rejected(&import(PARTS_MAX + 1, 0)));
    assert!(rejected(&import(1, PARTS_MAX)));
    let select = Some(PropertyMask { paths: vec![String::new(); PARTS_MAX + 1] });
    assert!(rejected(&QueryEntitiesRequest { select, ..QueryEntitiesRequest::default() }));
    let properties = vec![Property::default(); PARTS_MAX];
    let entity = Some(Entity { properties, ..Entity::default() });
    let operation = Some(Operation::Insert(BatchInsert { entity }));
    let operations = vec![BatchOperation { operation }];
    assert!(rejected(&ExecuteBatchRequest { operations, ..ExecuteBatchRequest::default() }));
}

#[test]
fn occurrences_of_a_singular_message_add_up() {
    // On the wire a later occurrence adds to an earlier one.
    let once = import(PARTS_MAX / 2 + 1, 0).encode_to_vec();
    assert!(!are_too_many::<ImportEntitiesRequest>(&once));
    assert!(are_too_many::<ImportEntitiesRequest>(&[once.clone(), once].concat()));
}

#[test]
fn invalid_bytes_are_left_to_the_decoder() {
    for byte in [0x00, 0x0A, 0x12, 0x80, 0xFF] {
        assert!(!are_too_many::<ImportEntitiesRequest>(&vec![byte; SMALL_BYTES + 1]), "{byte:#x}");
    }
}

#[test]
fn every_contract_nests_less_than_the_depth_limit() {
    // A type that contains itself, such as a value of OpenTelemetry, counts once: its service
    // bounds the depth.
    fn depth(shape: &Shape, within: &[usize]) -> usize {
        let inner = shape.fields.iter().flatten().filter_map(|field| field.inner);
        let other = inner.filter(|index| !within.contains(index));
        let depths = other.map(|index| depth(&SHAPES.list[index], &[within, &[index]].concat()));
        1 + depths.max().unwrap_or_default()
    }
    assert!(SHAPES.of("trestle.table.v1.Entity").is_some());
    for name in SHAPES.by_name.keys().filter(|name| name.starts_with("trestle.")) {
        assert!(depth(SHAPES.of(name).expect("a shape"), &[]) < DEPTH_MAX, "{name}");
    }
}

/// A field with a length.
fn with_length(key: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![key];
    prost::encoding::encode_varint(value.len() as u64, &mut out);
    out.extend_from_slice(value);
    out
}

#[test]
fn fields_without_effect_are_few_wherever_they_are() {
    const MANY: usize = IDLE_MAX * 10;
    for (what, idle) in [
        ("unknown number", &b"\x78\x01"[..]),
        ("unknown text", b"\x7a\x00"),
        ("group", b"\x7b\x7c"),
        ("text again", b"\x0a\x00"),
    ] {
        let few = idle.repeat(IDLE_MAX / 2);
        let [few, many] = [few.as_slice(), &idle.repeat(MANY)].map(|idle| {
            // Not small, whatever else it has.
            [with_length(0x0a, &[b'a'; SMALL_BYTES]).as_slice(), idle].concat()
        });
        assert!(!are_too_many::<QueryEntitiesRequest>(&few), "{what}");
        assert!(are_too_many::<QueryEntitiesRequest>(&many), "{what}");
    }
    // In an entity: of a property, and of a time, which has no part.
    for keys in [&[0x12][..], &[0x12, 0x1a], &[0x12, 0x1a, 0x12], &[0x12, 0x22]] {
        let nest = |idle: &[u8]| {
            keys.iter().rev().fold(idle.to_vec(), |value, key| with_length(*key, &value))
        };
        let [few, many] = [1, MANY].map(|times| nest(&[0xf8, 0x07, 0x01].repeat(times)));
        assert!(!are_too_many::<UpsertEntityRequest>(&few), "{keys:x?}");
        assert!(are_too_many::<UpsertEntityRequest>(&many), "{keys:x?}");
    }
}

#[test]
fn items_that_stay_encoded_have_few_fields_without_effect_too() {
    use crate::log::v1::wire::ExportLogsServiceRequest as Logs;
    for idle in [&b"\x78\x01"[..], b"\x0a\x00"] {
        let record = with_length(0x12, &idle.repeat(IDLE_MAX * 10));
        let request = with_length(0x0a, &with_length(0x12, &record));
        assert!(are_too_many::<Logs>(&request), "{idle:?}");
    }
    // Records are no parts there, and each may have some fields of a newer version.
    let record = with_length(0x12, &[0x0a, 0x00, 0xf8, 0x07, 0x01, 0xf0, 0x07, 0x01]);
    let request = with_length(0x0a, &with_length(0x12, &record.repeat(PARTS_MAX * 2)));
    assert!(!are_too_many::<Logs>(&request));
}
