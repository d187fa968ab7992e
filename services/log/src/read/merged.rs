//! Rows of several sources in one order. A segment is opened when the first of its rows may be next.

use std::collections::VecDeque;

use trestle_proto::log::v1::LogReadCost;

use super::{OpenSegment, ReadPlan, RowPosition, TailRows};
use crate::{error::LogError, logs::Logs, segment::SealedRow, stream::SegmentRecord};

/// See the module.
pub(crate) struct MergedRows {
    logs: Logs,
    plan: ReadPlan,
    /// Segments that are not opened, the next one last.
    waiting: Vec<SegmentRecord>,
    open: Vec<RowSource>,
    remaining: u64,
    /// The cost, but for the segments that are open.
    cost: LogReadCost,
    /// Keeps the bytes of the unsealed rows counted.
    _tail: TailRows,
}

/// A source of rows in order.
struct RowSource {
    rows: VecDeque<SealedRow>,
    /// Where more come from.
    segment: Option<OpenSegment>,
}

impl MergedRows {
    pub(super) fn new(
        logs: Logs,
        plan: ReadPlan,
        mut waiting: Vec<SegmentRecord>,
        mut tail: TailRows,
    ) -> Self {
        match plan.is_backward {
            true => waiting.sort_by_key(|segment| segment.max_time),
            false => waiting.sort_by_key(|segment| std::cmp::Reverse(segment.min_time)),
        }
        let rows = VecDeque::from(std::mem::take(&mut tail.rows));
        let open = vec![RowSource { rows, segment: None }];
        let remaining = if plan.limit == 0 { u64::MAX } else { plan.limit };
        let cost = LogReadCost {
            segments: waiting.len() as u64,
            records_scanned: tail.scanned,
            ..LogReadCost::default()
        };
        Self { logs, plan, waiting, open, remaining, cost, _tail: tail }
    }

    /// What the read cost so far.
    pub(crate) fn cost(&self) -> LogReadCost {
        let mut cost = self.cost;
        for segment in self.open.iter().filter_map(|source| source.segment.as_ref()) {
            segment.add_cost(&mut cost);
        }
        cost
    }

    /// Whether a position comes before another in the order of the read.
    fn is_before(&self, one: RowPosition, other: RowPosition) -> bool {
        if self.plan.is_backward { one > other } else { one < other }
    }

    /// The first position that a segment may have.
    fn first_of(&self, segment: &SegmentRecord) -> RowPosition {
        match self.plan.is_backward {
            true => (segment.max_time, u64::MAX),
            false => (segment.min_time, 0),
        }
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
        self.open.get_mut(source)?.rows.pop_front()
    }

    /// The source with the next row, and the first position that another source may have.
    async fn choose(&mut self) -> Result<Option<(usize, Option<RowPosition>)>, LogError> {
        loop {
            self.fill().await?;
            let heads = self.open.iter().enumerate();
            let mut heads: Vec<_> =
                heads.filter_map(|(index, source)| Some((source.head()?, index))).collect();
            heads.sort_unstable();
            if self.plan.is_backward {
                heads.reverse();
            }
            let waiting = self.waiting.last().map(|segment| self.first_of(segment));
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
    async fn fill(&mut self) -> Result<(), LogError> {
        for source in &mut self.open {
            while source.rows.is_empty()
                && let Some(segment) = &mut source.segment
            {
                match segment.next_rows().await? {
                    Some(rows) => {
                        let plan = &self.plan;
                        let rows = rows.into_iter();
                        source.rows =
                            rows.filter(|row| plan.has((row.time, row.sequence))).collect();
                    }
                    None => {
                        segment.add_cost(&mut self.cost);
                        source.segment = None;
                    }
                }
            }
        }
        self.open.retain(|source| !source.rows.is_empty());
        Ok(())
    }

    async fn open_next(&mut self) -> Result<(), LogError> {
        let Some(segment) = self.waiting.pop() else { return Ok(()) };
        let opened = self.logs.open_segment(&segment, self.plan.of_segment()).await?;
        self.open.push(RowSource { rows: VecDeque::new(), segment: Some(opened) });
        Ok(())
    }
}

impl RowSource {
    fn head(&self) -> Option<RowPosition> {
        self.rows.front().map(|row| (row.time, row.sequence))
    }
}
