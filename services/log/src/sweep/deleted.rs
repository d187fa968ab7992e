//! The rows and objects of deleted streams.

use trestle_kv::{Entry, ScanLimit, after_key};

use super::{LogSweeper, STEP, STREAM_GRACE, SweepOutcome};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    stored::{StoredForm as _, decode_path},
    stream::{SegmentRecord, StreamId},
};

/// Most deleted streams that a scan reads; after so many of its own a tick is over.
const DELETED: ScanLimit = ScanLimit { rows: 100, bytes: 1024 * 1024 };

impl LogSweeper {
    /// Reclaims a part of each deleted stream whose grace period has ended, while no backup reads objects.
    ///
    /// # Errors
    /// A failed scan.
    pub(super) async fn sweep_deleted(&self, outcome: &mut SweepOutcome) -> Result<(), LogError> {
        let mut span = keys::deleted_streams();
        let mut own = 0;
        loop {
            let scan = self.logs.engine.scan(&span, DELETED).await?;
            let Some(last) = scan.entries.last() else { return Ok(()) };
            span.start = after_key(&last.key).into();
            for entry in scan.entries {
                // The row of no stream is everybody's.
                if keys::stream_of(&entry.key).map_or(true, |id| self.logs.is_ours(id)) {
                    own += 1;
                    outcome.add(self.reclaim(entry).await);
                }
            }
            if !scan.more || own >= DELETED.rows {
                return Ok(());
            }
        }
    }

    /// Reclaims a part of a deleted stream. Returns whether more remains.
    async fn reclaim(&self, deleted: Entry) -> Result<bool, LogError> {
        let id = keys::stream_of(&deleted.key)?;
        let deleted_for = self.logs.engine.now().since(keys::decode_ticks(&deleted.value)?);
        if deleted_for < STREAM_GRACE {
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
