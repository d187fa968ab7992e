//! Sequence numbers for the messages of one queue: the token of its owner, and a counter in memory. They rise within a
//! take-over and from one to the next, and none is used twice in a queue.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::head::{FencingToken, SEQUENCE_BITS};

/// The numbers of one take-over.
#[derive(Debug)]
pub(crate) struct Sequences {
    token: FencingToken,
    /// How many were allocated.
    allocated: AtomicU64,
}

/// How many numbers a token has.
const PER_TOKEN: u64 = 1 << SEQUENCE_BITS;

impl Sequences {
    /// The numbers of a token of which none is allocated.
    pub(crate) fn new(token: FencingToken) -> Self {
        Self { token, allocated: AtomicU64::new(0) }
    }

    /// The token of the take-over.
    pub(crate) fn token(&self) -> FencingToken {
        self.token
    }

    /// Allocates `count` numbers and returns the first; none where the token has not as many left.
    pub(crate) fn take(&self, count: usize) -> Option<u64> {
        let count = u64::try_from(count).ok()?;
        let rest = |allocated: u64| {
            allocated.checked_add(count).filter(|allocated| *allocated <= PER_TOKEN)
        };
        let allocated =
            self.allocated.fetch_update(Ordering::SeqCst, Ordering::SeqCst, rest).ok()?;
        Some(self.token.first_sequence() + allocated.min(PER_TOKEN - 1))
    }

    /// The lower bound of the numbers that are not allocated yet.
    pub(crate) fn peek(&self) -> u64 {
        self.token.first_sequence().saturating_add(self.allocated.load(Ordering::SeqCst))
    }

    /// Whether no number is left.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.allocated.load(Ordering::SeqCst) >= PER_TOKEN
    }
}

#[cfg(test)]
impl Sequences {
    /// Allocates every number.
    pub(crate) fn exhaust(&self) {
        self.allocated.store(PER_TOKEN, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
