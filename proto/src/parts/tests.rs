//! Tests of the module.

use super::*;
use crate::table::v1::{
    BatchInsert, BatchOperation, Entity, ExecuteBatchRequest, ImportChunk, ImportEntitiesRequest,
    Property, PropertyMask, QueryEntitiesRequest, batch_operation::Operation,
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
