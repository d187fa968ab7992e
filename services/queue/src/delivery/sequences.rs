//! Sequence numbers for the messages of one queue: the token of its owner, and a counter in memory. They rise within a
//! take-over and from one to the next, and none is used twice in a queue.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::head::{SEQUENCE_BITS, Token};

/// The numbers of one take-over.
#[derive(Debug)]
pub(crate) struct Sequences {
    token: Token,
    /// How many were allocated.
    taken: AtomicU64,
}

/// How many numbers a token has.
const PER_TOKEN: u64 = 1 << SEQUENCE_BITS;

impl Sequences {
    /// The numbers of a token of which none is allocated.
    pub(crate) fn new(token: Token) -> Self {
        Self { token, taken: AtomicU64::new(0) }
    }

    /// The token of the take-over.
    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// Allocates `count` numbers and returns the first; none where the token has not as many left.
    pub(crate) fn take(&self, count: usize) -> Option<u64> {
        let count = u64::try_from(count).ok()?;
        let rest = |taken: u64| taken.checked_add(count).filter(|taken| *taken <= PER_TOKEN);
        let taken = self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, rest).ok()?;
        Some(self.token.first_sequence() + taken.min(PER_TOKEN - 1))
    }

    /// The lower bound of the numbers that are not allocated yet.
    pub(crate) fn peek(&self) -> u64 {
        self.token.first_sequence().saturating_add(self.taken.load(Ordering::SeqCst))
    }

    /// Whether no number is left.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.taken.load(Ordering::SeqCst) >= PER_TOKEN
    }
}

#[cfg(test)]
impl Sequences {
    /// Allocates every number.
    pub(crate) fn exhaust(&self) {
        self.taken.store(PER_TOKEN, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
