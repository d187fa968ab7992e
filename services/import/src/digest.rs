//! A digest of a table, a queue or a container, in a few bytes: a count and a sum of hashes, independent of the
//! order.
//!
//! Both sides of a copy are summed while they are copied, so that the comparison needs no memory.

use serde::{Deserialize, Serialize};
use trestle_proto::blob::v1::Blob;
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

/// The hash of a state of a blob of the target, which every later write changes.
pub(crate) fn of_blob(blob: &Blob) -> Hash {
    let md5 = blob.properties.as_ref().map(|properties| properties.content_md5.clone());
    let Blob { name, snapshot, etag, size, .. } = blob;
    let state = (name, snapshot, etag, size, md5.as_deref());
    xxh3_128(format!("{state:?}").as_bytes())
}

#[cfg(test)]
mod tests;
