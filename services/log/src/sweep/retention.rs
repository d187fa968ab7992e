//! Segments past the retention of their stream.

use super::{EXPIRED_AT_ONCE, LogSweeper, STEP};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    manifest::{self, ManifestChange, RetentionCheck},
    stored::StoredForm as _,
    stream::SegmentRecord,
    streams::OpenStream,
};

impl LogSweeper {
    /// Removes a part of the segments whose records are all older than the retention. They can be restored for a day,
    /// unless disk space is short. The manifest is ordered by the time of the newest record, so nothing else is read.
    pub(super) async fn end_retention(&self, stream: &OpenStream) -> Result<bool, LogError> {
        let Some(retention) = stream.record.settings.retention else { return Ok(false) };
        let (id, clocks) = (stream.record.id, self.logs.clocks());
        let before = clocks.kept_from(retention);
        let is_short = self.logs.engine.status().is_space_short();
        let expired = keys::rows_before(StreamRow::Segment, id, before);
        let scan = self.logs.engine.scan(&expired, STEP).await?;
        let removed = scan.entries.iter().map(|entry| SegmentRecord::decode(&entry.value));
        let mut expired = removed.collect::<Result<Vec<_>, _>>()?;
        while !expired.is_empty() {
            let paths = expired.iter().map(|segment| segment.path.as_str());
            // A store that is short of space accepts changes that put little more than they remove.
            let count = match is_short {
                true => manifest::retired_at_once(paths),
                false => EXPIRED_AT_ONCE.min(expired.len()),
            };
            let removed: Vec<_> = expired.drain(..count).collect();
            let (segments, records) =
                (removed.len(), removed.iter().map(|segment| segment.records).sum::<u64>());
            // Decided by the retention that the stream has in the change: it may be longer since the record was read.
            let record = keys::stream(&stream.account, &stream.name);
            let retention = Some(RetentionCheck { record, clocks });
            let change = match is_short {
                true => ManifestChange { removed, retention, ..ManifestChange::default() },
                false => {
                    ManifestChange { expired: removed, retention, ..ManifestChange::default() }
                }
            };
            if manifest::publish(&*self.logs.engine, id, change).await?.is_some() {
                let stream = stream.name.as_str();
                tracing::info!(
                    stream,
                    segments,
                    records,
                    restorable = !is_short,
                    "segments are past their retention"
                );
            }
        }
        Ok(scan.more)
    }
}
