//! The scheduler of a queue: the handle with which its owner delivers messages.
//!
//! It holds the index of slots and the waiting consumers. A slot is claimed by one consumer at a time, and by waiting
//! consumers before new ones. Nothing is awaited under the lock. A claim that is dropped, by any cancellation, releases
//! its slots.

mod claim;
mod load;
mod timer;
mod write;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use trestle_kv::Engine;
use trestle_model::time::Ticks;

pub(crate) use self::claim::{Claim, ClaimOutcome};
#[cfg(test)]
pub(crate) use self::load::LOAD;
use super::{
    expiry_buckets::SharedExpiryBuckets,
    fence::{Fence, FenceCause},
    index::Index,
    sequences::Sequences,
};
use crate::{head::FencingToken, keys::QueueId, slot::Cursor};

/// Removed messages after which the cursor is stored: a restart scans as many tombstones in a millisecond.
pub(crate) const CHECKPOINT_AFTER: usize = 2048;

/// See the module.
pub(crate) struct Scheduler {
    id: QueueId,
    engine: Arc<dyn Engine>,
    expiry_buckets: Arc<SharedExpiryBuckets>,
    sequences: Arc<Sequences>,
    /// The time that a former owner had reached.
    not_before: Ticks,
    inner: Mutex<SchedulerState>,
    /// One reader of the store at a time.
    loading: tokio::sync::Mutex<()>,
    /// Wakes the timer.
    timer: Notify,
}

struct SchedulerState {
    index: Index,
    /// The waiting consumers, in the order of arrival.
    waiters: BTreeMap<u64, Waiter>,
    next_waiter: u64,
    /// Why the scheduler was closed, if it was.
    closed: Option<FenceCause>,
    /// When the timer fires next; none where none runs.
    timer_at: Option<Instant>,
    /// A checkpoint is in flight.
    is_checkpointing: bool,
    used_at: Instant,
}

struct Waiter {
    max: usize,
    sender: oneshot::Sender<Claim>,
}

impl Scheduler {
    /// A scheduler that reads its queue from `cursor` on, with its expirations and the sequences under which it is
    /// owned.
    pub(super) fn new(
        id: QueueId,
        engine: Arc<dyn Engine>,
        (expiry_buckets, sequences): (Arc<SharedExpiryBuckets>, Arc<Sequences>),
        cursor: Cursor,
    ) -> Self {
        let inner = SchedulerState {
            index: Index::new(cursor),
            waiters: BTreeMap::new(),
            next_waiter: 0,
            closed: None,
            timer_at: None,
            is_checkpointing: false,
            used_at: Instant::now(),
        };
        let (inner, loading, timer) =
            (Mutex::new(inner), tokio::sync::Mutex::default(), Notify::new());
        let not_before = cursor.slot.visible_at;
        Self { id, engine, expiry_buckets, sequences, not_before, inner, loading, timer }
    }

    fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Service time. The clocks of processes differ while that of their store has stepped: a message that is written
    /// before the cursor of a former owner would never be read.
    pub(crate) fn now(&self) -> Ticks {
        self.engine.now().max(self.not_before)
    }

    /// The id of the queue.
    pub(crate) fn id(&self) -> QueueId {
        self.id
    }

    /// The token under which this process owns the queue.
    pub(crate) fn token(&self) -> FencingToken {
        self.sequences.token()
    }

    /// The fence for a change that was prepared with this version of the record.
    pub(crate) fn fence(&self, record_version: impl Into<Option<u64>>) -> Fence {
        Fence { id: self.id, token: self.token(), record_version: record_version.into() }
    }

    /// The lowest slot and sequence that a message has, now or later.
    pub(crate) fn cursor(&self) -> Cursor {
        let now = self.now();
        self.lock().index.cursor(now)
    }

    /// See [`Index::oldest_range`].
    pub(crate) fn oldest_range(&self) -> (u64, u64) {
        let inner = self.lock();
        inner.index.oldest_range(self.sequences.peek())
    }

    /// See [`Index::raise_lowest_sequence`].
    pub(crate) fn raise_lowest_sequence(&self, sequence: u64) {
        self.lock().index.raise_lowest_sequence(sequence);
    }

    /// Releases the waiting consumers, and rejects later ones.
    pub(crate) fn close(&self, cause: FenceCause) {
        let mut inner = self.lock();
        inner.closed.get_or_insert(cause);
        inner.waiters.clear();
        self.timer.notify_one();
    }

    /// Why the scheduler was closed, if it was.
    pub(crate) fn closed(&self) -> Option<FenceCause> {
        self.lock().closed
    }

    /// Whether it was unused for this time.
    pub(crate) fn is_idle(&self, idle_for: Duration) -> bool {
        let inner = self.lock();
        inner.used_at.elapsed() >= idle_for
    }

    /// Uses up the sequences of the token.
    #[cfg(test)]
    pub(crate) fn exhaust_sequences(&self) {
        self.sequences.exhaust();
    }

    /// How many consumers wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiters.len()
    }
}

/// How long until a message may become due, at most [`timer::TIMER_MAX`].
fn until_next(inner: &SchedulerState, now: Ticks) -> Duration {
    let next = inner.index.next_event().map(|next| next.since(now));
    next.unwrap_or(timer::TIMER_MAX).min(timer::TIMER_MAX)
}
