//! Reading the chunks of a page blob: as content, and by pages.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use trestle_kv::{ScanLimit, Snapshot, Span, after_key, turns::Pace};
use trestle_model::limits::READ_MESSAGE_BYTES_MAX;

use super::{
    chunk::{CHUNK_BYTES, PageChunk},
    pinned::PinnedChunks,
};
use crate::{
    append::ReadStep,
    blobs::{BlobKey, Blobs},
    error::BlobError,
    extent::to_usize,
    keys,
};

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

impl Blobs {
    /// Chunks of a content as it is now, by index, each with all its epochs; a part at a time.
    pub(crate) async fn chunks(
        &self,
        blob: &BlobKey,
        generation: u64,
        indices: Range<u64>,
    ) -> Result<ChunkPart, BlobError> {
        let snapshot = self.engine.snapshot().await?;
        chunks_in(&*snapshot, blob, generation, indices, &mut Pace::default()).await
    }

    /// The content of a range of a page blob, in steps of up to a message.
    pub(crate) fn paged(
        &self,
        chunks: PinnedChunks,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<ReadStep, BlobError>> + Send + use<> {
        let blobs = self.clone();
        stream::try_unfold((chunks, range), move |(mut chunks, rest)| {
            let blobs = blobs.clone();
            async move {
                if rest.is_empty() {
                    return Ok(None);
                }
                let end = rest.end.min(rest.start.saturating_add(READ_MESSAGE_BYTES_MAX as u64));
                let bytes = blobs.page_bytes(&mut chunks, rest.start..end).await?;
                Ok(Some((ReadStep::Bytes(bytes), (chunks, end..rest.end))))
            }
        })
    }

    /// The bytes of a range that fits into a message; pages without data are zeros.
    async fn page_bytes(
        &self,
        chunks: &mut PinnedChunks,
        range: Range<u64>,
    ) -> Result<Bytes, BlobError> {
        let mut bytes = BytesMut::zeroed(to_usize(range.end - range.start));
        let mut indices = chunk_indices(&range);
        while !indices.is_empty() {
            let part = chunks.chunks(self, indices.clone(), &mut Pace::default()).await?;
            for epochs in part.chunks.chunk_by(|one, other| one.index == other.index) {
                let Some(stored) = chunks.view().newest(epochs) else { continue };
                let start = stored.index * CHUNK_BYTES;
                let from = range.start.max(start);
                let inside = from - start..range.end.min(start + CHUNK_BYTES) - start;
                if let Some(target) = bytes.get_mut(to_usize(from - range.start)..) {
                    stored.chunk.copy_to(inside, target);
                }
            }
            indices.start = part.next.unwrap_or(indices.end);
        }
        Ok(bytes.freeze())
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

/// Of the epochs of a chunk, in order, those that no reader has: a snapshot reads the newest one before its time, and
/// the blob the newest of all. `snapshots` is in order.
pub(crate) fn unread_epochs(epochs: &[u64], snapshots: &[u64]) -> Vec<u64> {
    let pairs = epochs.iter().zip(epochs.iter().skip(1));
    let is_unread = |(epoch, next): &(&u64, &u64)| {
        // The first snapshot after the write must not be after the next write.
        let after = snapshots.partition_point(|snapshot| snapshot <= epoch);
        snapshots.get(after).is_none_or(|snapshot| snapshot > next)
    };
    pairs.filter(is_unread).map(|(epoch, _)| *epoch).collect()
}

/// The chunks that a range of bytes lies in.
pub(super) fn chunk_indices(range: &Range<u64>) -> Range<u64> {
    range.start / CHUNK_BYTES..range.end.div_ceil(CHUNK_BYTES)
}
