//! The rows that a write or a delete reads, since it replaces them.

use trestle_kv::{ChangeSpec, ReadId, Reads};

use super::ReplacedState;
use crate::{
    blobs::{BlobKey, decode_stored},
    error::BlobError,
    keys::BlobRow,
    record::{Retention, Staging},
    stored::Stored as _,
};

/// The rows of a blob that a change replaces.
#[derive(Clone, Copy)]
pub(crate) struct ReplacedRows {
    /// The record.
    pub(crate) record: ReadId,
    /// The staged blocks as a whole.
    pub(crate) staging: ReadId,
    inline: Option<ReadId>,
}

impl ReplacedRows {
    /// The rows that a change reads.
    pub(crate) fn new(blob: &BlobKey, spec: &mut ChangeSpec, retention: Retention) -> Self {
        let mut row = |row| spec.read(blob.row(row, &[]));
        let (record, staging) = (row(BlobRow::Record), row(BlobRow::Staging));
        let inline = retention.keeps().then(|| row(BlobRow::Inline));
        Self { record, staging, inline }
    }

    /// The state in these rows.
    ///
    /// # Errors
    /// [`BlobError::Corrupt`].
    pub(crate) fn get(self, reads: &Reads<'_>) -> Result<ReplacedState, BlobError> {
        let stored = decode_stored(reads.get(self.record))?;
        let is_deleted = stored.as_ref().is_some_and(|stored| stored.deletion.is_some());
        let (current, deleted) = if is_deleted { (None, stored) } else { (stored, None) };
        let staging = reads.get(self.staging).map(|value| Staging::decode(value)).transpose()?;
        let inline = self.inline.and_then(|inline| reads.get(inline)).cloned();
        Ok(ReplacedState { current, staging, deleted, inline })
    }
}
