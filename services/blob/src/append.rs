//! Append blobs: creating them, appending to them and sealing them. Small appends are rows, larger ones objects; rows
//! are compacted into objects in the background. The content never changes but at its end, so what is read by offset is
//! the same before and after a compaction.

mod compact;
mod pieces;
#[cfg(test)]
mod tests;

pub(crate) use self::pieces::ReadStep;

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Lock, Version, Writes, transact};
use trestle_model::{limits::BLOCKS_MAX, time::Ticks};
use uuid::Uuid;

use crate::{
    blobs::{BlobKey, Blobs, NewContent, decode_record},
    conditions::{Conditions, WriteKind},
    error::BlobError,
    etag::ETag,
    extent::EXTENT_BYTES,
    keys::{self, BlobRow, PieceForm},
    record::{AppendContent, BlobKind, BlobRecord, Content},
    stored::Stored as _,
    upload::PublishedBy,
};

/// Rows of so many bytes are compacted.
const COMPACTED_FROM: u64 = EXTENT_BYTES;

/// A call on an append blob, and when it takes place.
#[derive(Debug, Clone)]
pub(crate) struct AppendCommand {
    /// The blob.
    pub(crate) blob: BlobKey,
    /// The conditions.
    pub(crate) conditions: Conditions,
    /// The id of the lease of the client.
    pub(crate) lease_id: Option<Uuid>,
    /// The length that the blob must have before, in bytes.
    pub(crate) position: Option<u64>,
    /// The largest length that the blob may have after it, in bytes.
    pub(crate) size_max: Option<u64>,
}

/// Why nothing was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AppendError {
    /// The length is not the expected one.
    #[error("the append position condition is not met: position=`{expected}`, size=`{size}`")]
    Position {
        /// By the condition.
        expected: u64,
        /// The length of the blob.
        size: u64,
    },
    /// The blob would be too large.
    #[error("the max blob size condition is not met: size_max=`{size_max}`, size=`{size}`")]
    TooLarge {
        /// By the condition.
        size_max: u64,
        /// The length that the blob would have.
        size: u64,
    },
    /// The blob is sealed.
    #[error("the specified blob is sealed and its contents can't be modified")]
    Sealed,
    /// The blob has as many blocks as it may have.
    #[error("the committed block count cannot exceed the maximum limit of {BLOCKS_MAX} blocks")]
    TooManyBlocks,
}

/// The result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Appended {
    /// The blob.
    pub(crate) record: BlobRecord,
    /// Where the data begins.
    pub(crate) offset: u64,
}

/// The content of an append blob, for a call that the lease and the conditions permit. The lease becomes the one after
/// the call.
///
/// # Errors
/// A blob of another kind, a lease or a condition that does not permit it.
fn check(
    current: &mut BlobRecord,
    command: &AppendCommand,
    now: Ticks,
) -> Result<AppendContent, BlobError> {
    let AppendCommand { blob, conditions, lease_id, position, .. } = command;
    blob.check_kind(Some(current), BlobKind::Append, false)?;
    let Content::Append(content) = current.content else {
        return Err(BlobError::OtherKind(blob.name.clone()));
    };
    let lease = current.lease.check_write(*lease_id, now).map_err(BlobError::BlobLease)?;
    conditions.check_write(Some(&*current), WriteKind::Change)?;
    current.lease = lease;
    if let Some(expected) = position.filter(|position| *position != content.size) {
        return Err(AppendError::Position { expected, size: content.size }.into());
    }
    Ok(content)
}

/// The content after an append of so many bytes, as a row or not.
///
/// # Errors
/// A sealed blob, one with too many blocks, or a condition on the length.
fn decide_append(
    content: AppendContent,
    (bytes, is_row): (u64, bool),
    size_max: Option<u64>,
) -> Result<AppendContent, AppendError> {
    if content.is_sealed {
        return Err(AppendError::Sealed);
    }
    if content.blocks >= BLOCKS_MAX as u64 {
        return Err(AppendError::TooManyBlocks);
    }
    let size = content.size.saturating_add(bytes);
    if let Some(size_max) = size_max.filter(|size_max| size > *size_max) {
        return Err(AppendError::TooLarge { size_max, size });
    }
    let row_bytes = content.row_bytes + if is_row { bytes } else { 0 };
    Ok(AppendContent { size, row_bytes, blocks: content.blocks + 1, ..content })
}

/// A piece of an append blob, before it has a place: its row, and its length.
#[derive(Debug, Clone)]
struct NewPiece {
    form: PieceForm,
    row: Bytes,
    bytes: u64,
}

impl NewPiece {
    fn of(new: &NewContent) -> Self {
        match new {
            NewContent::Whole(part) => {
                Self { form: PieceForm::Object, row: part.encode(), bytes: part.size }
            }
            NewContent::Inline(row) => {
                let bytes = row.len().saturating_sub(8) as u64;
                Self { form: PieceForm::Bytes, row: row.clone(), bytes }
            }
            NewContent::Append
            | NewContent::Appended { .. }
            | NewContent::Blocks(_)
            | NewContent::Pages { .. } => {
                Self { form: PieceForm::Bytes, row: Bytes::new(), bytes: 0 }
            }
        }
    }
}

impl BlobKey {
    /// Writes all bytes of an append blob as one piece.
    pub(crate) fn put_piece(&self, bytes: &NewContent, content: &Content, writes: &mut Writes) {
        let (Content::Append(content), piece) = (content, NewPiece::of(bytes)) else { return };
        if piece.bytes > 0 {
            let place = (content.generation, content.size);
            writes.put(keys::piece(self.container, &self.name, place, piece.form), piece.row);
        }
    }

    /// Requires a compaction, if a blob that is restored needs one.
    pub(crate) fn require_compaction(
        &self,
        restored: &BlobRecord,
        version: Version,
        writes: &mut Writes,
    ) {
        if let Content::Append(content) = restored.content
            && content.row_bytes >= COMPACTED_FROM
        {
            let due = keys::encode_number(version.ticks().get());
            writes.put(self.row(BlobRow::Compaction, &[]), due);
        }
    }

    /// Removes the row that requires a compaction, if there is one.
    pub(crate) fn forget_compaction(&self, current: Option<&BlobRecord>, writes: &mut Writes) {
        if let Some(Content::Append(content)) = current.map(|current| current.content)
            && content.row_bytes >= COMPACTED_FROM
        {
            writes.delete(self.row(BlobRow::Compaction, &[]));
        }
    }
}

impl Blobs {
    /// Whether data could be appended now: to reject it before it is sent.
    ///
    /// # Errors
    /// As [`Blobs::append`].
    pub(crate) async fn check_append(&self, command: &AppendCommand) -> Result<(), BlobError> {
        let value = self.engine.get(&command.blob.row(BlobRow::Record, &[])).await?;
        let current = decode_record(value.as_ref())?;
        let mut current = current.ok_or_else(|| command.blob.not_found())?;
        let content = check(&mut current, command, self.now())?;
        Ok(decide_append(content, (1, true), command.size_max).map(drop)?)
    }

    /// Appends uploaded data, which is not empty, in time.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], a blob of another kind, a lease or a condition that does not permit it, or a failed
    /// commit.
    pub(crate) async fn append(
        &self,
        command: AppendCommand,
        new: NewContent,
        publish_by: PublishedBy,
    ) -> Result<Appended, BlobError> {
        let blob = command.blob.clone();
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        if let NewContent::Whole(part) = &new {
            spec.also(keys::own_domain(&keys::live(part.content)), Lock::Exclusive);
        }
        let piece = NewPiece::of(&new);
        transact(&*self.engine, spec, move |reads, version| {
            publish_by.check(version)?;
            let mut current = decode_record(reads.get(record))?.ok_or_else(|| blob.not_found())?;
            let before = check(&mut current, &command, version.ticks())?;
            let is_row = piece.form == PieceForm::Bytes;
            let content = decide_append(before, (piece.bytes, is_row), command.size_max)?;
            let (record_key, mut writes) = (reads.key(record).clone(), Writes::new());
            let record = appended(current, content, version);
            writes.put(record_key, record.encode());
            let place = (content.generation, content.size);
            let key = keys::piece(blob.container, &blob.name, place, piece.form);
            writes.put(key, piece.row.clone());
            if let NewContent::Whole(part) = &new {
                writes.put(keys::live(part.content), keys::encode_number(part.size));
            }
            if before.row_bytes < COMPACTED_FROM && content.row_bytes >= COMPACTED_FROM {
                let due = keys::encode_number(version.ticks().get());
                writes.put(blob.row(BlobRow::Compaction, &[]), due);
            }
            Ok::<_, BlobError>((writes, Appended { record, offset: before.size }))
        })
        .await?
    }

    /// Ends the appends to a blob. Its etag stays the same.
    ///
    /// # Errors
    /// As [`Blobs::append`], but for a sealed blob.
    pub(crate) async fn seal(&self, command: AppendCommand) -> Result<BlobRecord, BlobError> {
        let blob = command.blob.clone();
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        transact(&*self.engine, spec, move |reads, version| {
            let before = decode_record(reads.get(record))?.ok_or_else(|| blob.not_found())?;
            let mut current = before.clone();
            let content = check(&mut current, &command, version.ticks())?;
            current.content = Content::Append(AppendContent { is_sealed: true, ..content });
            let mut writes = Writes::new();
            if current != before {
                writes.put(reads.key(record).clone(), current.encode());
            }
            Ok::<_, BlobError>((writes, current))
        })
        .await?
    }
}

/// The record after an append.
fn appended(current: BlobRecord, content: AppendContent, version: Version) -> BlobRecord {
    BlobRecord { etag: ETag(version.ticks()), content: Content::Append(content), ..current }
}
