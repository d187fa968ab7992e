//! Rows of several sources in one order. A segment is opened when the first of its rows may be next.

use std::collections::VecDeque;

use trestle_proto::log::v1::LogReadCost;
use trestle_rpc::layer::shares::Holder;

use super::{
    CapturedRead, OpenSegment, ReadPlan, RowPosition,
    segment_queue::SegmentQueue,
    tail_rows::{TailProgress, TailRows},
};
use crate::{error::LogError, logs::Logs, segment::SealedRow, streams::OpenStream};

/// See the module.
pub(crate) struct MergedRows {
    logs: Logs,
    stream: OpenStream,
    plan: ReadPlan,
    waiting: SegmentQueue,
    open: Vec<RowSource>,
    remaining: u64,
    /// The cost, but for the sources that are open.
    cost: LogReadCost,
}

/// A source of rows in order.
enum RowSource {
    Tail(Box<TailRows>),
    Segment(SegmentRows),
}

/// Rows of a segment.
struct SegmentRows {
    rows: VecDeque<SealedRow>,
    /// Where more come from.
    segment: Option<Box<OpenSegment>>,
}

impl MergedRows {
    pub(super) fn new(
        logs: Logs,
        stream: OpenStream,
        plan: ReadPlan,
        captured: CapturedRead,
    ) -> Self {
        let remaining = if plan.limit == 0 { u64::MAX } else { plan.limit };
        let segments = captured.segments.len() as u64;
        let cost = LogReadCost { segments, ..LogReadCost::default() };
        let (waiting, open) = (SegmentQueue::default(), Vec::new());
        let mut merged = Self { logs, stream, plan, waiting, open, remaining, cost };
        merged.begin(captured);
        merged
    }

    /// Begins with what was captured.
    fn begin(&mut self, CapturedRead { segments, tail, .. }: CapturedRead) {
        self.waiting = SegmentQueue::new(segments, self.plan.is_backward);
        self.open = vec![RowSource::Tail(Box::new(tail))];
    }

    /// Captures the present state, in which what was unsealed is in segments, and continues behind the last row.
    async fn reopen(&mut self) -> Result<(), LogError> {
        let mut share = None;
        for source in std::mem::take(&mut self.open) {
            source.add_cost(&mut self.cost);
            if let RowSource::Tail(tail) = source {
                share = tail.into_share();
            }
        }
        let captured = self.logs.capture(&self.stream, &self.plan, self.remaining, share).await?;
        self.begin(captured);
        Ok(())
    }

    /// What the read cost so far.
    pub(crate) fn cost(&self) -> LogReadCost {
        let mut cost = self.cost;
        self.open.iter().for_each(|source| source.add_cost(&mut cost));
        cost
    }

    /// Whether a position comes before another in the order of the read.
    fn is_before(&self, one: RowPosition, other: RowPosition) -> bool {
        if self.plan.is_backward { one > other } else { one < other }
    }

    /// The next rows, in order: at most so many, or rows of so many bytes. None at the end.
    ///
    /// # Errors
    /// [`LogError::Corrupt`], [`LogError::Objects`].
    pub(crate) async fn next(
        &mut self,
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Option<Vec<SealedRow>>, LogError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while self.remaining > 0 && rows.len() < rows_max && bytes < bytes_max {
            let Some((source, bound)) = self.choose().await? else { break };
            while let Some(row) = self.take(source, bound) {
                bytes += row.record.len();
                self.plan.behind = Some((row.time, row.sequence));
                rows.push(row);
                self.remaining -= 1;
                if self.remaining == 0 || rows.len() >= rows_max || bytes >= bytes_max {
                    break;
                }
            }
        }
        self.cost.records_returned += rows.len() as u64;
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// The next row of a source, if it comes before the bound.
    fn take(&mut self, source: usize, bound: Option<RowPosition>) -> Option<SealedRow> {
        let head = self.open.get(source)?.head()?;
        if bound.is_some_and(|bound| !self.is_before(head, bound)) {
            return None;
        }
        self.open.get_mut(source)?.pop()
    }

    /// The source with the next row, and the first position that another source may have.
    async fn choose(&mut self) -> Result<Option<(usize, Option<RowPosition>)>, LogError> {
        loop {
            if self.fill().await? == TailProgress::Sealed {
                self.reopen().await?;
                continue;
            }
            let heads = self.open.iter().enumerate();
            let mut heads: Vec<_> =
                heads.filter_map(|(index, source)| Some((source.head()?, index))).collect();
            heads.sort_unstable();
            if self.plan.is_backward {
                heads.reverse();
            }
            let waiting = self.waiting.first(self.plan.is_backward);
            let other = heads.get(1).map(|(head, _)| *head);
            match (heads.first(), waiting) {
                (None, None) => return Ok(None),
                (Some((_, first)), None) => return Ok(Some((*first, other))),
                (Some((head, first)), Some(waiting)) if self.is_before(*head, waiting) => {
                    let other = other.filter(|other| self.is_before(*other, waiting));
                    return Ok(Some((*first, Some(other.unwrap_or(waiting)))));
                }
                (_, Some(_)) => self.open_next().await?,
            }
        }
    }

    /// Reads rows of each source that has none, and closes those that are at their end.
    async fn fill(&mut self) -> Result<TailProgress, LogError> {
        let rows_max = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        // Of many segments, each has a chunk in memory already.
        let is_one = self.open.iter().filter(|source| source.is_segment()).count() == 1;
        let ahead_below = if is_one { self.remaining } else { 0 };
        for source in &mut self.open {
            match source {
                RowSource::Tail(tail) => {
                    let progress = tail.refill(&self.logs, &self.plan, rows_max).await?;
                    if progress == TailProgress::Sealed {
                        return Ok(progress);
                    }
                }
                RowSource::Segment(segment) => {
                    segment.fill(&self.plan, ahead_below, &mut self.cost).await?;
                }
            }
        }
        let cost = &mut self.cost;
        self.open.retain(|source| {
            let is_open = source.head().is_some();
            if !is_open {
                source.add_cost(cost);
            }
            is_open
        });
        Ok(TailProgress::Ready)
    }

    async fn open_next(&mut self) -> Result<(), LogError> {
        let mut segment = self.waiting.open_next(&self.logs, &self.plan).await?.map(Box::new);
        if let Some(segment) = &mut segment {
            let holder = Holder::account_alone(self.stream.account.as_str());
            segment.charge_to(self.logs.segment_bytes.take(holder, 0)?);
        }
        self.open.push(RowSource::Segment(SegmentRows { rows: VecDeque::new(), segment }));
        Ok(())
    }
}

impl SegmentRows {
    /// Reads rows where there are none, and closes a segment that is at its end.
    async fn fill(
        &mut self,
        plan: &ReadPlan,
        ahead_below: u64,
        cost: &mut LogReadCost,
    ) -> Result<(), LogError> {
        while self.rows.is_empty()
            && let Some(segment) = &mut self.segment
        {
            match segment.next_rows(ahead_below).await? {
                Some(rows) => {
                    let rows = rows.into_iter();
                    self.rows = rows.filter(|row| plan.has((row.time, row.sequence))).collect();
                }
                None => {
                    segment.add_cost(cost);
                    self.segment = None;
                }
            }
        }
        Ok(())
    }
}

impl RowSource {
    fn is_segment(&self) -> bool {
        matches!(self, Self::Segment(_))
    }

    fn head(&self) -> Option<RowPosition> {
        match self {
            Self::Tail(tail) => tail.head(),
            Self::Segment(segment) => segment.rows.front().map(|row| (row.time, row.sequence)),
        }
    }

    fn pop(&mut self) -> Option<SealedRow> {
        match self {
            Self::Tail(tail) => tail.pop(),
            Self::Segment(segment) => segment.rows.pop_front(),
        }
    }

    /// Adds what was read of it.
    fn add_cost(&self, cost: &mut LogReadCost) {
        match self {
            Self::Tail(tail) => cost.records_scanned += tail.scanned,
            Self::Segment(segment) => {
                segment.segment.iter().for_each(|segment| segment.add_cost(cost));
            }
        }
    }
}
