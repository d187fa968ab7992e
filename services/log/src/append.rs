//! Appending batches: one change for the batches of a call, of one stream or several, all or none.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use trestle_kv::{ChangeSpec, Engine, Lock, ReadId, Reads, Writes, transact};
use trestle_model::time::Ticks;
use trestle_rpc::layer::shares::Share;

use crate::{
    batch::EncodedBatch,
    error::LogError,
    keys,
    names::StreamName,
    stored::StoredForm as _,
    stream::{Head, RequestRecord, StreamId},
};

/// How long a request id is remembered.
pub(crate) const REQUEST_MEMORY: Duration = Duration::from_secs(600);
/// Most bytes of unsealed batches of a stream. More arrive only where the object store fails, or is slower than the
/// writers.
pub(crate) const BACKLOG_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A batch to append to a stream.
#[derive(Debug, Clone)]
pub(crate) struct NewBatch {
    /// The stream.
    pub(crate) stream: StreamId,
    /// Its name, for errors.
    pub(crate) name: StreamName,
    /// What is stored of it: more than one where it is larger than a value of the store.
    pub(crate) parts: Vec<EncodedBatch>,
    /// Identifies the append.
    pub(crate) request_id: Option<String>,
    /// The condition on the next sequence.
    pub(crate) expected_next_sequence: Option<u64>,
    /// What is charged for it beside its request, until it is stored: also while it waits for its commit.
    #[expect(dead_code, reason = "returned to its pool with the batch")]
    pub(crate) charged: Option<Arc<Share>>,
}

impl NewBatch {
    /// How many bytes are stored of it.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes.len()).sum()
    }

    /// How many records are in it.
    fn records(&self) -> u32 {
        self.parts.iter().map(|part| part.records).sum()
    }
}

/// The outcome of an append to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppendOutcome {
    /// The sequence of the first record.
    pub(crate) first_sequence: u64,
    /// How many records.
    pub(crate) count: u32,
    /// Whether an earlier append had the request id, so that nothing was appended.
    pub(crate) is_repeated: bool,
    /// The position of the stream afterwards.
    pub(crate) head: Head,
}

/// What the decision reads of a stream.
struct StreamReads {
    head: ReadId,
    request: Option<ReadId>,
}

/// Appends batches to different streams. They are durable when this returns. What is `held` for them is kept until
/// their commit ends, which may be after the call was cancelled.
///
/// # Errors
/// [`LogError::StreamNotFound`], [`LogError::Sequence`], [`LogError::Backlog`], or a failed commit.
pub(crate) async fn append(
    engine: &dyn Engine,
    batches: Vec<NewBatch>,
    held: Option<Share>,
) -> Result<Vec<AppendOutcome>, LogError> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let mut spec = ChangeSpec::new(keys::stream_domain(first.stream));
    for other in batches.iter().skip(1) {
        spec.also(keys::stream_domain(other.stream), Lock::Exclusive);
    }
    let reads_of = |batch: &NewBatch| StreamReads {
        head: spec.read(keys::head(batch.stream)),
        request: batch.request_id.as_ref().map(|id| spec.read(keys::request(batch.stream, id))),
    };
    let ids: Vec<_> = batches.iter().map(reads_of).collect();
    let batches = Arc::new(batches);
    transact(engine, spec, move |reads, version| {
        let _held = &held;
        let now = version.ticks();
        let (mut writes, mut outcomes) = (Writes::new(), Vec::with_capacity(batches.len()));
        for (batch, ids) in batches.iter().zip(&ids) {
            outcomes.push(decide(batch, ids, reads, now, &mut writes)?);
        }
        Ok((writes, outcomes))
    })
    .await?
}

/// The writes of one batch.
fn decide(
    batch: &NewBatch,
    ids: &StreamReads,
    reads: &Reads<'_>,
    now: Ticks,
    writes: &mut Writes,
) -> Result<AppendOutcome, LogError> {
    let not_found = || LogError::StreamNotFound(batch.name.clone());
    let head = Head::decode(reads.get(ids.head).ok_or_else(not_found)?)?;
    let earlier = ids.request.and_then(|id| reads.get(id));
    let earlier = earlier.map(|value| RequestRecord::decode(value)).transpose()?;
    if let Some(earlier) = earlier.filter(|earlier| now.since(earlier.at) < REQUEST_MEMORY) {
        let RequestRecord { first_sequence, count, .. } = earlier;
        return Ok(AppendOutcome { first_sequence, count, is_repeated: true, head });
    }
    if let Some(expected) = batch.expected_next_sequence.filter(|it| *it != head.next_sequence) {
        return Err(LogError::Sequence { next: head.next_sequence, expected });
    }
    let bytes = head.unsealed_bytes.saturating_add(batch.bytes() as u64);
    if bytes > BACKLOG_BYTES_MAX {
        let (bytes, max) = (head.unsealed_bytes, BACKLOG_BYTES_MAX);
        return Err(LogError::Backlog { bytes, max });
    }
    let is_first = head.unsealed_records() == 0;
    let mut next_sequence = head.next_sequence;
    for part in &batch.parts {
        writes.put(keys::batch(batch.stream, next_sequence), part.bytes.clone());
        next_sequence += u64::from(part.records);
    }
    let count = batch.records();
    let after = Head {
        next_sequence,
        unsealed_bytes: bytes,
        unsealed_since: if is_first { now.get() } else { head.unsealed_since },
        ..head
    };
    writes.put(reads.key(ids.head).clone(), after.encode());
    if let (Some(id), Some(request)) = (&batch.request_id, ids.request) {
        let record = RequestRecord { first_sequence: head.next_sequence, count, at: now };
        writes.put(reads.key(request).clone(), record.encode());
        writes.put(keys::request_time(batch.stream, now, id), keys::encode_ticks(now));
    }
    let first_sequence = head.next_sequence;
    Ok(AppendOutcome { first_sequence, count, is_repeated: false, head: after })
}
