//! A digest of a table or a queue, in a few bytes: a count and a sum of hashes, independent of the
//! order.
//!
//! Both sides of a copy are summed while they are copied, so that the comparison needs no memory.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// The hash of one entity or message.
pub(crate) type Hash = u128;

/// The count of items and the sum of their hashes. Not a defence against deliberate collisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest {
    /// The count.
    pub(crate) count: u64,
    sum: u128,
}

impl Digest {
    /// Adds one item.
    pub(crate) fn add(&mut self, hash: Hash) {
        self.merge(Self { count: 1, sum: hash });
    }

    /// Adds another digest.
    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// The sum as text.
    pub(crate) fn text(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

/// The content of a message.
pub(crate) fn of_message(body: &[u8]) -> Hash {
    xxh3_128(body)
}

#[cfg(test)]
mod tests;
