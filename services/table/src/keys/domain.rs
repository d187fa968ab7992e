//! The domain of each key.

use bytes::Bytes;
use trestle_kv::{Domain, DomainRef, key_domain};

use super::{ACCESS_POLICIES, DELETED_TABLE, ENTITY, entity::partition_of};

/// The domain of a key of this service.
pub fn domain(key: &Bytes) -> Domain {
    let of = if key.first().is_some_and(|kind| *kind < ENTITY) { of_record } else { of_row };
    Domain::of_key(key, of)
}

/// The domain of a small record: the record itself, but one for all records of a table id.
pub(super) fn of_record(key: &[u8]) -> DomainRef<'_> {
    match key {
        [ACCESS_POLICIES | DELETED_TABLE, id @ ..] => {
            DomainRef { group: ACCESS_POLICIES, part: id }
        }
        _ => key_domain(key),
    }
}

/// The domain of a row of any kind: table id and PartitionKey. A row beside an entity, of another kind in this
/// keyspace, is in the domain of its entity as long as its key starts with the same two.
pub(super) fn of_row(key: &[u8]) -> DomainRef<'_> {
    let partition = partition_of(key).unwrap_or(key);
    DomainRef { group: ENTITY, part: partition.get(1..).unwrap_or_default() }
}
