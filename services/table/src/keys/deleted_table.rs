//! Records of deleted tables whose entities are still to be removed, by table id.

use bytes::Bytes;
use trestle_kv::Span;
use trestle_model::time::Ticks;

use super::{DELETED_TABLE, TableId, VERSION, read_u64, table_id_prefix, versioned};
use crate::corrupt::CorruptRecord;

/// A deleted table whose entities are being removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedTable {
    /// When it was deleted.
    pub deleted_at: Ticks,
    /// First key that was not swept; at first the first key of the table.
    pub resume: Bytes,
}

/// Key of the record of a deleted table.
pub fn deleted_table(id: TableId) -> Bytes {
    table_id_prefix(DELETED_TABLE, id).into()
}

/// Every deleted table.
pub fn deleted_tables() -> Span {
    Span::prefix(&[DELETED_TABLE])
}

/// The table id in a key of [`deleted_tables`].
///
/// # Errors
/// [`CorruptRecord`].
pub fn deleted_table_id(key: &[u8]) -> Result<TableId, CorruptRecord> {
    match key {
        [DELETED_TABLE, id @ ..] => read_u64(id).map(|(id, _)| TableId(id)),
        _ => None,
    }
    .ok_or(CorruptRecord("key of a deleted table"))
}

impl DeletedTable {
    /// The stored form.
    pub fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.deleted_at.get().to_be_bytes());
        value.extend_from_slice(&self.resume);
        value.into()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`CorruptRecord`].
    pub fn decode(value: &[u8]) -> Result<Self, CorruptRecord> {
        let what = "record of a deleted table";
        let (ticks, resume) = read_u64(versioned(value, what)?).ok_or(CorruptRecord(what))?;
        let deleted_at = Ticks::new(ticks).ok_or(CorruptRecord(what))?;
        Ok(Self { deleted_at, resume: Bytes::copy_from_slice(resume) })
    }
}
