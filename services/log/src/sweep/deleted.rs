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
    pub(super) async fn sweep_deleted(&self) -> Result<bool, LogError> {
        let (mut more, now) = (false, self.logs.engine.now());
        for entry in self.logs.engine.scan(&keys::deleted_streams(), DELETED).await?.entries {
            let id = keys::stream_of(&entry.key)?;
            let is_due = now.since(keys::decode_ticks(&entry.value)?) >= STREAM_GRACE;
            if !is_due || !self.logs.is_ours(id) {
                continue;
            }
            let Some(_deletes) = self.logs.area.hold.begin_delete() else { return Ok(false) };
            if self.reclaim_part(id).await? {
                more = true;
            } else {
                self.delete_rows(&keys::own_domain(&entry.key), &[entry.key]).await?;
            }
        }
        Ok(more)
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
