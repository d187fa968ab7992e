//! Reading records by time: unsealed ones and those of segments, merged in order.
//!
//! A read captures the manifest, and where the unsealed records of its range are, from one snapshot. Segments are
//! immutable and are read at the pace of the client, a chunk of each at a time; so are unsealed records, and once those
//! that remain are sealed, the read is opened again behind the last record that it returned.

mod merged;
mod open_segment;
mod segment_queue;
mod tail_index;
mod tail_rows;
mod tail_slice;
#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc};

use trestle_kv::{Direction, ScanLimit, Snapshot, after_key};
use trestle_rpc::layer::shares::{Holder, Share};

use self::tail_rows::TailRows;
pub(crate) use self::{merged::MergedRows, open_segment::OpenSegment, tail_rows::BATCHES_STEP};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    logs::Logs,
    record::RecordFields,
    row::RowPredicate,
    segment::SegmentRead,
    stored::StoredForm as _,
    stream::{Head, SegmentRecord},
    streams::OpenStream,
};

/// Rows that one scan of the manifest reads.
const MANIFEST_STEP: ScanLimit = ScanLimit { rows: 2000, bytes: 4 * 1024 * 1024 };

/// A position in the order of records: time, then sequence.
pub(crate) type RowPosition = (u64, u64);

/// Which records a read returns.
#[derive(Clone)]
pub(crate) struct ReadPlan {
    /// Records of these times, in nanoseconds since 1970.
    pub(crate) times: Range<u64>,
    /// Whether the newest come first.
    pub(crate) is_backward: bool,
    /// Only records behind this one, in the order of the read.
    pub(crate) behind: Option<RowPosition>,
    /// Only records that match.
    pub(crate) predicate: Option<Arc<dyn RowPredicate>>,
    /// Fields to return.
    pub(crate) fields: RecordFields,
    /// At most this many records; 0: no limit.
    pub(crate) limit: u64,
    /// Only records of these sequences.
    pub(crate) sequences: Range<u64>,
}

impl ReadPlan {
    /// Whether a record is within the bounds of time, sequence and position.
    pub(crate) fn has(&self, (time, sequence): RowPosition) -> bool {
        let is_behind = self.behind.is_none_or(|behind| match self.is_backward {
            false => (time, sequence) > behind,
            true => (time, sequence) < behind,
        });
        is_behind && self.times.contains(&time) && self.sequences.contains(&sequence)
    }

    /// Whether bloom filters may show that a segment has no match.
    fn may_exclude_segments(&self) -> bool {
        self.predicate.as_ref().is_some_and(|predicate| !predicate.required().is_empty())
    }

    /// The part of it that a segment answers.
    fn of_segment(&self) -> SegmentRead {
        SegmentRead {
            window: self.times(),
            direction: if self.is_backward { Direction::Backward } else { Direction::Forward },
            fields: self.fields,
            predicate: self.predicate.clone(),
        }
    }

    /// Narrows the times by the position behind which the read continues.
    fn times(&self) -> Range<u64> {
        match self.behind {
            None => self.times.clone(),
            Some((time, _)) if self.is_backward => {
                self.times.start..self.times.end.min(time.saturating_add(1))
            }
            Some((time, _)) => self.times.start.max(time)..self.times.end,
        }
    }
}

/// What a read captures of one state of a stream.
struct CapturedRead {
    head: Head,
    segments: Vec<SegmentRecord>,
    tail: TailRows,
}

impl Logs {
    /// Opens a read: the position of the stream, and its rows in order.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], [`LogError::Busy`], or a failed read.
    pub(crate) async fn read(
        &self,
        stream: &OpenStream,
        mut plan: ReadPlan,
    ) -> Result<(Head, MergedRows), LogError> {
        let rows_max = if plan.limit == 0 { u64::MAX } else { plan.limit };
        let captured = self.capture(stream, &plan, rows_max, None).await?;
        // Opened again, it shows no record that was appended meanwhile.
        plan.sequences.end = plan.sequences.end.min(captured.head.next_sequence);
        let head = captured.head;
        Ok((head, MergedRows::new(self.clone(), stream.clone(), plan, captured)))
    }

    /// Captures the present state, for a read of at most so many rows. The share is that of a read which is opened
    /// again.
    async fn capture(
        &self,
        stream: &OpenStream,
        plan: &ReadPlan,
        rows_max: u64,
        share: Option<Share>,
    ) -> Result<CapturedRead, LogError> {
        let snapshot = self.engine.snapshot().await?;
        let head = snapshot.get(&keys::head(stream.record.id)).await?;
        let head = head.ok_or_else(|| LogError::StreamNotFound(stream.name.clone()))?;
        let head = Head::decode(&head)?;
        let segments = overlapping(&*snapshot, stream, (&plan.times(), &plan.sequences)).await?;
        let rows_max = usize::try_from(rows_max).unwrap_or(usize::MAX);
        let of = (stream.record.id, &head);
        let held = share.ok_or_else(|| Holder::account_alone(stream.account.as_str()));
        let tail = TailRows::capture(self, &*snapshot, of, (plan, rows_max), held).await?;
        Ok(CapturedRead { head, segments, tail })
    }
}

/// The segments of a stream that may have rows of these times and sequences.
pub(crate) async fn overlapping(
    snapshot: &dyn Snapshot,
    stream: &OpenStream,
    (times, sequences): (&Range<u64>, &Range<u64>),
) -> Result<Vec<SegmentRecord>, LogError> {
    // By the time of the newest record of each.
    let mut span = keys::rows_from(StreamRow::Segment, stream.record.id, times.start);
    let (mut segments, mut more) = (Vec::new(), true);
    while more {
        let scan = snapshot.scan(&span, MANIFEST_STEP).await?;
        more = scan.more;
        for entry in scan.entries {
            let segment = SegmentRecord::decode(&entry.value)?;
            if segment.min_time < times.end
                && segment.min_sequence < sequences.end
                && segment.max_sequence >= sequences.start
            {
                segments.push(segment);
            }
            span.start = after_key(&entry.key).into();
        }
    }
    Ok(segments)
}
