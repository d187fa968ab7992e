//! The segments of a read that are not open yet. Where bloom filters may exclude them, the next ones are opened beside
//! each other: a trace is in few of many segments, and each is a read of the store.

use std::collections::VecDeque;

use tokio_util::task::AbortOnDropHandle;
use trestle_rpc::propagation;

use super::{OpenSegment, ReadPlan, RowPosition};
use crate::{error::LogError, logs::Logs, stream::SegmentRecord};

/// Most segments that are opened beside each other. Only their metadata is kept.
const AHEAD_MAX: usize = 8;

/// See the module.
#[derive(Default)]
pub(super) struct SegmentQueue {
    /// The next one last.
    waiting: Vec<SegmentRecord>,
    /// Those of them that are being opened, the next one first.
    ahead: VecDeque<AbortOnDropHandle<Result<OpenSegment, LogError>>>,
}

impl SegmentQueue {
    pub(super) fn new(mut segments: Vec<SegmentRecord>, is_backward: bool) -> Self {
        segments.sort_by_key(|segment| first_of(segment, is_backward));
        if !is_backward {
            segments.reverse();
        }
        Self { waiting: segments, ahead: VecDeque::new() }
    }

    /// The first position that the next segment may have.
    pub(super) fn first(&self, is_backward: bool) -> Option<RowPosition> {
        self.waiting.last().map(|segment| first_of(segment, is_backward))
    }

    /// Opens the next segment; none at the end.
    ///
    /// # Errors
    /// [`LogError::Corrupt`], [`LogError::Objects`].
    pub(super) async fn open_next(
        &mut self,
        logs: &Logs,
        plan: &ReadPlan,
    ) -> Result<Option<OpenSegment>, LogError> {
        if plan.may_exclude_segments() {
            let segments = self.waiting.iter().rev().skip(self.ahead.len());
            let missing = AHEAD_MAX.saturating_sub(self.ahead.len());
            let opened = segments.take(missing).map(|segment| {
                let (logs, segment, read) = (logs.clone(), segment.clone(), plan.of_segment());
                let open = async move { logs.open_pruned(&segment, read).await };
                AbortOnDropHandle::new(tokio::spawn(propagation::carry(open)))
            });
            self.ahead.extend(opened);
        }
        let Some(segment) = self.waiting.pop() else { return Ok(None) };
        let opened = match self.ahead.pop_front() {
            Some(task) => task.await??,
            None => logs.open_segment(&segment, plan.of_segment()).await?,
        };
        Ok(Some(opened))
    }
}

fn first_of(segment: &SegmentRecord, is_backward: bool) -> RowPosition {
    match is_backward {
        true => (segment.max_time, segment.max_sequence),
        false => (segment.min_time, segment.min_sequence),
    }
}
