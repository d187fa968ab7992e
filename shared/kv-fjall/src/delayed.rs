//! Changes that wait until a keyspace that they write takes writes again.
//!
//! They wait beside the queue, so that a flood of one kind of work does not hold up another's. Changes that wait at
//! the same time have no order, as those in the queue have none.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::backpressure::KeyspaceSet;
use super::group::PendingChange;

/// Most changes that wait; more are rejected.
pub(super) const DELAYED_MAX: usize = 2_048;

/// How long a change waits at most. A compaction on a slow machine takes seconds, and a caller that gives up earlier
/// has a deadline of its own.
pub(super) const WAITS_MAX: Duration = Duration::from_secs(10);

/// A change, the keyspaces that it writes, and since when it waits.
pub(super) struct DelayedChange {
    pub(super) change: PendingChange,
    pub(super) writes: KeyspaceSet,
    pub(super) since: Instant,
}

impl Default for DelayedChanges {
    fn default() -> Self {
        Self::waiting_at_most(WAITS_MAX)
    }
}

/// The changes that wait, oldest first.
pub(super) struct DelayedChanges {
    waits_max: Duration,
    waiting: VecDeque<DelayedChange>,
    /// Since when there is one.
    stalled: Option<Instant>,
}

impl DelayedChanges {
    /// None, each of which will wait so long at most.
    pub(super) fn waiting_at_most(waits_max: Duration) -> Self {
        Self { waits_max, waiting: VecDeque::new(), stalled: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Lets a change wait; returned where too many do.
    pub(super) fn push(&mut self, delayed: DelayedChange) -> Option<PendingChange> {
        if self.waiting.len() >= DELAYED_MAX {
            return Some(delayed.change);
        }
        self.stalled.get_or_insert_with(Instant::now);
        self.waiting.push_back(delayed);
        None
    }

    /// Takes out those that waited too long.
    pub(super) fn expired(&mut self) -> impl Iterator<Item = PendingChange> {
        let waits_max = self.waits_max;
        let is_late = |delayed: &DelayedChange| delayed.since.elapsed() >= waits_max;
        let late = self.waiting.iter().take_while(|delayed| is_late(delayed)).count();
        self.waiting.drain(..late).map(|delayed| delayed.change)
    }

    /// Takes out those that write no keyspace of `pressed`, until `take` returns false.
    pub(super) fn ready(
        &mut self,
        pressed: KeyspaceSet,
        mut take: impl FnMut(DelayedChange) -> bool,
    ) {
        for _ in 0..self.waiting.len() {
            let Some(delayed) = self.waiting.pop_front() else { return };
            if delayed.writes.intersects(pressed) {
                self.waiting.push_back(delayed);
            } else if !take(delayed) {
                return;
            }
        }
    }

    /// Everything that waits.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = PendingChange> {
        self.waiting.drain(..).map(|delayed| delayed.change)
    }

    /// How long changes waited, once none does any more.
    pub(super) fn stall_ended(&mut self) -> Option<Duration> {
        if !self.waiting.is_empty() {
            return None;
        }
        self.stalled.take().map(|since| since.elapsed())
    }
}
