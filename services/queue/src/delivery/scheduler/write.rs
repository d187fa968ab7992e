//! Writes in flight, which the cursor must not pass, and their changes of the index.

use std::sync::Arc;

use tokio::time::Instant;
use trestle_model::time::Ticks;

use super::{CHECKPOINT_AFTER, Scheduler};
use crate::{
    delivery::{
        expiry_buckets::IndexEntry,
        fence::{FenceCause, Fenced},
    },
    slot::{Cursor, Slot},
};

/// A write in flight; it ends when dropped.
pub(crate) struct Writing {
    scheduler: Arc<Scheduler>,
    number: u64,
}

/// A checkpoint in flight; it ends when dropped.
pub(crate) struct CheckpointGuard(Arc<Scheduler>);

impl Scheduler {
    /// Begins a write of up to `count` new messages at the returned time or later: its first sequence.
    ///
    /// # Errors
    /// [`FenceCause::SequencesExhausted`].
    pub(crate) fn begin_insert(
        self: &Arc<Self>,
        count: usize,
    ) -> Result<(Writing, Ticks, u64), Fenced> {
        let mut inner = self.lock();
        inner.used_at = Instant::now();
        // All under the lock: the cursor must not pass messages that are about to be written.
        let now = self.now();
        let exhausted = || self.fence(None).reject(FenceCause::SequencesExhausted);
        let sequence = self.sequences.take(count).ok_or_else(exhausted)?;
        let number = inner.index.begin_write(Slot { visible_at: now, sequence });
        Ok((Writing { scheduler: Arc::clone(self), number }, now, sequence))
    }

    /// Begins a write that leaves messages at the returned time or later, the lowest of which has this sequence.
    pub(crate) fn begin_move(self: &Arc<Self>, sequence: u64) -> (Writing, Ticks) {
        let mut inner = self.lock();
        inner.used_at = Instant::now();
        let now = self.now();
        let number = inner.index.begin_write(Slot { visible_at: now, sequence });
        (Writing { scheduler: Arc::clone(self), number }, now)
    }

    /// A commit removed these slots and filled those.
    pub(crate) fn change(self: &Arc<Self>, removed: &[Slot], inserted: &[IndexEntry]) {
        self.record_expirations(inserted);
        let now = self.now();
        let mut inner = self.lock();
        for slot in removed {
            inner.index.remove(*slot);
        }
        for entry in inserted {
            inner.index.insert(entry.slot);
        }
        self.dispatch(&mut inner, now);
        self.set_timer(&mut inner, now);
    }

    pub(super) fn record_expirations(&self, entries: &[IndexEntry]) {
        if !entries.is_empty() {
            self.expiry_buckets
                .with(|buckets| entries.iter().for_each(|entry| buckets.record(entry)));
        }
    }

    /// Begins a checkpoint, if many messages were removed since the last one and none is in flight.
    pub(crate) fn begin_checkpoint(self: &Arc<Self>) -> Option<CheckpointGuard> {
        let mut inner = self.lock();
        if inner.index.removed() < CHECKPOINT_AFTER || inner.is_checkpointing {
            return None;
        }
        inner.is_checkpointing = true;
        Some(CheckpointGuard(Arc::clone(self)))
    }

    /// See [`super::Index::take_checkpoint`].
    pub(crate) fn take_checkpoint(&self) -> Option<Cursor> {
        let now = self.now();
        self.lock().index.take_checkpoint(now)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.scheduler.lock().index.end_write(self.number);
    }
}

impl Drop for CheckpointGuard {
    fn drop(&mut self) {
        self.0.lock().is_checkpointing = false;
    }
}
