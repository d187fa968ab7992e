//! Key ranges.

use bytes::Bytes;

/// A range of keys of one kind: from `start`, inclusive, to `end`, exclusive, read in one
/// direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// First key of the range.
    pub start: Bytes,
    /// First key after the range.
    pub end: Bytes,
    /// Which end is read first.
    pub direction: Direction,
}

/// The order in which a [`Span`] is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

impl Span {
    /// The keys from `start`, inclusive, to `end`, exclusive, ascending.
    pub fn new(start: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Self { start: start.into(), end: end.into(), direction: Direction::Forward }
    }

    /// Every key that starts with `prefix`, ascending.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        Self::new(prefix.to_vec(), after_prefix(prefix))
    }

    /// The same range, descending.
    #[must_use]
    pub fn backward(self) -> Self {
        Self { direction: Direction::Backward, ..self }
    }

    /// Whether no key can be in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// The smallest key greater than every key that starts with `prefix`.
///
/// A prefix of 0xFF bytes alone has no such key; the kinds of this project never get there, and
/// the answer is then a key longer than any of them.
#[must_use]
pub fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return end;
        }
    }
    vec![0xFF; prefix.len() + 1]
}

/// The smallest key greater than `key`.
#[must_use]
pub fn after_key(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}
