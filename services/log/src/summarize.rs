//! Summarizing records: unsealed ones and those of segments, in any order. A summary is of the state of the stream when
//! it is opened.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, sync::Arc};

use trestle_kv::{Direction, Snapshot, Span, after_key};
use trestle_model::fault::{Fault, Reason};
use trestle_proto::log::v1::LogReadCost;
use trestle_rpc::layer::shares::{Holder, Share};

use crate::{
    batch::BatchView,
    error::LogError,
    keys::{self, StreamRow},
    logs::Logs,
    read::{BATCHES_STEP, overlapping},
    record::{RecordFields, UnsealedRow},
    row::RowSink as _,
    segment::{FoldedSegment, ObjectSource, SegmentRead},
    stored::StoredForm as _,
    stream::{Head, SegmentRecord},
    streams::OpenStream,
    summary::{GROUPS_MAX, RecordSummary, SummaryPlan},
    threads,
};

/// Bytes that reading a segment takes at a time: of a chunk, and of what is read ahead of it.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;

/// A summary that is made.
pub(crate) struct OpenSummary {
    logs: Logs,
    plan: Arc<SummaryPlan>,
    summary: RecordSummary,
    waiting: VecDeque<SegmentRecord>,
    open: Option<(FoldedSegment, Arc<ObjectSource>)>,
    /// The cost, but for the segment that is open.
    cost: LogReadCost,
    /// The bytes of the groups, of those that all reads may hold.
    held: Share,
    /// Those of the chunk of a segment.
    chunk: Share,
}

impl Logs {
    /// Opens a summary, with all unsealed records in it.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], [`LogError::Busy`], too many groups, or a failed read.
    pub(crate) async fn summarize(
        &self,
        stream: &OpenStream,
        plan: SummaryPlan,
    ) -> Result<OpenSummary, LogError> {
        let holder = || Holder::account_alone(stream.account.as_str());
        let plan = Arc::new(plan);
        let mut open = OpenSummary {
            logs: self.clone(),
            summary: RecordSummary::new(Arc::clone(&plan)),
            waiting: VecDeque::new(),
            open: None,
            cost: LogReadCost::default(),
            held: self.read_bytes.take(holder(), 0).map_err(|_| LogError::Busy)?,
            chunk: self.segment_bytes.take(holder(), 0)?,
            plan,
        };
        let snapshot = self.engine.snapshot().await?;
        let head = snapshot.get(&keys::head(stream.record.id)).await?;
        let head = head.ok_or_else(|| LogError::StreamNotFound(stream.name.clone()))?;
        let unsealed_from = Head::decode(&head)?.sealed_before;
        let segments = overlapping(&*snapshot, stream, (&open.plan.times, &(0..u64::MAX))).await?;
        open.cost.segments = segments.len() as u64;
        open.waiting = segments.into();
        let unsealed = keys::rows_from(StreamRow::Batch, stream.record.id, unsealed_from);
        open.take_unsealed(&*snapshot, unsealed).await?;
        Ok(open)
    }
}

impl OpenSummary {
    /// The summary so far.
    pub(crate) fn summary(&self) -> &RecordSummary {
        &self.summary
    }

    /// What it cost so far.
    pub(crate) fn cost(&self) -> LogReadCost {
        let mut cost = self.cost;
        if let Some((segment, source)) = &self.open {
            cost.bytes += source.bytes_read();
            cost.records_scanned += segment.rows_scanned();
        }
        cost
    }

    /// Takes in more records. Returns false when all are in it.
    ///
    /// # Errors
    /// Too many groups, [`LogError::Busy`], [`LogError::Corrupt`], [`LogError::Objects`].
    pub(crate) async fn proceed(&mut self) -> Result<bool, LogError> {
        let Some((mut segment, source)) = self.open.take() else {
            let Some(next) = self.waiting.pop_front() else { return Ok(false) };
            self.begin(&next).await?;
            return Ok(true);
        };
        self.chunk.resize(CHUNK_BYTES)?;
        let summary = self.take_summary();
        let (summary, has_more) = segment.next(summary).await?;
        self.summary = summary;
        self.check()?;
        self.open = Some((segment, source));
        if !has_more {
            self.cost = self.cost();
            self.open = None;
        }
        Ok(true)
    }

    /// Opens a segment, unless its records are counted without it.
    async fn begin(&mut self, segment: &SegmentRecord) -> Result<(), LogError> {
        let bounds = (segment.min_time, segment.max_time);
        if segment.damage.is_empty() && self.plan.has_one_group_of(bounds) {
            self.summary.count(segment.min_time, segment.records);
            return self.check();
        }
        let read = SegmentRead {
            window: self.plan.times.clone(),
            direction: Direction::Forward,
            // The columns are those of the summary.
            fields: RecordFields::ALL,
            predicate: self.plan.predicate.clone(),
        };
        let (reader, source) = self.logs.segment_reader(segment, read).await?;
        self.open = Some((FoldedSegment::new(reader, self.summary.properties()), source));
        Ok(())
    }

    /// The summary, with an empty one in its place.
    fn take_summary(&mut self) -> RecordSummary {
        std::mem::replace(&mut self.summary, RecordSummary::new(Arc::clone(&self.plan)))
    }

    /// Takes in the unsealed records of a snapshot.
    async fn take_unsealed(
        &mut self,
        snapshot: &dyn Snapshot,
        mut span: Span,
    ) -> Result<(), LogError> {
        let mut more = true;
        while more {
            let scan = snapshot.scan(&span, BATCHES_STEP).await?;
            more = scan.more;
            let Some(last) = scan.entries.last() else { break };
            span.start = after_key(&last.key).into();
            let batches = scan.entries.iter();
            let batches =
                batches.map(|entry| Ok((keys::number_of(&entry.key)?, entry.value.clone())));
            let batches: Vec<_> = batches.collect::<Result<_, LogError>>()?;
            let (plan, summary) = (Arc::clone(&self.plan), self.take_summary());
            let taken = threads::decode(move || take_batches(&plan, summary, &batches)).await??;
            self.summary = taken.0;
            self.cost.records_scanned += taken.1;
            self.check()?;
        }
        Ok(())
    }

    /// Charges what the summary takes.
    fn check(&mut self) -> Result<(), LogError> {
        if self.summary.is_full() {
            let rule = format!(
                "must have at most 100,000 groups and 32 MiB of them: use fewer or shorter properties, a longer \
                 interval, or a filter: groups_max=`{GROUPS_MAX}`"
            );
            return Err(Fault::violation(Reason::OutOfRangeInput, "group_by", rule).into());
        }
        self.held.resize(self.summary.bytes()).map_err(|_| LogError::Busy)
    }
}

/// Has a summary take in the records of batches that match. Returns how many records they have.
fn take_batches(
    plan: &SummaryPlan,
    mut summary: RecordSummary,
    batches: &[(u64, bytes::Bytes)],
) -> Result<(RecordSummary, u64), LogError> {
    let SummaryPlan { times, predicate, .. } = plan;
    let mut scanned = 0;
    for (first, batch) in batches {
        for row in BatchView::parse(batch)?.rows(*first) {
            let row = row?;
            scanned += 1;
            if !times.contains(&row.time) {
                continue;
            }
            let row = UnsealedRow::parse(row)?;
            if predicate.as_ref().is_none_or(|predicate| predicate.matches(&row)) {
                summary.take(&row);
            }
        }
    }
    Ok((summary, scanned))
}
