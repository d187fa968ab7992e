//! The chunks of a page blob as they were when it was opened, whatever is written to it meanwhile.

#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc, time::Duration};

use tokio::time::Instant;
use trestle_kv::{EngineError, Snapshot, turns::Pace};

use super::stored_chunk::{ChunkPart, ChunkView, chunks_in};
use crate::{
    blobs::{BlobKey, BlobState, Blobs},
    conditions::ConditionError,
    error::BlobError,
    etag::ETag,
};

/// How long a reader keeps a snapshot of the engine. It holds back what the engine may drop, so a slow reader does not
/// decide how long.
pub(super) const HELD_MAX: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Clone)]
pub(crate) struct PinnedChunks {
    blob: BlobKey,
    state: BlobState,
    etag: ETag,
    view: ChunkView,
    snapshot: Arc<dyn Snapshot>,
    since: Instant,
}

impl PinnedChunks {
    /// The chunks of a state of a blob that was read from this snapshot with this etag.
    pub(crate) fn new(
        (blob, state): (BlobKey, BlobState),
        (generation, etag): (u64, ETag),
        snapshot: Arc<dyn Snapshot>,
    ) -> Self {
        let view = ChunkView { generation, before_epoch: state.time() };
        Self { blob, state, etag, view, snapshot, since: Instant::now() }
    }

    /// Which chunks are read.
    pub(crate) fn view(&self) -> ChunkView {
        self.view
    }

    /// Chunks by index, each with all its epochs; a part at a time.
    ///
    /// # Errors
    /// [`ConditionError::NotMet`] where the snapshot was held too long and the blob was changed since, or the past
    /// state was deleted too long ago; a failed read.
    pub(super) async fn chunks(
        &mut self,
        blobs: &Blobs,
        indices: Range<u64>,
        pace: &mut Pace,
    ) -> Result<ChunkPart, BlobError> {
        if self.since.elapsed() >= HELD_MAX {
            self.renew(blobs).await?;
        }
        let generation = self.view.generation;
        match chunks_in(&*self.snapshot, &self.blob, generation, indices.clone(), pace).await {
            Err(BlobError::Read(EngineError::SnapshotEnded { .. })) => {
                self.renew(blobs).await?;
                chunks_in(&*self.snapshot, &self.blob, generation, indices, pace).await
            }
            result => result,
        }
    }

    /// Replaces the snapshot by a new one in which the chunks are the same.
    async fn renew(&mut self, blobs: &Blobs) -> Result<(), BlobError> {
        let snapshot: Arc<dyn Snapshot> = blobs.engine.snapshot().await?.into();
        // No write changes the chunks of a past state, but the sweeper deletes them some time after it.
        if let Some(time) = self.view.before_epoch {
            if !self.blob.has_past(&*snapshot, time).await? {
                return Err(ConditionError::NotMet.into());
            }
        } else {
            match self.state.stored(&*snapshot, &self.blob).await {
                Ok(record) if record.etag == self.etag => {}
                Ok(_) | Err(BlobError::BlobNotFound(_)) => {
                    return Err(ConditionError::NotMet.into());
                }
                Err(error) => return Err(error),
            }
        }
        (self.snapshot, self.since) = (snapshot, Instant::now());
        Ok(())
    }
}
