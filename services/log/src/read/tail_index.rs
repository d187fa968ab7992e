//! Where the unsealed records of times are: runs of batches with the bounds of their times.

use std::{collections::VecDeque, ops::Range};

use trestle_kv::Span;

use super::{ReadPlan, RowPosition};
use crate::{
    keys::{self, StreamRow},
    stream::StreamId,
};

/// Batches of a run have at least so many bytes: with what a stream may have unsealed, there are some thousand runs.
const RUN_BYTES: usize = 64 * 1024;

/// Batches that follow each other.
#[derive(Debug, Clone)]
pub(super) struct BatchRun {
    /// The sequences of the first record of the first batch and of the last one.
    batches: (u64, u64),
    bytes: usize,
    min_time: u64,
    max_time: u64,
}

impl BatchRun {
    /// The rows of the batches.
    pub(super) fn span(&self, id: StreamId) -> Span {
        let (first, last) = self.batches;
        Span::new(keys::batch(id, first), keys::rows_before(StreamRow::Batch, id, last + 1).end)
    }

    /// The first position that a record may have, in the order of a read.
    pub(super) fn first(&self, is_backward: bool) -> RowPosition {
        if is_backward { (self.max_time, u64::MAX) } else { (self.min_time, self.batches.0) }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct TailIndex {
    runs: VecDeque<BatchRun>,
}

impl TailIndex {
    /// Adds a batch, which is behind those before it, with the least and the greatest time of its records.
    pub(super) fn push(&mut self, first: u64, bytes: usize, times: Range<u64>) {
        let Range { start: min_time, end: max_time } = times;
        match self.runs.back_mut() {
            Some(run) if run.bytes < RUN_BYTES => {
                run.batches.1 = first;
                run.bytes += bytes;
                run.min_time = run.min_time.min(min_time);
                run.max_time = run.max_time.max(max_time);
            }
            _ => {
                let batches = (first, first);
                self.runs.push_back(BatchRun { batches, bytes, min_time, max_time });
            }
        }
    }

    /// The runs that may have records behind a position, those with the first ones first. Others are removed.
    pub(super) fn runs_behind(&mut self, plan: &ReadPlan, (time, _): RowPosition) -> Vec<BatchRun> {
        self.runs.retain(|run| match plan.is_backward {
            true => run.min_time <= time,
            false => run.max_time >= time,
        });
        let mut runs: Vec<_> = self.runs.iter().cloned().collect();
        runs.sort_by_key(|run| run.first(plan.is_backward));
        if plan.is_backward {
            runs.reverse();
        }
        runs
    }
}
