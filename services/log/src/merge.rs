//! Merging small segments of a day into one: fewer objects, and fewer of them for a read. Segments that are not small
//! are never merged: it was measured to save neither bytes nor time.

mod late;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use trestle_kv::{Entry, ScanLimit};

use crate::{
    error::LogError,
    keys::{self, StreamRow},
    layout::DAY_NANOS,
    logs::Logs,
    manifest::{self, ManifestChange},
    segment::{SegmentRead, SegmentSchema, WrittenSegment, day_of, merge_segments},
    stored::StoredForm as _,
    stream::SegmentRecord,
    streams::OpenStream,
};

/// Objects of at least so many bytes are not merged.
const SMALL_BYTES: u64 = 4 * 1024 * 1024;
/// Segments of one level that are merged at once, at least.
const FACTOR: usize = 8;
/// The same at most.
const INPUTS_MAX: usize = 16;
/// Bytes of the objects that are merged at once, at most.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Days whose segments every step examines: those of earlier days change only where records are late.
const DAYS: u64 = 3;
/// Most segments that one step examines.
const STEP: ScanLimit = ScanLimit { rows: 5000, bytes: 8 * 1024 * 1024 };

impl Logs {
    /// Merges some small segments of a stream, if there are enough. Returns whether it did.
    ///
    /// # Errors
    /// A failed read, commit or write of the object. Nothing changes then.
    pub(crate) async fn merge_small(&self, stream: &Arc<OpenStream>) -> Result<bool, LogError> {
        let from = self.clocks().service.saturating_sub(DAYS * DAY_NANOS);
        let id = stream.record.id;
        let recent = keys::rows_from(StreamRow::Segment, id, from);
        let scan = self.engine.scan(&recent, STEP).await?;
        let inputs = match choose(self.readable(decode(&scan.entries)?)) {
            None => self.choose_late(id, from).await?,
            inputs => inputs,
        };
        let Some(inputs) = inputs else { return Ok(false) };
        let _writing = self.writing.lock().await;
        let level = inputs.iter().map(|input| input.level).max().unwrap_or_default() + 1;
        let merged = match self.merged(stream, &inputs).await {
            Ok(merged) => merged,
            // The next step merges the others.
            Err(error) => return self.set_damaged_aside(stream, &inputs, error).await,
        };
        let mut claims = Vec::new();
        let stored = self.store_segment(stream, merged, level, &mut claims).await?;
        let Some(added) = stored else { return Ok(false) };
        let (segments, records, path) = (inputs.len(), added.records, added.path.clone());
        let change =
            ManifestChange { added: vec![added], removed: inputs, ..ManifestChange::default() };
        let published = manifest::publish(&*self.engine, id, change).await?;
        if published.is_none() {
            self.delete_unpublished(&[path]).await;
            return Ok(false);
        }
        drop(claims);
        let stream = stream.name.as_str();
        tracing::debug!(stream, segments, records, level, "merged segments");
        Ok(true)
    }

    /// The records of some segments in one.
    async fn merged(
        &self,
        stream: &OpenStream,
        inputs: &[SegmentRecord],
    ) -> Result<WrittenSegment, LogError> {
        let mut readers = Vec::with_capacity(inputs.len());
        for input in inputs {
            readers.push(self.segment_reader(input, SegmentRead::whole()).await?.0);
        }
        let schema = SegmentSchema::new(stream.record.promoted_columns());
        Ok(merge_segments(readers, &schema).await?)
    }
}

fn decode(entries: &[Entry]) -> Result<Vec<SegmentRecord>, LogError> {
    entries.iter().map(|entry| SegmentRecord::decode(&entry.value)).collect()
}

/// The segments to merge: small ones of one day and one level, the oldest first.
fn choose(segments: Vec<SegmentRecord>) -> Option<Vec<SegmentRecord>> {
    let mut small = segments;
    small.retain(|segment| segment.bytes < SMALL_BYTES);
    small.sort_by_key(|segment| {
        (day_of(segment.min_time), segment.level, segment.min_time, segment.id)
    });
    let group = |segment: &SegmentRecord| (day_of(segment.min_time), segment.level);
    small.chunk_by(|one, other| group(one) == group(other)).find_map(|alike| {
        let mut bytes = 0;
        let fits = |segment: &&SegmentRecord| {
            bytes += segment.bytes;
            bytes <= INPUT_BYTES_MAX
        };
        let chosen: Vec<_> = alike.iter().take(INPUTS_MAX).take_while(fits).cloned().collect();
        // Few large ones are enough where a merge of them is no longer small.
        let is_enough = chosen.len() >= FACTOR
            || (chosen.len() >= 2 && chosen.iter().map(|it| it.bytes).sum::<u64>() >= SMALL_BYTES);
        is_enough.then_some(chosen)
    })
}
