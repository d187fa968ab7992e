//! Reading the chunks of a page blob: as content, and by pages.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use trestle_kv::turns::Pace;
use trestle_model::limits::READ_MESSAGE_BYTES_MAX;

use super::{
    chunk::CHUNK_BYTES,
    pinned::PinnedChunks,
    stored_chunk::{ChunkPart, chunks_in},
};
use crate::{
    append::ReadStep,
    blobs::{BlobKey, Blobs},
    error::BlobError,
    extent::to_usize,
};

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
