//! Batches whose records are in segments.

use super::{LogSweeper, STEP};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    stream::{Head, StreamId},
};

impl LogSweeper {
    /// Deletes a part of the sealed batches of a stream. Nothing reads them: a snapshot that does is older, and has
    /// them.
    pub(super) async fn trim(&self, id: StreamId, head: &Head) -> Result<bool, LogError> {
        let sealed = keys::rows_before(StreamRow::Batch, id, head.sealed_before);
        let scan = self.logs.engine.scan(&sealed, STEP).await?;
        let rows: Vec<_> = scan.entries.into_iter().map(|entry| entry.key).collect();
        self.delete_rows(&keys::stream_domain(id), &rows).await?;
        Ok(scan.more)
    }
}
