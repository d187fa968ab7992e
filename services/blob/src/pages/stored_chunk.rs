//! The chunks of a page blob as rows, with their epochs, and which of them a reader has.

use std::ops::Range;

use trestle_kv::{ScanLimit, Snapshot, Span, after_key, turns::Pace};

use super::chunk::PageChunk;
use crate::{blobs::BlobKey, error::BlobError, keys};

/// Chunks that are read at once.
const SCAN: ScanLimit = ScanLimit { rows: 64, bytes: 2 * 1024 * 1024 };

/// Which chunks a reader has: those of one content, of the epochs before an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkView {
    /// The number in the keys of the chunks.
    pub(crate) generation: u64,
    /// The epochs before this one: the time of a snapshot, or none for the blob.
    pub(crate) before_epoch: Option<u64>,
}

/// A chunk with its place.
#[derive(Debug, Clone)]
pub(crate) struct StoredChunk {
    /// Its index in the blob.
    pub(crate) index: u64,
    /// The epoch of its last write.
    pub(crate) epoch: u64,
    /// Its pages.
    pub(super) chunk: PageChunk,
}

/// Chunks of a part of a blob.
pub(crate) struct ChunkPart {
    /// Every epoch of every chunk, by index and epoch.
    pub(crate) chunks: Vec<StoredChunk>,
    /// The index behind the last chunk of the part, if there is more.
    pub(crate) next: Option<u64>,
}

impl ChunkView {
    /// Whether a chunk of this epoch belongs to it.
    pub(super) fn has(&self, epoch: u64) -> bool {
        self.before_epoch.is_none_or(|end| epoch < end)
    }

    /// Of the epochs of one chunk, the one that it reads.
    pub(super) fn newest<'a>(&self, epochs: &'a [StoredChunk]) -> Option<&'a StoredChunk> {
        epochs.iter().rev().find(|stored| self.has(stored.epoch))
    }
}

/// Chunks of a content in a snapshot, by index, each with all its epochs; a part at a time.
pub(super) async fn chunks_in(
    snapshot: &dyn Snapshot,
    blob: &BlobKey,
    generation: u64,
    indices: Range<u64>,
    pace: &mut Pace,
) -> Result<ChunkPart, BlobError> {
    let mut span = keys::chunks(blob.container, &blob.name, generation, &indices);
    let mut chunks: Vec<StoredChunk> = Vec::new();
    loop {
        let scan = snapshot.scan(&span, SCAN).await?;
        for entry in &scan.entries {
            let (index, epoch) = keys::chunk_of(&entry.key)?;
            let chunk = PageChunk::decode(&entry.value)?;
            chunks.push(StoredChunk { index, epoch, chunk });
            pace.step().await;
        }
        let (first, last) = match (chunks.first(), chunks.last()) {
            (Some(first), Some(last)) if scan.more => (first.index, last.index),
            _ => return Ok(ChunkPart { chunks, next: None }),
        };
        // The epochs of one chunk are never in two parts.
        if first < last {
            chunks.retain(|stored| stored.index < last);
            return Ok(ChunkPart { chunks, next: Some(last) });
        }
        let Some(entry) = scan.entries.last() else {
            return Err(BlobError::corrupt("chunks of a page blob"));
        };
        span = Span::new(after_key(&entry.key), span.end);
    }
}
