//! Batches whose records are in segments.

use std::{
    collections::HashMap,
    sync::{MutexGuard, PoisonError},
};

use super::{LogSweeper, STEP};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    stream::{Head, StreamId},
};

/// Most streams whose positions are kept. One more, and all are forgotten.
const POSITIONS_MAX: usize = 10_000;

impl LogSweeper {
    /// Deletes a part of the sealed batches of a stream, behind those that were deleted before. Nothing reads them: a
    /// snapshot that does is older, and has them.
    pub(super) async fn trim(&self, id: StreamId, head: &Head) -> Result<bool, LogError> {
        let from = self.trimmed().get(&id).copied().unwrap_or_default();
        if from >= head.sealed_before {
            return Ok(false);
        }
        let mut sealed = keys::rows_before(StreamRow::Batch, id, head.sealed_before);
        sealed.start = keys::batch(id, from);
        let scan = self.logs.engine.scan(&sealed, STEP).await?;
        let rows: Vec<_> = scan.entries.into_iter().map(|entry| entry.key).collect();
        self.delete_rows(&keys::stream_domain(id), &rows).await?;
        let next = match rows.last().filter(|_| scan.more) {
            Some(last) => keys::number_of(last)? + 1,
            None if scan.more => from,
            None => head.sealed_before,
        };
        let mut trimmed = self.trimmed();
        if trimmed.len() >= POSITIONS_MAX {
            trimmed.clear();
        }
        trimmed.insert(id, next);
        Ok(scan.more)
    }

    fn trimmed(&self) -> MutexGuard<'_, HashMap<StreamId, u64>> {
        self.trimmed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
