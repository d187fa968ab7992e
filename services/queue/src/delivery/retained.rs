//! What the process keeps of a queue also while its scheduler is closed: under which token it owns the queue, and what
//! it found out about expirations.

use std::sync::{Arc, Mutex, PoisonError};

use super::{expiry_buckets::SharedExpiryBuckets, sequences::Sequences};
use crate::head::Token;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Retained {
    /// One opening of the scheduler at a time: two would fence each other.
    pub(super) opening: tokio::sync::Mutex<()>,
    /// The token of this process and the numbers that it took; none where it never owned the queue.
    owned: Mutex<Option<Arc<Sequences>>>,
    /// When messages expire.
    pub(super) expiry_buckets: Arc<SharedExpiryBuckets>,
}

impl Retained {
    /// The sequences of the token under which this process took the queue over last.
    pub(super) fn owned(&self) -> Option<Arc<Sequences>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This process owns the queue, under a token of which no sequence was taken.
    pub(super) fn own(&self, token: Token) -> Arc<Sequences> {
        let sequences = Arc::new(Sequences::new(token));
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&sequences));
        // What another owner wrote is unknown here.
        self.expiry_buckets.reset();
        sequences
    }

    /// This process does not own the queue any more, if it did so under this token.
    pub(super) fn disown(&self, token: Token) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        if owned.as_ref().is_some_and(|sequences| sequences.token() == token) {
            *owned = None;
            self.expiry_buckets.reset();
        }
    }
}
