use trestle_model::time::Ticks;

use super::*;
use crate::{error::TableError, value::Value};

const T1: u64 = 600_000_000_000_000_000;

fn ticks(offset: u64) -> Ticks {
    Ticks::new(T1 + offset).expect("in range")
}

fn version(offset: u64) -> Version {
    Version::new(ticks(offset))
}

fn entity(properties: &[(&str, i32)]) -> Entity {
    let key = EntityKey { partition_key: "p".to_owned(), row_key: "r".to_owned() };
    let owned = |(name, number): &(&str, i32)| ((*name).to_owned(), Value::Int32(*number));
    Entity { key, properties: properties.iter().map(owned).collect() }
}

fn stored_at(offset: u64, properties: &[(&str, i32)]) -> Bytes {
    stored::seal(&stored::encode_body(&entity(properties)), ticks(offset))
}

fn request(properties: &[(&str, i32)]) -> EncodedEntity {
    EncodedEntity::new(entity(properties))
}

/// The outcome for an entity stored at tick 5 with `a` = 1 and `b` = 2, or of an absent one.
fn outcome(operation: &EntityOperation, exists: bool) -> Result<Option<Entity>, &'static str> {
    let current = exists.then(|| stored_at(5, &[("a", 1), ("b", 2)]));
    match operation.decide(current.as_ref(), version(9)) {
        Ok(EntityEffect::Delete) => Ok(None),
        Ok(EntityEffect::Put { value, version: assigned }) => {
            assert_eq!(assigned, version(9));
            assert_eq!(stored::written_at(&value), Ok(assigned.ticks()));
            Ok(Some(stored::decode(&value).expect("readable")))
        }
        Err(TableError::EntityExists(_)) => Err("exists"),
        Err(TableError::EntityNotFound(_)) => Err("not found"),
        Err(TableError::ConditionNotMet(_)) => Err("condition"),
        Err(other) => panic!("unexpected: {other}"),
    }
}

#[test]
fn operations_require_existence_and_matching_etag() {
    let new = || request(&[("b", 3)]);
    let replaced = || Ok(Some(entity(&[("b", 3)])));
    let merged = || Ok(Some(entity(&[("a", 1), ("b", 3)])));
    let (equal, stale) = (Condition::Match(ticks(5)), Condition::Match(ticks(4)));
    let update = |mode, condition| EntityOperation::Update { entity: new(), mode, condition };
    let key = || entity(&[]).key;
    let delete = |condition| EntityOperation::Delete { key: key(), condition };
    let upsert = |mode| EntityOperation::Upsert { entity: new(), mode };

    let cases = [
        (EntityOperation::Insert(new()), Err("exists"), replaced()),
        (update(WriteMode::Replace, equal), replaced(), Err("not found")),
        (update(WriteMode::Replace, stale), Err("condition"), Err("not found")),
        (update(WriteMode::Replace, Condition::Exists), replaced(), Err("not found")),
        (upsert(WriteMode::Replace), replaced(), replaced()),
        (update(WriteMode::Merge, equal), merged(), Err("not found")),
        (update(WriteMode::Merge, stale), Err("condition"), Err("not found")),
        (update(WriteMode::Merge, Condition::Exists), merged(), Err("not found")),
        (upsert(WriteMode::Merge), merged(), replaced()),
        (delete(equal), Ok(None), Err("not found")),
        (delete(stale), Err("condition"), Err("not found")),
        (delete(Condition::Exists), Ok(None), Err("not found")),
    ];

    for (operation, present, absent) in cases {
        assert_eq!(outcome(&operation, true), present, "present: {operation:?}");
        assert_eq!(outcome(&operation, false), absent, "absent: {operation:?}");
    }
}

#[test]
fn rejects_a_merge_with_too_many_properties() {
    let names: Vec<String> = (0..253).map(|index| format!("n{index:03}")).collect();
    let numbered = |range: std::ops::Range<usize>| -> Vec<(&str, i32)> {
        names.get(range).unwrap_or_default().iter().map(|name| (name.as_str(), 1)).collect()
    };
    let current = stored_at(1, &numbered(0..251));
    let merge = |range| EntityOperation::Upsert {
        entity: request(&numbered(range)),
        mode: WriteMode::Merge,
    };

    let at_the_bound = merge(251..252).decide(Some(&current), version(2));
    let past_it = merge(251..253).decide(Some(&current), version(2));

    assert!(at_the_bound.is_ok());
    let Err(TableError::Invalid(fault)) = past_it else { panic!("accepted") };
    assert_eq!(fault.reason, trestle_model::fault::Reason::TooManyProperties);
}

#[test]
fn a_corrupt_entity_is_an_error_and_not_overwritten() {
    let current = Bytes::from_static(b"\xFFgarbage");
    let upsert = EntityOperation::Upsert { entity: request(&[]), mode: WriteMode::Replace };

    assert!(matches!(upsert.decide(Some(&current), version(1)), Err(TableError::Corrupt(_))));
}
