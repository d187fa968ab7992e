//! Keys of entities: table id, PartitionKey, RowKey.

use bytes::Bytes;
use trestle_kv::{Span, after_prefix, order};

use super::{ENTITY, TableId, table_id_prefix};
use crate::entity::EntityKey;

/// Bytes before the PartitionKey of an entity: the kind and the table id.
const HEAD_BYTES: usize = 9;

/// Every entity of a table.
pub fn entities(id: TableId) -> Span {
    Span::prefix(&table_id_prefix(ENTITY, id))
}

/// Key of an entity.
pub fn entity(id: TableId, key: &EntityKey) -> Bytes {
    row(id, &key.partition_key, &key.row_key)
}

/// Key of the entity with this PartitionKey and RowKey.
pub fn row(id: TableId, partition_key: &str, row_key: &str) -> Bytes {
    let mut out = partition_prefix(id, partition_key);
    order::push_text(&mut out, row_key);
    out.into()
}

/// First possible key of a partition.
pub fn partition_start(id: TableId, partition_key: &str) -> Bytes {
    partition_prefix(id, partition_key).into()
}

/// First possible key after a partition.
pub fn partition_end(id: TableId, partition_key: &str) -> Bytes {
    after_prefix(&partition_prefix(id, partition_key)).into()
}

/// The prefix that the key of an entity shares with exactly the keys of its partition; none where the key has no
/// whole PartitionKey.
pub fn partition_of(key: &[u8]) -> Option<&[u8]> {
    let (head, text) = key.split_at_checked(HEAD_BYTES)?;
    // A zero in the text is followed by another byte than the one that ends it.
    let end = text.windows(2).position(|pair| pair == [0, 1])?;
    key.get(..head.len() + end + 2)
}

/// The PartitionKey in a prefix that [`partition_of`] returned.
pub fn partition_key(partition: &[u8]) -> Option<String> {
    order::take_text(&mut partition.get(HEAD_BYTES..)?)
}

fn partition_prefix(id: TableId, partition_key: &str) -> Vec<u8> {
    let mut key = table_id_prefix(ENTITY, id);
    order::push_text(&mut key, partition_key);
    key
}
