//! Every key and value layout of the table service that is not an entity's value (see `stored`).
//!
//! The first byte of a key is its kind. Kinds are part of the disk format: never renumber, never reuse.
//!
//! | kind | key after the kind | value |
//! |---|---|---|
//! | 0x10 table | account, lower-cased name | version 1, id u64, created ticks u64, name as created |
//! | 0x11 access policies | table id u64 | version 1, `SetTableAccessPoliciesRequest` without its table |
//! | 0x12 service properties | account | version 1, `ServiceProperties` |
//! | 0x13 dead table | table id u64 | version 1, deleted ticks u64, key where sweeping goes on |
//! | 0x14 next table id | nothing | version 1, id u64 |
//! | 0x20 entity | table id u64, PartitionKey, RowKey | see `stored` |
//!
//! Numbers are big-endian, texts are encoded by [`trestle_kv::order`], so keys sort as the service promises. A table
//! id is never used twice: a deleted table and its successor of the same name share nothing.

use bytes::Bytes;
use trestle_kv::{Keyspace, Span, after_prefix, order};
use trestle_service::{
    clock::Ticks,
    name::{AccountName, TableName},
};

use crate::{entity::EntityKey, error::TableError};

const TABLE: u8 = 0x10;
const ACCESS_POLICIES: u8 = 0x11;
const SERVICE_PROPERTIES: u8 = 0x12;
const DEAD_TABLE: u8 = 0x13;
const NEXT_TABLE_ID: u8 = 0x14;
const ENTITY: u8 = 0x20;

/// Bytes before the PartitionKey of an entity: the kind and the table.
const ENTITY_HEAD: usize = 9;

/// Version byte of every value in this file.
const VERSION: u8 = 1;

/// Where the kinds of this service live: small records apart from the bulk of the entities.
pub const KEYSPACES: &[Keyspace] = &[
    Keyspace { name: "meta", kinds: 0x10..=0x1F },
    Keyspace { name: "entity", kinds: 0x20..=0x2F },
];

/// The number that stands for a table in every key of its entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

/// What is stored of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRecord {
    /// Its number.
    pub id: TableId,
    /// When it was created.
    pub created_at: Ticks,
    /// Its name as created.
    pub name: String,
}

/// A deleted table whose entities are being removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadTable {
    /// When it was deleted.
    pub deleted_at: Ticks,
    /// First key not swept yet; at first the first key of the table.
    pub resume: Bytes,
}

/// Key of the record of a table.
pub fn table(account: &AccountName, folded_name: &str) -> Bytes {
    let mut key = account_prefix(TABLE, account);
    order::push_text(&mut key, folded_name);
    key.into()
}

/// Every table of an account, by lower-cased name.
pub fn tables(account: &AccountName) -> Span {
    Span::prefix(&account_prefix(TABLE, account))
}

/// Key of the stored access policies of a table.
pub fn access_policies(id: TableId) -> Bytes {
    numbered(ACCESS_POLICIES, id).into()
}

/// Key of the service properties of an account.
pub fn service_properties(account: &AccountName) -> Bytes {
    account_prefix(SERVICE_PROPERTIES, account).into()
}

/// Key of the record of a deleted table.
pub fn dead_table(id: TableId) -> Bytes {
    numbered(DEAD_TABLE, id).into()
}

/// Every deleted table.
pub fn dead_tables() -> Span {
    Span::prefix(&[DEAD_TABLE])
}

/// Key of the number that the next table gets.
pub fn next_table_id() -> Bytes {
    Bytes::from_static(&[NEXT_TABLE_ID])
}

/// Every entity of a table.
pub fn entities(id: TableId) -> Span {
    Span::prefix(&numbered(ENTITY, id))
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

/// The part of the key of an entity that it shares with its partition and with nothing else; none
/// where the key names no whole partition.
pub fn partition_of(key: &[u8]) -> Option<&[u8]> {
    let (head, text) = key.split_at_checked(ENTITY_HEAD)?;
    // A zero in the text is followed by another byte than the one that ends it.
    let end = text.windows(2).position(|pair| pair == [0, 1])?;
    key.get(..head.len() + end + 2)
}

/// The PartitionKey of what [`partition_of`] returned.
pub fn partition_key(partition: &[u8]) -> Option<String> {
    order::take_text(&mut partition.get(ENTITY_HEAD..)?)
}

/// The id of the deleted table that a key of [`dead_tables`] names.
///
/// # Errors
/// [`TableError::Corrupt`].
pub fn dead_table_id(key: &[u8]) -> Result<TableId, TableError> {
    match key {
        [DEAD_TABLE, id @ ..] => read_u64(id).map(|(id, _)| TableId(id)),
        _ => None,
    }
    .ok_or_else(|| TableError::corrupt("key of a deleted table"))
}

fn account_prefix(kind: u8, account: &AccountName) -> Vec<u8> {
    let mut key = vec![kind];
    order::push_text(&mut key, account.as_str());
    key
}

fn numbered(kind: u8, id: TableId) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.push(kind);
    key.extend_from_slice(&id.0.to_be_bytes());
    key
}

fn partition_prefix(id: TableId, partition_key: &str) -> Vec<u8> {
    let mut key = numbered(ENTITY, id);
    order::push_text(&mut key, partition_key);
    key
}

fn read_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

/// What follows the version byte of a value.
fn versioned<'a>(value: &'a [u8], what: &str) -> Result<&'a [u8], TableError> {
    match value {
        [VERSION, rest @ ..] => Ok(rest),
        _ => Err(TableError::corrupt(what)),
    }
}

impl TableRecord {
    /// A new table.
    pub fn new(id: TableId, created_at: Ticks, name: &TableName) -> Self {
        Self { id, created_at, name: name.as_str().to_owned() }
    }

    /// The stored form.
    pub fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.id.0.to_be_bytes());
        value.extend_from_slice(&self.created_at.get().to_be_bytes());
        value.extend_from_slice(self.name.as_bytes());
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`TableError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, TableError> {
        let what = "record of a table";
        let fields = || {
            let (id, rest) = read_u64(versioned(value, what).ok()?)?;
            let (ticks, name) = read_u64(rest)?;
            let name = std::str::from_utf8(name).ok()?.to_owned();
            Some(Self { id: TableId(id), created_at: Ticks::new(ticks)?, name })
        };
        fields().ok_or_else(|| TableError::corrupt(what))
    }
}

impl DeadTable {
    /// The stored form.
    pub fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.deleted_at.get().to_be_bytes());
        value.extend_from_slice(&self.resume);
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`TableError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, TableError> {
        let what = "record of a deleted table";
        let (ticks, resume) =
            read_u64(versioned(value, what)?).ok_or_else(|| TableError::corrupt(what))?;
        let deleted_at = Ticks::new(ticks).ok_or_else(|| TableError::corrupt(what))?;
        Ok(Self { deleted_at, resume: Bytes::copy_from_slice(resume) })
    }
}

/// The stored form of the next table id.
pub fn encode_next_id(id: TableId) -> Bytes {
    let mut value = vec![VERSION];
    value.extend_from_slice(&id.0.to_be_bytes());
    value.into()
}

/// The next table id from its stored form; 1 where there is none yet.
///
/// # Errors
/// [`TableError::Corrupt`].
pub fn decode_next_id(value: Option<&Bytes>) -> Result<TableId, TableError> {
    let what = "next table id";
    let Some(value) = value else {
        return Ok(TableId(1));
    };
    let (id, _) = read_u64(versioned(value, what)?).ok_or_else(|| TableError::corrupt(what))?;
    Ok(TableId(id))
}

/// The stored form of a settings message.
pub fn encode_message(message: &impl prost::Message) -> Bytes {
    let mut value = vec![VERSION];
    message.encode_raw(&mut value);
    value.into()
}

/// A settings message from its stored form; the default where there is none.
///
/// # Errors
/// [`TableError::Corrupt`].
pub fn decode_message<M: prost::Message + Default>(
    value: Option<&Bytes>,
    what: &str,
) -> Result<M, TableError> {
    let Some(value) = value else {
        return Ok(M::default());
    };
    M::decode(versioned(value, what)?).map_err(|_| TableError::corrupt(what))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    proptest! {
        #[test]
        fn entity_keys_sort_by_table_then_by_utf16_of_both_keys(
            a in (0_u64..3, ".{0,4}", ".{0,4}"),
            b in (0_u64..3, ".{0,4}", ".{0,4}"),
        ) {
            let key = |(id, pk, rk): &(u64, String, String)| row(TableId(*id), pk, rk);
            let parts = |(id, pk, rk): &(u64, String, String)| (*id, utf16(pk), utf16(rk));

            prop_assert_eq!(key(&a).cmp(&key(&b)), parts(&a).cmp(&parts(&b)));
        }

        #[test]
        fn a_partition_holds_its_own_rows_and_no_others(pk in ".{0,4}", other in ".{0,4}", rk in ".{0,4}") {
            let id = TableId(7);
            let inside = |key: &Bytes| *key >= partition_start(id, &pk) && *key < partition_end(id, &pk);

            prop_assert!(inside(&row(id, &pk, &rk)));
            prop_assert_eq!(inside(&row(id, &other, &rk)), other == pk);
        }

        #[test]
        fn the_partition_of_a_key_is_what_its_rows_share(
            pk in "[\\x00-\\x02a\u{ff}\u{e000}]{0,5}", rk in "[\\x00-\\x02a\u{ff}]{0,5}",
        ) {
            let key = row(TableId(7), &pk, &rk);
            let partition = partition_of(&key).expect("an entity is in a partition");

            prop_assert_eq!(partition, &*partition_start(TableId(7), &pk));
            prop_assert_eq!(partition_key(partition), Some(pk.clone()));
            for whole in [entities(TableId(7)).start, partition_end(TableId(7), &pk)] {
                prop_assert_eq!(partition_of(&whole), None);
            }
        }

        #[test]
        fn records_survive_and_damaged_ones_are_refused(
            id: u64, ticks in 0..=Ticks::MAX.get(), name in "[A-Za-z][A-Za-z0-9]{2,62}",
            resume in proptest::collection::vec(any::<u8>(), 0..40),
            noise in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let at = Ticks::new(ticks).expect("in range");
            let table = TableRecord { id: TableId(id), created_at: at, name };
            let dead = DeadTable { deleted_at: at, resume: resume.into() };

            prop_assert_eq!(TableRecord::decode(&table.encode()).ok(), Some(table));
            prop_assert_eq!(DeadTable::decode(&dead.encode()).ok(), Some(dead));
            prop_assert_eq!(decode_next_id(Some(&encode_next_id(TableId(id)))).ok(), Some(TableId(id)));
            if noise.first() != Some(&VERSION) {
                prop_assert!(TableRecord::decode(&noise).is_err());
                prop_assert!(DeadTable::decode(&noise).is_err());
            }
        }
    }

    #[test]
    fn no_kind_lives_outside_the_keyspaces_and_none_is_used_twice() {
        let kinds = [TABLE, ACCESS_POLICIES, SERVICE_PROPERTIES, DEAD_TABLE, NEXT_TABLE_ID, ENTITY];
        for (index, kind) in kinds.iter().enumerate() {
            let homes = KEYSPACES.iter().filter(|keyspace| keyspace.kinds.contains(kind)).count();
            assert_eq!(homes, 1, "kind {kind:#x}");
            assert!(!kinds.iter().skip(index + 1).any(|other| other == kind), "kind {kind:#x}");
        }
    }
}
