//! The background work on queues: removing the rows of deleted queues, expired messages, and expired deduplication
//! records; and storing checkpoints.

mod checkpoints;
mod deduplication;
mod deleted;
mod expired;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use trestle_kv::{CommitError, ScanLimit};

use crate::{error::QueueError, messages::MessageOperations};

/// Most rows that one step removes: few compared with a commit group of foreground writes.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };
/// How long a deleted queue is scanned for writes that were in flight when it was deleted; longer than any call may
/// take.
pub(crate) const GRACE: Duration = Duration::from_secs(120);

/// What a step of the background work covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepScope {
    /// The queues of this process.
    Own,
    /// These, and what no process owns: the rows of deleted queues, and expired deduplication records.
    Store,
}

/// The background work.
pub(crate) struct Sweeper {
    messages: MessageOperations,
    state: Mutex<SweepState>,
    /// One examination of expiry buckets at a time.
    examining: tokio::sync::Mutex<()>,
}

/// Where the next tick continues. It can be reconstructed.
#[derive(Default)]
struct SweepState {
    /// The last key of the listing of queues.
    listed_to: Bytes,
    /// The last key of the expired deduplication records.
    deduplicated_to: Bytes,
}

impl Sweeper {
    /// Sweeps the queues of `messages`.
    pub(crate) fn new(messages: MessageOperations) -> Self {
        Self { messages, state: Mutex::default(), examining: tokio::sync::Mutex::default() }
    }

    fn with<T>(&self, use_state: impl FnOnce(&mut SweepState) -> T) -> T {
        use_state(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs one step of each kind. Returns true when another step should follow at once. A step that the store refuses
    /// because disk space is short waits for the next tick; health and metrics report the disk.
    ///
    /// # Errors
    /// The first error; the other steps were executed too, and the next tick retries.
    pub(crate) async fn tick(&self, scope: SweepScope) -> Result<bool, QueueError> {
        let mut steps = vec![self.sweep_expired().await, self.checkpoint_all().await];
        match scope {
            SweepScope::Store => {
                steps.extend([self.sweep_deleted().await, self.sweep_deduplication().await]);
            }
            SweepScope::Own => steps.push(self.forget_deleted().await),
        }
        let mut more = false;
        for step in steps {
            more |= match step {
                Err(QueueError::Commit(CommitError::Full { .. })) => false,
                step => step?,
            };
        }
        Ok(more)
    }
}

#[cfg(test)]
mod tests;
