//! What all streams of the store have together, for metrics.

#[cfg(test)]
mod tests;

use std::time::Duration;

use trestle_kv::{ScanLimit, scan_in_steps};
use trestle_model::time::Ticks;

use crate::{
    error::LogError,
    heads::read_heads,
    keys,
    logs::Logs,
    stored::StoredForm as _,
    stream::{Head, StreamRecord},
};

/// Most streams that are examined; the rest is not measured.
const MEASURED_STREAMS_MAX: usize = 100_000;
/// What one scan reads at most.
const STEP: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// The streams of a store together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamTotals {
    /// How many streams exist.
    pub streams: u64,
    /// Bytes of the batches that are not sealed.
    pub unsealed_bytes: u64,
    /// How long records have been due to be sealed by their age, in the stream where it is longest.
    pub seal_delay: Duration,
    /// How many segments there are.
    pub segments: u64,
    /// The bytes of their objects.
    pub segment_bytes: u64,
    /// How many of them are known to be damaged.
    pub damaged_segments: u64,
}

impl StreamTotals {
    fn add(&mut self, record: &StreamRecord, head: &Head, now: Ticks) {
        self.streams += 1;
        self.segments = self.segments.saturating_add(head.segments);
        self.segment_bytes = self.segment_bytes.saturating_add(head.segment_bytes);
        self.damaged_segments = self.damaged_segments.saturating_add(head.damaged_segments);
        if head.unsealed_records() > 0 {
            self.unsealed_bytes = self.unsealed_bytes.saturating_add(head.unsealed_bytes);
            let since = Ticks::new(head.unsealed_since).unwrap_or(now);
            let late = now.since(since).saturating_sub(record.settings.roll.max_age);
            self.seal_delay = self.seal_delay.max(late);
        }
    }
}

impl Logs {
    /// What all streams have together.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn totals(&self) -> Result<StreamTotals, LogError> {
        let heads = read_heads(&*self.engine, MEASURED_STREAMS_MAX).await?;
        let (mut totals, now) = (StreamTotals::default(), self.engine.now());
        let streams =
            scan_in_steps(&*self.engine, keys::every_stream(), STEP, MEASURED_STREAMS_MAX);
        for entry in streams.await? {
            let Ok(record) = StreamRecord::decode(&entry.value) else { continue };
            // A stream that was created after the heads were read counts without records.
            let head = heads.get(&record.id).copied().flatten().unwrap_or_default();
            totals.add(&record, &head, now);
        }
        Ok(totals)
    }
}
