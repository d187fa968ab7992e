//! Table ids, and the counter that allocates them.

use bytes::Bytes;

use super::{NEXT_TABLE_ID, VERSION, read_u64, versioned};
use crate::corrupt::CorruptRecord;

/// Identifies a table in every key of its entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

/// Key of the id that the next table gets.
pub fn next_table_id() -> Bytes {
    Bytes::from_static(&[NEXT_TABLE_ID])
}

/// The stored form of the next table id.
pub fn encode_next_id(id: TableId) -> Bytes {
    let mut value = vec![VERSION];
    value.extend_from_slice(&id.0.to_be_bytes());
    value.into()
}

/// Decodes the next table id; 1 before the first table.
///
/// # Errors
/// [`CorruptRecord`].
pub fn decode_next_id(value: Option<&Bytes>) -> Result<TableId, CorruptRecord> {
    let what = "next table id";
    let Some(value) = value else {
        return Ok(TableId(1));
    };
    let (id, _) = read_u64(versioned(value, what)?).ok_or(CorruptRecord(what))?;
    Ok(TableId(id))
}
