//! What the rows of a keyspace are compared by.

use trestle_kv::Entry;
use xxhash_rust::xxh3::Xxh3;

/// What the rows of a keyspace are compared by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowsDigest {
    pub(crate) rows: u64,
    /// Bytes of keys and values.
    pub(crate) bytes: u64,
    /// XXH3 of all keys and values with their lengths.
    pub(crate) hash: u128,
}

/// The digest of rows that are added in the order of their keys.
#[derive(Default)]
pub(super) struct RowsHasher {
    /// Without the hash.
    pub(super) digest: RowsDigest,
    hash: Xxh3,
}

impl RowsHasher {
    pub(super) fn add(&mut self, row: &Entry) {
        self.digest.rows += 1;
        self.digest.bytes += row.bytes();
        for part in [&row.key, &row.value] {
            self.hash.update(&(part.len() as u64).to_le_bytes());
            self.hash.update(part);
        }
    }

    pub(super) fn finish(self) -> RowsDigest {
        RowsDigest { hash: self.hash.digest128(), ..self.digest }
    }
}
