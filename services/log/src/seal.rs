//! Sealing: the first unsealed batches of a stream become segments, one for each day of their records.
//!
//! An object is announced in a row, then written and synced, then published by a change that removes the batches from
//! what is unsealed. A crash before leaves the batches as they are, and an object that the sweeper finds by its row.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use trestle_kv::{ScanLimit, SpaceClaim, after_key};
use trestle_model::name::AccountName;

use crate::{
    batch::{BatchRow, BatchView, CorruptBatch, DAYS_MAX},
    error::LogError,
    keys::{self, StreamRow},
    layout,
    logs::Logs,
    manifest::{self, ManifestChange, SealedRange},
    segment::{SegmentSchema, WrittenSegment, day_of, write_segments},
    stream::{Head, SegmentId, SegmentRecord},
    streams::OpenStream,
    threads,
};

/// Most bytes of batches that one seal reads, unless one batch is larger: it holds them and the segments in memory.
const SEAL_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most records of these batches, unless one batch has more: of small ones the rows take more memory than their bytes.
const SEAL_RECORDS_MAX: u64 = 1_000_000;
/// Segments after which the turn of an account ends: the streams of others follow, one segment being written at a time.
const TURN_SEGMENTS_MAX: u32 = 64;
/// Rows that one scan of batches reads.
const BATCHES_STEP: ScanLimit = ScanLimit { rows: 4096, bytes: 16 * 1024 * 1024 };
/// Most tries of a call that finds that another process has sealed what it was to seal.
const FLUSH_TRIES_MAX: usize = 16;
/// How long the sealer waits where nothing is due.
const IDLE_WAIT: Duration = Duration::from_millis(500);

/// What sealing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SealOutcome {
    /// How many records.
    pub(crate) records: u64,
    /// In how many segments.
    pub(crate) segments: u32,
    /// The number of the snapshot of the manifest afterwards.
    pub(crate) snapshot: u64,
}

/// Whether batches of so many bytes and records are enough for one seal.
fn is_whole(bytes: usize, records: u64) -> bool {
    bytes >= SEAL_BYTES_MAX || records >= SEAL_RECORDS_MAX
}

/// The batches of one seal.
struct SealInput {
    batches: Vec<(u64, Bytes)>,
    range: SealedRange,
}

impl Logs {
    /// Seals streams that are due: a turn of each account, its oldest records first. Waits a moment where none is,
    /// unless the server stops. Returns true when another step should follow at once.
    ///
    /// # Errors
    /// The first error; the other streams were sealed too.
    pub(crate) async fn seal_due(&self) -> Result<bool, LogError> {
        let due = self.unsealed.due(self.engine.now(), |stream| self.is_ours(stream));
        if due.is_empty() {
            tokio::select! {
                () = self.unsealed.wait(IDLE_WAIT) => {}
                () = self.shutdown.cancelled() => {}
            }
            return Ok(!self.shutdown.is_cancelled());
        }
        let mut outcome = Ok(());
        let mut by_account: HashMap<AccountName, u32> = HashMap::new();
        for stream in due {
            let segments = by_account.entry(stream.account.clone()).or_default();
            if *segments >= TURN_SEGMENTS_MAX {
                continue;
            }
            match self.seal(&stream, u64::MAX).await {
                Ok(sealed) => *segments += sealed.map_or(0, |sealed| sealed.segments),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| true)
    }

    /// Seals everything that a stream has now.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], [`LogError::Objects`], [`LogError::KeepsChanging`] where a segment took too long
    /// to be published, or a failed read or commit.
    pub(crate) async fn flush(&self, stream: &Arc<OpenStream>) -> Result<SealOutcome, LogError> {
        let not_found = || LogError::StreamNotFound(stream.name.clone());
        let head = self.streams.head(stream.record.id).await?.ok_or_else(not_found)?;
        let (before, mut total) = (head.next_sequence, SealOutcome::default());
        total.snapshot = head.snapshot;
        for _ in 0..FLUSH_TRIES_MAX {
            while let Some(sealed) = self.seal(stream, before).await? {
                total.records += sealed.records;
                total.segments += sealed.segments;
                total.snapshot = sealed.snapshot;
            }
            // Nothing is left, or another process sealed it first, and perhaps a part of it.
            let head = self.streams.head(stream.record.id).await?.ok_or_else(not_found)?;
            if head.sealed_before >= before {
                return Ok(SealOutcome { snapshot: head.snapshot, ..total });
            }
        }
        Err(LogError::KeepsChanging(stream.name.clone()))
    }

    /// Seals the first unsealed batches of a stream, up to a bound of memory, that begin before a sequence. None where
    /// there are none.
    async fn seal(
        &self,
        stream: &Arc<OpenStream>,
        before: u64,
    ) -> Result<Option<SealOutcome>, LogError> {
        let _writing = self.writing.lock().await;
        let id = stream.record.id;
        let Some(head) = self.streams.head(id).await? else {
            self.unsealed.deleted(id);
            return Ok(None);
        };
        let Some(input) = self.first_batches(stream, &head, before).await? else {
            self.unsealed.changed(stream, &head);
            return Ok(None);
        };
        let mut claims = Vec::new();
        let written = self.write_days(stream, input, &mut claims).await?;
        let Some((range, added)) = written else { return Ok(None) };
        let records = added.iter().map(|segment| segment.records).sum();
        let segments = u32::try_from(added.len()).unwrap_or(u32::MAX);
        let paths: Vec<_> = added.iter().map(|segment| segment.path.clone()).collect();
        let change = ManifestChange { sealed: Some(range), added, ..ManifestChange::default() };
        let published = manifest::publish(&*self.engine, id, change).await?;
        let Some(head) = published else {
            self.delete_unpublished(&paths).await;
            return Ok(None);
        };
        drop(claims);
        self.unsealed.changed(stream, &head);
        tracing::debug!(stream = stream.name.as_str(), records, segments, "sealed records");
        Ok(Some(SealOutcome { records, segments, snapshot: head.snapshot }))
    }

    /// Deletes objects that this process wrote and whose publication was rejected: no row may name them any more.
    pub(crate) async fn delete_unpublished(&self, paths: &[String]) {
        for path in paths {
            if let Err(error) = self.area.delete(path).await {
                tracing::warn!(%error, path, "an object that is not published cannot be deleted");
            }
        }
    }

    /// The first unsealed batches of a stream.
    async fn first_batches(
        &self,
        stream: &OpenStream,
        head: &Head,
        before: u64,
    ) -> Result<Option<SealInput>, LogError> {
        let id = stream.record.id;
        let mut span = keys::rows_from(StreamRow::Batch, id, head.sealed_before);
        let (mut batches, mut bytes, mut more) = (Vec::new(), 0, true);
        // Batches that arrive now are for the next seal: the head shows where they begin.
        let mut end = before.min(head.next_sequence);
        while more {
            let scan = self.engine.scan(&span, BATCHES_STEP).await?;
            more = scan.more;
            for entry in scan.entries {
                span.start = after_key(&entry.key).into();
                let first = keys::number_of(&entry.key)?;
                if first >= end || is_whole(bytes, first.saturating_sub(head.sealed_before)) {
                    end = end.min(first);
                    more = false;
                    break;
                }
                bytes += entry.value.len();
                batches.push((first, entry.value));
            }
        }
        let range = SealedRange { from: head.sealed_before, before: end, bytes: bytes as u64 };
        Ok((!batches.is_empty()).then_some(SealInput { batches, range }))
    }

    /// Writes a segment for each day of the first batches. Returns which batches these are; none where the stream was
    /// deleted.
    async fn write_days(
        &self,
        stream: &Arc<OpenStream>,
        input: SealInput,
        claims: &mut Vec<Option<SpaceClaim>>,
    ) -> Result<Option<(SealedRange, Vec<SegmentRecord>)>, LogError> {
        let schema = SegmentSchema::new(stream.record.promoted_columns());
        let (range, written) = threads::encode(move || encode(&schema, &input)).await??;
        let mut segments = Vec::with_capacity(written.len());
        for segment in written {
            let stored = self.store_segment(stream, segment, 0, claims).await?;
            let Some(stored) = stored else { return Ok(None) };
            segments.push(stored);
        }
        Ok(Some((range, segments)))
    }

    /// Writes the object of a segment, which is not published yet: of level 0 it is of batches, else of segments. None
    /// where the stream was deleted.
    pub(crate) async fn store_segment(
        &self,
        stream: &Arc<OpenStream>,
        written: WrittenSegment,
        level: u32,
        claims: &mut Vec<Option<SpaceClaim>>,
    ) -> Result<Option<SegmentRecord>, LogError> {
        let (named, day) = (Arc::clone(stream), day_of(written.min_time));
        let path = move |id: SegmentId| layout::path(&named.account, &named.name, day, id);
        // Batches have more bytes than their segment, and the segments of a merge are kept for a while.
        let is_of_batches = level == 0;
        let announced = manifest::announce(&*self.engine, stream.record.id, path, is_of_batches);
        let Some((id, path)) = announced.await? else { return Ok(None) };
        let bytes = written.bytes.len() as u64;
        claims.push(match is_of_batches {
            true => self.area.put_to_replace_rows(&path, written.bytes.into()).await?,
            false => self.area.put(&path, written.bytes.into()).await?,
        });
        Ok(Some(SegmentRecord {
            id,
            path,
            bytes,
            records: written.rows,
            min_time: written.min_time,
            max_time: written.max_time,
            min_sequence: written.min_sequence,
            max_sequence: written.max_sequence,
            level,
            created_at: self.engine.now(),
            checksums: written.checksums,
            damage: String::new(),
        }))
    }
}

/// The segments of the first batches, of not too many days, and which batches these are.
fn encode(
    schema: &SegmentSchema,
    input: &SealInput,
) -> Result<(SealedRange, Vec<WrittenSegment>), LogError> {
    let (range, rows) = first_rows(input, DAYS_MAX)?;
    Ok((range, write_segments(schema, rows)?))
}

/// The rows of the first batches that have at most so many days, or of the first batch alone, and which batches these
/// are: a change of the manifest has a bounded number of segments.
fn first_rows(
    input: &SealInput,
    days_max: usize,
) -> Result<(SealedRange, Vec<BatchRow<'_>>), CorruptBatch> {
    let records = input.range.before.saturating_sub(input.range.from);
    let mut rows = Vec::with_capacity(usize::try_from(records).unwrap_or_default());
    let (mut days, mut bytes) = (BTreeSet::new(), 0);
    for (first, batch) in &input.batches {
        let before = rows.len();
        for row in BatchView::parse(batch)?.rows(*first) {
            let row = row?;
            days.insert(day_of(row.time));
            rows.push(row);
        }
        if days.len() > days_max && before > 0 {
            rows.truncate(before);
            return Ok((SealedRange { before: *first, bytes, ..input.range }, rows));
        }
        bytes += batch.len() as u64;
    }
    Ok((input.range, rows))
}
