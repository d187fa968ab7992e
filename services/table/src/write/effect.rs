//! From the effect on an entity to the writes of storage.

use bytes::Bytes;
use trestle_kv::Writes;

use crate::operation::EntityEffect;

/// Adds the writes of an effect on the entity under `key`: its row.
///
/// Every write of an entity calls this. A row beside it (time to live, index, change feed) is one more write in
/// this function, from the key and the effect; an index also needs the row before. The key of such a row is a kind of
/// the entity's keyspace, the table id and the PartitionKey, then anything: it is in the domain that every change of
/// the entity holds (see `keys::domain`).
pub(super) fn add_writes(key: &Bytes, effect: EntityEffect, writes: &mut Writes) {
    match effect {
        EntityEffect::Put { value, .. } => writes.put(key.clone(), value),
        EntityEffect::Delete => writes.delete(key.clone()),
    };
}
