//! The unsealed records of a read: a slice of them at a time, so that a read holds the same bytes whatever is unsealed.
//!
//! A slice is read from the batches that may have the next records, on a snapshot of its own. Batches are removed only
//! once they are sealed, which the head of the stream shows: then the read is opened again behind its last record.

use std::collections::VecDeque;

use trestle_kv::{ScanLimit, Snapshot, Span, after_key};
use trestle_rpc::layer::shares::{Holder, Share};

use super::{
    ReadPlan, RowPosition,
    tail_index::TailIndex,
    tail_slice::{TailRow, TailSlice},
};
use crate::{
    error::LogError,
    keys::{self, StreamRow},
    logs::Logs,
    segment::SealedRow,
    stored::StoredForm as _,
    stream::{Head, StreamId},
};

/// Rows that one scan of batches reads.
pub(crate) const BATCHES_STEP: ScanLimit = ScanLimit { rows: 1000, bytes: 4 * 1024 * 1024 };

/// The unsealed records of a read, in its order.
#[derive(Default)]
pub(super) struct TailRows {
    id: StreamId,
    /// The first record that was not sealed when the read was opened.
    sealed_before: u64,
    /// The records of the slice that are not returned.
    rows: VecDeque<TailRow>,
    /// The last record of the slice, if there may be more behind it.
    last: Option<RowPosition>,
    /// Where those are.
    index: TailIndex,
    /// How many were examined.
    pub(super) scanned: u64,
    /// The bytes of a slice, of those that all reads may hold.
    share: Option<Share>,
}

/// What became of a slice that is at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TailProgress {
    /// The next rows are there, or there are none.
    Ready,
    /// Batches were sealed: their records are in segments that the read does not have.
    Sealed,
}

impl TailRows {
    /// The first records that match, at most so many, of the state of a snapshot. The bytes that are held already are
    /// those of a read which is opened again.
    ///
    /// # Errors
    /// [`LogError::Busy`] where reads hold too many bytes, or a failed read.
    pub(super) async fn capture(
        logs: &Logs,
        snapshot: &dyn Snapshot,
        (id, head): (StreamId, &Head),
        (plan, rows_max): (&ReadPlan, usize),
        held: Result<Share, Holder>,
    ) -> Result<Self, LogError> {
        let sealed_before = head.sealed_before;
        let share = held.or_else(|holder| logs.read_bytes.take(holder, 0));
        let share = Some(share.map_err(|_| LogError::Busy)?);
        let mut tail = Self { id, sealed_before, share, ..Self::default() };
        if head.unsealed_records() == 0 {
            tail.hold(logs, 0)?;
            return Ok(tail);
        }
        let from = first_batch(snapshot, id, head, plan).await?;
        let mut span = keys::rows_from(StreamRow::Batch, id, from);
        let mut slice = TailSlice::new(plan, rows_max, logs.slice_bytes);
        let mut more = true;
        while more {
            let scan = snapshot.scan(&span, BATCHES_STEP).await?;
            more = scan.more;
            for entry in scan.entries {
                span.start = after_key(&entry.key).into();
                let first = keys::number_of(&entry.key)?;
                if first >= plan.sequences.end {
                    more = false;
                    break;
                }
                if let Some((min, max)) = slice.take_matching(&entry.value, first)? {
                    tail.index.push(first, entry.value.len(), min..max);
                }
            }
            tail.hold(logs, slice.bytes().max(tail.held()))?;
        }
        tail.scanned = slice.scanned;
        let bytes = slice.bytes();
        (tail.rows, tail.last) = slice.finish();
        // The next slices need as much as this one at most.
        let is_whole = tail.last.is_none() || rows_max <= tail.rows.len();
        tail.hold(logs, if is_whole { bytes } else { logs.slice_bytes })?;
        Ok(tail)
    }

    /// The position of the next row of the slice.
    pub(super) fn head(&self) -> Option<RowPosition> {
        self.rows.front().map(|row| row.position)
    }

    /// The next row of the slice.
    pub(super) fn pop(&mut self) -> Option<SealedRow> {
        self.rows.pop_front().map(TailRow::into_row)
    }

    /// The bytes that it holds, for a read that is opened again.
    pub(super) fn into_share(self) -> Option<Share> {
        self.share
    }

    /// Reads the next slice where this one is at its end, of at most so many rows: the plan is that of what is behind
    /// the last row.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`] once the stream is deleted, or a failed read.
    pub(super) async fn refill(
        &mut self,
        logs: &Logs,
        plan: &ReadPlan,
        rows_max: usize,
    ) -> Result<TailProgress, LogError> {
        let Some(last) = self.last.filter(|_| self.rows.is_empty()) else {
            return Ok(TailProgress::Ready);
        };
        let snapshot = logs.engine.snapshot().await?;
        let head = snapshot.get(&keys::head(self.id)).await?;
        let head = head.map(|head| Head::decode(&head)).transpose()?;
        if head.is_none_or(|head| head.sealed_before != self.sealed_before) {
            return Ok(TailProgress::Sealed);
        }
        let mut slice = TailSlice::new(plan, rows_max, logs.slice_bytes);
        for run in self.index.runs_behind(plan, last) {
            if slice.ends_before(run.first(plan.is_backward)) {
                break;
            }
            take_run(&*snapshot, run.span(self.id), &mut slice).await?;
        }
        self.scanned += slice.scanned;
        (self.rows, self.last) = slice.finish();
        Ok(TailProgress::Ready)
    }

    fn held(&self) -> usize {
        self.share.as_ref().map_or(0, Share::amount)
    }

    /// Counts so many bytes among those of all reads, more or fewer than before.
    fn hold(&mut self, logs: &Logs, bytes: usize) -> Result<(), LogError> {
        let bytes = bytes.min(logs.slice_bytes);
        let held = self.share.as_mut().map_or(Ok(()), |share| share.resize(bytes));
        held.map_err(|_| LogError::Busy)
    }
}

/// Takes the records of the batches of a span.
async fn take_run(
    snapshot: &dyn Snapshot,
    mut span: Span,
    slice: &mut TailSlice<'_>,
) -> Result<(), LogError> {
    let mut more = true;
    while more {
        let scan = snapshot.scan(&span, BATCHES_STEP).await?;
        more = scan.more;
        for entry in scan.entries {
            span.start = after_key(&entry.key).into();
            slice.take_matching(&entry.value, keys::number_of(&entry.key)?)?;
        }
    }
    Ok(())
}

/// The sequence of the first unsealed batch that may have records of a plan.
async fn first_batch(
    snapshot: &dyn Snapshot,
    id: StreamId,
    head: &Head,
    plan: &ReadPlan,
) -> Result<u64, LogError> {
    let start = plan.sequences.start;
    if start <= head.sealed_before {
        return Ok(head.sealed_before);
    }
    let until = keys::rows_before(StreamRow::Batch, id, start.saturating_add(1)).backward();
    let scan = snapshot.scan(&until, ScanLimit { rows: 1, bytes: 1 }).await?;
    let first = scan.entries.first().map(|entry| keys::number_of(&entry.key)).transpose()?;
    Ok(first.unwrap_or_default().max(head.sealed_before))
}
