//! The background work on queues: removing what deleted queues left, messages that expired, and deduplication records
//! that expired; and storing checkpoints.

mod checkpoints;
mod deduplication;
mod deleted;
mod expired;

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use trestle_kv::ScanLimit;

pub(crate) use self::deleted::GRACE;
use crate::{delivery::AttemptError, error::QueueError, messages::Messages};

/// What one step removes at most: small beside what foreground writes put into a group.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };

/// The background work.
pub(crate) struct Sweeper {
    messages: Messages,
    state: Mutex<SweepState>,
}

/// Where the next tick continues. All of it can be found out again.
#[derive(Default)]
struct SweepState {
    /// The last key of the listing of queues.
    listed_to: Bytes,
    /// The last key of the expired deduplication records.
    deduplicated_to: Bytes,
}

impl Sweeper {
    /// Works for `messages`.
    pub(crate) fn new(messages: Messages) -> Self {
        Self { messages, state: Mutex::default() }
    }

    fn with<T>(&self, use_state: impl FnOnce(&mut SweepState) -> T) -> T {
        use_state(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes one step of everything. True when another step should follow at once.
    ///
    /// # Errors
    /// The first failure; the other steps were tried too, and the next tick tries again.
    pub(crate) async fn tick(&self) -> Result<bool, QueueError> {
        let steps = [
            self.sweep_deleted().await,
            self.sweep_expired().await,
            self.sweep_deduplication().await,
            self.checkpoint_all().await,
        ];
        let mut more = false;
        for step in steps {
            more |= step?;
        }
        Ok(more)
    }

    /// The failure of a step on one queue. A queue that another process owns, or that was deleted meanwhile, is none.
    fn failure(&self, error: AttemptError) -> Option<QueueError> {
        match error {
            AttemptError::Failed(error) => Some(error),
            AttemptError::Fenced(fenced) => {
                self.messages.drop_outdated(&fenced);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
