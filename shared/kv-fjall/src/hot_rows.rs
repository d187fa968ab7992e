//! Rows that nearly every group writes, such as the head of a busy queue: their keys and newest values.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use foldhash::HashMap;

/// Most hot rows: with keys and values up to half a MiB.
const HOT_ROWS_MAX: usize = 1_024;

/// Biggest value of a hot row.
const HOT_BYTES_MAX: usize = 256;

/// Which keys are hot, by their hashes, for requests.
pub(super) struct HotKeys(Box<[AtomicU64]>);

impl Default for HotKeys {
    fn default() -> Self {
        Self((0..HOT_ROWS_MAX).map(|_| AtomicU64::new(0)).collect())
    }
}

impl HotKeys {
    /// May be wrong, which costs a read by the one thread or the other.
    pub(super) fn contains(&self, hash: u64) -> bool {
        hash != 0 && self.0.get(slot_of(hash)).is_some_and(|slot| slot.load(Relaxed) == hash)
    }

    pub(super) fn set(&self, hash: u64) {
        self.store(slot_of(hash), hash);
    }

    fn clear(&self, hash: u64) {
        self.store(slot_of(hash), 0);
    }

    fn store(&self, slot: usize, hash: u64) {
        if let Some(slot) = self.0.get(slot) {
            slot.store(hash, Relaxed);
        }
    }
}

/// Where a hash lies in a table of hot rows. Two of one slot displace each other.
fn slot_of(hash: u64) -> usize {
    usize::try_from(hash % HOT_ROWS_MAX as u64).unwrap_or(0)
}

/// The newest values of hot rows, kept by the commit thread, which is the only one that writes.
#[derive(Default)]
pub(super) struct HotRows(HashMap<usize, HotRow>);

struct HotRow {
    key: Bytes,
    value: Option<Bytes>,
}

impl HotRows {
    pub(super) fn get(&self, hash: u64, key: &[u8]) -> Option<&Option<Bytes>> {
        self.0.get(&slot_of(hash)).filter(|row| row.key == key).map(|row| &row.value)
    }

    pub(super) fn insert(&mut self, hash: u64, key: &Bytes, value: &Option<Bytes>) {
        // Copies: a slice of a large buffer would keep all of it in memory.
        let value = value.as_deref().map(Bytes::copy_from_slice);
        self.0.insert(slot_of(hash), HotRow { key: Bytes::copy_from_slice(key), value });
    }

    /// A group writes a key.
    pub(super) fn record(
        &mut self,
        hash: u64,
        (key, value): (&Bytes, &Option<Bytes>),
        hot_keys: &HotKeys,
    ) {
        if self.get(hash, key).is_none() {
            return;
        }
        if is_small(value) {
            self.insert(hash, key, value);
        } else {
            self.0.remove(&slot_of(hash));
            hot_keys.clear(hash);
        }
    }
}

pub(super) fn is_small(value: &Option<Bytes>) -> bool {
    value.as_ref().is_none_or(|value| value.len() <= HOT_BYTES_MAX)
}
