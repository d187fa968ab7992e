//! Segments past the retention of their stream.

use super::{LogSweeper, STEP};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    manifest::{self, ManifestChange},
    stored::StoredForm as _,
    stream::SegmentRecord,
    streams::OpenStream,
};

impl LogSweeper {
    /// Removes a part of the segments whose records are all older than the retention, in changes that a store accepts
    /// which is short of space. The manifest is ordered by the time of the newest record, so nothing else is read.
    pub(super) async fn end_retention(&self, stream: &OpenStream) -> Result<bool, LogError> {
        let Some(retention) = stream.record.settings.retention else { return Ok(false) };
        let nanos = u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX);
        let (id, before) = (stream.record.id, self.logs.now_nanos().saturating_sub(nanos));
        let expired = keys::rows_before(StreamRow::Segment, id, before);
        let scan = self.logs.engine.scan(&expired, STEP).await?;
        let removed = scan.entries.iter().map(|entry| SegmentRecord::decode(&entry.value));
        let mut expired = removed.collect::<Result<Vec<_>, _>>()?;
        while !expired.is_empty() {
            let paths = expired.iter().map(|segment| segment.path.as_str());
            let removed: Vec<_> = expired.drain(..manifest::retired_at_once(paths)).collect();
            let (segments, records) =
                (removed.len(), removed.iter().map(|segment| segment.records).sum::<u64>());
            let change = ManifestChange { removed, ..ManifestChange::default() };
            if manifest::publish(&*self.logs.engine, id, change).await?.is_some() {
                let stream = stream.name.as_str();
                tracing::info!(stream, segments, records, "segments are past their retention");
            }
        }
        Ok(scan.more)
    }
}
