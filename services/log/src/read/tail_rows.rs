//! The unsealed records of a read.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use trestle_kv::{ScanLimit, Snapshot, after_key};

use super::ReadPlan;
use crate::{
    batch::BatchView,
    error::LogError,
    keys::{self, StreamRow},
    logs::Logs,
    record::UnsealedRow,
    segment::SealedRow,
    stream::{Head, StreamId},
};

/// Rows that one scan of batches reads.
const BATCHES_STEP: ScanLimit = ScanLimit { rows: 1000, bytes: 4 * 1024 * 1024 };
/// Rows beyond the limit of a read that are held before the farthest are dropped.
const SPARE_ROWS: usize = 4096;
/// The same in bytes of all rows.
const SPARE_BYTES: usize = 16 * 1024 * 1024;

/// The unsealed records of a read, in its order.
#[derive(Default)]
pub(crate) struct TailRows {
    /// The records.
    pub(super) rows: Vec<SealedRow>,
    /// How many were examined.
    pub(super) scanned: u64,
    /// Their bytes.
    bytes: usize,
    /// The same, of those that all reads may hold.
    permit: Option<OwnedSemaphorePermit>,
}

impl TailRows {
    /// The records that match, of the state of a snapshot.
    ///
    /// # Errors
    /// [`LogError::Busy`] where reads hold too many bytes, or a failed read.
    pub(super) async fn capture(
        logs: &Logs,
        snapshot: &dyn Snapshot,
        (id, head): (StreamId, &Head),
        plan: &ReadPlan,
    ) -> Result<Self, LogError> {
        let mut tail = Self::default();
        let from = first_batch(snapshot, id, head, plan).await?;
        let mut span = keys::rows_from(StreamRow::Batch, id, from);
        let mut more = head.unsealed_records() > 0;
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
                tail.take_matching(&entry.value, first, plan)?;
            }
            tail.cut(plan);
            tail.hold(logs)?;
        }
        tail.sort(plan);
        Ok(tail)
    }

    /// Takes the records of a batch that match.
    fn take_matching(&mut self, batch: &[u8], first: u64, plan: &ReadPlan) -> Result<(), LogError> {
        for row in BatchView::parse(batch)?.rows(first) {
            let row = row?;
            self.scanned += 1;
            let (time, sequence) = (row.time, row.sequence);
            if !plan.has((time, sequence)) {
                continue;
            }
            let row = UnsealedRow::parse(row)?;
            if plan.predicate.as_ref().is_none_or(|predicate| predicate.matches(&row)) {
                let record = row.encode(plan.fields)?;
                self.bytes += record.len();
                self.rows.push(SealedRow { time, sequence, record });
            }
        }
        Ok(())
    }

    /// Counts the bytes of the rows, which are more or fewer than before, among those of all reads.
    fn hold(&mut self, logs: &Logs) -> Result<(), LogError> {
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if let Some(permit) = &mut self.permit {
            drop(permit.split(held.saturating_sub(self.bytes)));
        }
        let more = u32::try_from(self.bytes.saturating_sub(held)).unwrap_or(u32::MAX);
        let more = Arc::clone(&logs.read_bytes).try_acquire_many_owned(more);
        let more = more.map_err(|_| LogError::Busy)?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
    }

    /// Drops what a limited read does not return, once it is much.
    fn cut(&mut self, plan: &ReadPlan) {
        let limit = usize::try_from(plan.limit).unwrap_or(usize::MAX);
        let is_much =
            self.rows.len() > limit.saturating_add(SPARE_ROWS) || self.bytes > SPARE_BYTES;
        if limit > 0 && is_much && self.rows.len() > limit {
            self.sort(plan);
            self.rows.truncate(limit);
            self.bytes = self.rows.iter().map(|row| row.record.len()).sum();
        }
    }

    fn sort(&mut self, plan: &ReadPlan) {
        self.rows.sort_unstable_by_key(|row| (row.time, row.sequence));
        if plan.is_backward {
            self.rows.reverse();
        }
    }
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
