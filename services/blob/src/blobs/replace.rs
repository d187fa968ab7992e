//! What becomes of the state that a write or a delete replaces: it is kept as a past state where the settings of the
//! account require it. Large contents are shared, small ones are copied.

mod rows;

use bytes::Bytes;
use trestle_kv::{Version, Writes};
use trestle_model::time::Ticks;

pub(crate) use self::rows::ReplacedRows;
use super::BlobKey;
use crate::{
    error::BlobError,
    keys::{self, BlobRow},
    lease::ResourceLease,
    record::{BlobHistory, BlobRecord, Content, Deletion, Retention, Staging},
    stored::Stored as _,
};

/// The state of a blob that a change replaces.
pub(crate) struct ReplacedState {
    /// The blob, if it exists.
    pub(crate) current: Option<BlobRecord>,
    /// Its staged blocks as a whole.
    pub(crate) staging: Option<Staging>,
    deleted: Option<BlobRecord>,
    inline: Option<Bytes>,
}

impl ReplacedState {
    /// Keeps the blob as a past state, if the settings require it, and a deleted one that has its name. Returns the
    /// name of the state.
    ///
    /// # Errors
    /// [`BlobError::Corrupt`].
    pub(crate) fn keep(
        &self,
        blob: &BlobKey,
        (retention, version): (Retention, Version),
        writes: &mut Writes,
    ) -> Result<Option<Ticks>, BlobError> {
        if let Some(deleted) = &self.deleted {
            let past = BlobRecord { history: BlobHistory::default(), ..deleted.clone() };
            writes.delete(blob.row(BlobRow::SoftDeleted, &[CURRENT]));
            blob.put_past(past.etag.0, &past, writes);
        }
        let Some(current) = self.current.as_ref().filter(|_| retention.keeps()) else {
            return Ok(None);
        };
        let deletion = if retention.versions { None } else { retention.deletion(version.ticks()) };
        let past = BlobRecord {
            lease: ResourceLease::Absent,
            history: BlobHistory::default(),
            deletion,
            // One that was written before versions were kept becomes one now.
            version: retention.versions.then(|| current.version.unwrap_or(current.etag.0)),
            ..current.clone()
        };
        let at = past.etag.0;
        blob.put_past(at, &past, writes);
        self.copy_inline(blob, at, writes)?;
        Ok(Some(at))
    }

    /// Deletes the blob, but keeps what the settings require. Returns false where they require nothing.
    ///
    /// # Errors
    /// [`BlobError::Corrupt`].
    pub(crate) fn keep_deleted(
        &self,
        blob: &BlobKey,
        (retention, version): (Retention, Version),
        writes: &mut Writes,
    ) -> Result<bool, BlobError> {
        if retention.versions && self.current.is_some() {
            writes.delete(blob.row(BlobRow::Record, &[]));
            return Ok(self.keep(blob, (retention, version), writes)?.is_some());
        }
        let (Some(current), Some(deletion)) = (&self.current, retention.deletion(version.ticks()))
        else {
            return Ok(false);
        };
        let deleted = BlobRecord {
            lease: ResourceLease::Absent,
            history: BlobHistory { snapshots: 0, ..current.history },
            deletion: Some(deletion),
            ..current.clone()
        };
        writes.put(blob.row(BlobRow::Record, &[]), deleted.encode());
        blob.put_deletion(CURRENT, &deletion, writes);
        self.copy_inline(blob, current.etag.0, writes)?;
        Ok(true)
    }

    fn copy_inline(&self, blob: &BlobKey, at: Ticks, writes: &mut Writes) -> Result<(), BlobError> {
        let current = self.current.as_ref().map(|current| current.content);
        if matches!(current, Some(Content::Inline { .. })) {
            let row = self.inline.as_ref();
            let row = row.ok_or_else(|| BlobError::corrupt("inline content"))?;
            writes.put(blob.row(BlobRow::Inline, &[at.get()]), row.clone());
        }
        Ok(())
    }
}

/// In the key of a soft-deleted state, the blob itself.
pub(crate) const CURRENT: u64 = 0;

impl BlobKey {
    /// Writes a past state, and when it expires if it is deleted.
    pub(super) fn put_past(&self, at: Ticks, past: &BlobRecord, writes: &mut Writes) {
        writes.put(self.row(BlobRow::Past, &[at.get()]), past.encode());
        if let Some(deletion) = &past.deletion {
            self.put_deletion(at.get(), deletion, writes);
        }
    }

    fn put_deletion(&self, state: u64, deletion: &Deletion, writes: &mut Writes) {
        let until = keys::encode_number(deletion.until.get());
        writes.put(self.row(BlobRow::SoftDeleted, &[state]), until);
    }
}
