//! Every key and value layout of the table service that is not an entity's value (see `stored`).
//!
//! The first byte of a key is its kind. Kinds are part of the disk format: never renumber, never reuse.
//!
//! | kind | key after the kind | value |
//! |---|---|---|
//! | 0x10 table | account, lower-cased name | version 1, id u64, created ticks u64, name as created |
//! | 0x11 access policies | table id u64 | version 1, `SetTableAccessPoliciesRequest` without its table |
//! | 0x12 service properties | account | version 1, `ServiceProperties` |
//! | 0x13 deleted table | table id u64 | version 1, deleted ticks u64, key at which sweeping resumes |
//! | 0x14 next table id | nothing | version 1, id u64 |
//! | 0x20 entity | table id u64, PartitionKey, RowKey | see `stored` |
//!
//! Domains, which storage serialises: each table record, each service properties record and the table id counter is
//! its own; access policies and the deleted table record of a table id share one; the rows of a partition share one.
//!
//! Numbers are big-endian, texts are encoded by [`trestle_kv::order`], so keys sort in the order of the API. A table
//! id is never reused: a deleted table and its successor of the same name share no row.

mod deleted_table;
mod domain;
mod entity;
mod settings;
mod table;
mod table_id;
#[cfg(test)]
mod tests;

use trestle_kv::{Keyspace, order};
use trestle_model::name::AccountName;

pub use self::{
    deleted_table::{DeletedTable, deleted_table, deleted_table_id, deleted_tables},
    domain::domain,
    entity::{entities, entity, partition_end, partition_key, partition_of, partition_start, row},
    settings::{access_policies, service_properties},
    table::{TableRecord, all_tables, table, table_account, tables},
    table_id::{TableId, decode_next_id, encode_next_id, next_table_id},
};
use crate::corrupt::CorruptRecord;

const TABLE: u8 = 0x10;
const ACCESS_POLICIES: u8 = 0x11;
const SERVICE_PROPERTIES: u8 = 0x12;
const DELETED_TABLE: u8 = 0x13;
const NEXT_TABLE_ID: u8 = 0x14;
const ENTITY: u8 = 0x20;

/// Version byte of every value in this module.
const VERSION: u8 = 1;

/// The keyspaces of this service: small records apart from the bulk of the entities.
pub const KEYSPACES: &[Keyspace] = &[
    Keyspace { name: "meta", kinds: 0x10..=0x1F, domain: domain::of_record },
    Keyspace { name: "entity", kinds: 0x20..=0x2F, domain: domain::of_row },
];

fn account_prefix(kind: u8, account: &AccountName) -> Vec<u8> {
    let mut key = vec![kind];
    order::push_text(&mut key, account.as_str());
    key
}

fn table_id_prefix(kind: u8, id: TableId) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.push(kind);
    key.extend_from_slice(&id.0.to_be_bytes());
    key
}

fn read_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

/// The bytes after the version byte of a value.
fn versioned<'a>(value: &'a [u8], what: &'static str) -> Result<&'a [u8], CorruptRecord> {
    match value {
        [VERSION, rest @ ..] => Ok(rest),
        _ => Err(CorruptRecord(what)),
    }
}
