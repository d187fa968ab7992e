//! The rows and objects of deleted streams.

use trestle_kv::{Entry, ScanLimit};

use super::{LogSweeper, STEP, STREAM_GRACE};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    stored::{StoredForm as _, decode_path},
    stream::{SegmentRecord, StreamId},
};

/// Most deleted streams examined in one tick.
const DELETED: ScanLimit = ScanLimit { rows: 100, bytes: 1024 * 1024 };

impl LogSweeper {
    /// Reclaims a part of each deleted stream whose grace period has ended, while no backup reads objects.
    ///
    /// # Errors
    /// A failed scan. What failed for a stream is returned, after the others.
    pub(super) async fn sweep_deleted(&self) -> Result<(bool, Result<(), LogError>), LogError> {
        let (mut more, mut outcome) = (false, Ok(()));
        for entry in self.logs.engine.scan(&keys::deleted_streams(), DELETED).await?.entries {
            match self.reclaim(entry).await {
                Ok(has_more) => more |= has_more,
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        Ok((more, outcome))
    }

    /// Reclaims a part of a deleted stream. Returns whether more remains.
    async fn reclaim(&self, deleted: Entry) -> Result<bool, LogError> {
        let id = keys::stream_of(&deleted.key)?;
        let deleted_for = self.logs.engine.now().since(keys::decode_ticks(&deleted.value)?);
        if deleted_for < STREAM_GRACE || !self.logs.is_ours(id) {
            return Ok(false);
        }
        let Some(_deletes) = self.logs.area.hold.begin_delete() else { return Ok(false) };
        let has_more = self.reclaim_part(id).await?;
        if !has_more {
            self.delete_rows(&keys::own_domain(&deleted.key), &[deleted.key]).await?;
        }
        Ok(has_more)
    }

    /// Deletes a part of the rows of a stream, and the objects that they name. Returns whether there were any.
    async fn reclaim_part(&self, id: StreamId) -> Result<bool, LogError> {
        self.logs.engine.discard(&keys::rows(StreamRow::Batch, id)).await?;
        for row in StreamRow::ALL {
            let scan = self.logs.engine.scan(&keys::rows(row, id), STEP).await?;
            if scan.entries.is_empty() {
                continue;
            }
            for entry in &scan.entries {
                if let Some(path) = path_in(row, entry)? {
                    self.delete_object(&path).await?;
                }
            }
            self.delete_keys(id, &scan.entries).await?;
            return Ok(true);
        }
        Ok(false)
    }
}

/// The object that a row names, if rows of its kind do.
fn path_in(row: StreamRow, entry: &Entry) -> Result<Option<String>, LogError> {
    match row {
        StreamRow::Segment | StreamRow::Expired => {
            Ok(Some(SegmentRecord::decode(&entry.value)?.path))
        }
        StreamRow::Announced | StreamRow::Retired => {
            decode_path(&entry.value).map(|path| Some(path.to_owned()))
        }
        StreamRow::Request | StreamRow::RequestTime | StreamRow::Batch => Ok(None),
    }
}
