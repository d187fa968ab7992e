//! Page blobs: writing and clearing pages of 512 bytes, resizing, sequence numbers, and which pages have data.
//!
//! Pages are rows of 64 KiB, the chunks. The key of a chunk has an epoch: the newest snapshot at the time of the write.
//! So a write after a snapshot leaves the chunks of the snapshot as they are, and a snapshot reads the newest chunk of
//! an epoch before it.

mod change;
mod chunk;
mod copy;
mod pinned;
mod ranges;
mod read;
mod sequence;
mod stored_chunk;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    change::{PageUpdate, SequenceUpdate},
    copy::CopiedPages,
    pinned::PinnedChunks,
    ranges::{PageRange, PageRangesRequest},
    read::unread_epochs,
    sequence::SequenceConditions,
};

use trestle_model::time::Ticks;
use uuid::Uuid;

use crate::{
    blobs::BlobKey,
    conditions::{Conditions, WriteKind},
    error::BlobError,
    record::{BlobKind, BlobRecord, Content, PageContent},
};

/// Length of a page, in bytes.
pub(crate) const PAGE_BYTES: u64 = 512;
/// Most attempts of a change, where the blob is changed meanwhile.
const ATTEMPTS_MAX: usize = 16;

/// A call that changes a page blob, and when it takes place.
#[derive(Debug, Clone)]
pub(crate) struct PageCommand {
    /// The blob.
    pub(crate) blob: BlobKey,
    /// The conditions.
    pub(crate) conditions: Conditions,
    /// The id of the lease of the client.
    pub(crate) lease_id: Option<Uuid>,
    /// Conditions on the sequence number.
    pub(crate) sequence: SequenceConditions,
}

/// Why pages were not changed or compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PageError {
    /// The pages are not in the blob.
    #[error("the page range specified is invalid: size=`{size}`")]
    Range {
        /// Length of the blob, in bytes.
        size: u64,
    },
    /// The sequence number does not fulfil the conditions.
    #[error("the sequence number condition is not met: sequence_number=`{0}`")]
    Sequence(u64),
    /// The snapshot to compare with does not exist.
    #[error("the previous snapshot is not found")]
    PreviousAbsent,
    /// The snapshot to compare with is newer than the one that is read.
    #[error("the previous snapshot cannot be newer than the snapshot that is read")]
    PreviousNewer,
    /// The blob was replaced since the snapshot to compare with.
    #[error("the blob was overwritten since the previous snapshot")]
    Overwritten,
    /// The sequence number cannot be incremented.
    #[error("the sequence number increment cannot be performed: it would be too large")]
    SequenceTooLarge,
}

/// The content of a page blob, for a call that the lease and the conditions permit. The lease becomes the one after the
/// call.
///
/// # Errors
/// A blob of another kind, a lease or a condition that does not permit it.
fn check(
    current: &mut BlobRecord,
    command: &PageCommand,
    now: Ticks,
) -> Result<PageContent, BlobError> {
    let PageCommand { blob, conditions, lease_id, sequence } = command;
    let content = content_of(current, blob)?;
    let lease = current.lease.check_write(*lease_id, now).map_err(BlobError::BlobLease)?;
    conditions.check_write(Some(&*current), WriteKind::Change)?;
    sequence.check(content.sequence_number)?;
    current.lease = lease;
    Ok(content)
}

/// The content of a page blob.
///
/// # Errors
/// [`BlobError::OtherKind`].
fn content_of(current: &BlobRecord, blob: &BlobKey) -> Result<PageContent, BlobError> {
    blob.check_kind(Some(current), BlobKind::Page, false)?;
    match current.content {
        Content::Pages(content) => Ok(content),
        _ => Err(BlobError::OtherKind(blob.name.clone())),
    }
}

/// The epoch of a write to a blob.
fn epoch(record: &BlobRecord) -> u64 {
    record.newest_snapshot().map_or(0, Ticks::get)
}
