//! Restoring segments that a retention removed: after the retention is longer, or a wrong clock is right again.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use trestle_kv::{ScanLimit, after_key};

use crate::{
    error::LogError,
    keys::{self, StreamRow},
    logs::Logs,
    manifest::{self, ManifestChange},
    stream::ExpiredSegment,
    streams::OpenStream,
    sweep::EXPIRED_AT_ONCE,
};

/// Rows that one scan reads: those of one change.
const STEP: ScanLimit = ScanLimit { rows: EXPIRED_AT_ONCE, bytes: 4 * 1024 * 1024 };
/// Most tries of a change that finds a segment restored or retired meanwhile.
const TRIES_MAX: usize = 3;

/// What a call restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UndeleteOutcome {
    /// Segments that are back.
    pub(crate) segments: u64,
    /// Their records.
    pub(crate) records: u64,
    /// Segments that can be restored and are still past the retention.
    pub(crate) expired_segments: u64,
}

impl Logs {
    /// Restores the segments that the retention of a stream removed and that are within it now.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], [`LogError::KeepsChanging`], or a failed read or commit. What was restored before
    /// stays, and a repeated call continues.
    pub(crate) async fn undelete(
        &self,
        stream: &Arc<OpenStream>,
    ) -> Result<UndeleteOutcome, LogError> {
        let id = stream.record.id;
        let retention = stream.record.settings.retention;
        let kept_from = retention.map_or(0, |retention| self.clocks().kept_from(retention));
        let mut outcome = UndeleteOutcome::default();
        let mut rest = keys::rows(StreamRow::Expired, id);
        let mut tries = 0;
        loop {
            let scan = self.engine.scan(&rest, STEP).await?;
            let found =
                scan.entries.iter().map(ExpiredSegment::of_row).collect::<Result<Vec<_>, _>>()?;
            let count = found.len() as u64;
            let restored: Vec<_> =
                found.into_iter().filter(|it| it.segment.max_time >= kept_from).collect();
            let (segments, records) =
                (restored.len() as u64, restored.iter().map(|it| it.segment.records).sum::<u64>());
            if segments > 0 {
                let change = ManifestChange { restored, ..ManifestChange::default() };
                if manifest::publish(&*self.engine, id, change).await?.is_none() {
                    tries += 1;
                    self.check_repeatable(stream, tries).await?;
                    continue;
                }
            }
            outcome.segments += segments;
            outcome.records += records;
            outcome.expired_segments += count - segments;
            match scan.entries.last().filter(|_| scan.more) {
                Some(last) => rest.start = after_key(&last.key).into(),
                None => break,
            }
        }
        if outcome.segments > 0 {
            let UndeleteOutcome { segments, records, .. } = outcome;
            tracing::info!(stream = stream.name.as_str(), segments, records, "restored segments");
        }
        Ok(outcome)
    }

    /// # Errors
    /// A stream that was deleted, or too many tries.
    async fn check_repeatable(&self, stream: &OpenStream, tries: usize) -> Result<(), LogError> {
        match self.streams.head(stream.record.id).await? {
            None => Err(LogError::StreamNotFound(stream.name.clone())),
            Some(_) if tries >= TRIES_MAX => Err(LogError::KeepsChanging(stream.name.clone())),
            Some(_) => Ok(()),
        }
    }
}
