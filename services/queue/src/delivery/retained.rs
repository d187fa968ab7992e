//! The data of a queue that the process retains while its scheduler is closed: the token under which it owns the queue,
//! and the expiry buckets.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use trestle_model::time::Ticks;

use super::{expiry_buckets::SharedExpiryBuckets, sequences::Sequences};
use crate::{head::FencingToken, queues::FoundQueue};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Retained {
    /// One opening of the scheduler at a time: two would fence each other.
    pub(super) opening: tokio::sync::Mutex<()>,
    /// The token of this process and the sequence numbers that it allocated; none where it never owned the queue.
    owned: Mutex<Option<Arc<Sequences>>>,
    /// When messages expire.
    pub(super) expiry_buckets: Arc<SharedExpiryBuckets>,
    /// The queue as it was opened first; its record may be outdated.
    pub(super) queue: OnceLock<FoundQueue>,
}

impl Retained {
    /// The sequences of the token under which this process took the queue over last.
    pub(super) fn owned(&self) -> Option<Arc<Sequences>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The queue, if this process owns it and messages of it may have expired.
    pub(super) fn expired(&self, now: Ticks) -> Option<FoundQueue> {
        self.owned()?;
        let is_due = self.expiry_buckets.with(|buckets| buckets.is_due(now));
        self.queue.get().filter(|_| is_due).cloned()
    }

    /// This process owns the queue, under a token of which no sequence is allocated.
    pub(super) fn own(&self, token: FencingToken) -> Arc<Sequences> {
        let sequences = Arc::new(Sequences::new(token));
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&sequences));
        // The writes of another owner are not in the expiry buckets.
        self.expiry_buckets.reset();
        sequences
    }

    /// This process does not own the queue any more, if it did so under this token.
    pub(super) fn disown(&self, token: FencingToken) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        if owned.as_ref().is_some_and(|sequences| sequences.token() == token) {
            *owned = None;
            self.expiry_buckets.reset();
        }
    }
}
