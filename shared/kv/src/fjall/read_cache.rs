//! Which keys the latest groups wrote, so that the commit thread need not read again what a request
//! has just read.
//!
//! A request reads its keys before it queues, which brings them into memory, and notes which group
//! was the last whose writes it could see. When its turn comes, a value it read is still the newest
//! unless a later group wrote the key. Keys are remembered by a hash: two keys with one hash cost a
//! read, never a wrong answer.
//!
//! Rows that nearly every group writes, such as the head of a busy queue, are never still the newest.
//! The commit thread keeps the values of a few of them ([`HotRows`]), and requests do not read them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use foldhash::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::shared::EngineState;
use crate::EngineError;

/// Keys that are remembered; beyond them the oldest groups are forgotten.
const KEYS_MAX: usize = 65_536;

/// Biggest value that waits in the queue with its change; a bigger one is read again.
const CARRIED_BYTES_MAX: usize = 16 * 1024;

/// Biggest value of a hot row.
const HOT_BYTES_MAX: usize = 256;

/// Most hot rows: with keys and values up to half a MiB.
const HOT_ROWS_MAX: usize = 1_024;

/// What a request read before it queued.
#[derive(Default)]
pub(super) struct CachedReads {
    /// The last group whose writes the values show, all of them at least.
    group: u64,
    reads: Vec<CachedRead>,
}

/// One key that a request read.
struct CachedRead {
    /// The hash of the key.
    hash: u64,
    /// Its value, if it is small enough to be carried and the commit thread does not have it.
    value: Option<Option<Bytes>>,
}

impl CachedReads {
    /// Reads keys, which also brings them into memory. A read that fails is left to the commit
    /// thread, where it fails again and is answered.
    pub(super) fn read(keys: &[Bytes], shared: &EngineState) -> Self {
        // Before the values are read: they may be newer than this says, never older.
        let group = shared.visible_group();
        let read = |key: &Bytes| {
            let hash = xxh3_64(key);
            let value = match shared.hot_keys.contains(hash) {
                true => None,
                false => shared.newest(key).ok().filter(is_carried),
            };
            CachedRead { hash, value }
        };
        Self { group, reads: keys.iter().map(read).collect() }
    }

    fn hash(&self, index: usize, key: &[u8]) -> u64 {
        self.reads.get(index).map_or_else(|| xxh3_64(key), |read| read.hash)
    }

    fn value(&self, index: usize) -> Option<&Option<Bytes>> {
        self.reads.get(index)?.value.as_ref()
    }
}

fn is_carried(value: &Option<Bytes>) -> bool {
    value.as_ref().is_none_or(|value| value.len() <= CARRIED_BYTES_MAX)
}

/// Which keys are hot, by their hashes, for requests.
pub(super) struct HotKeys(Box<[AtomicU64]>);

impl Default for HotKeys {
    fn default() -> Self {
        Self((0..HOT_ROWS_MAX).map(|_| AtomicU64::new(0)).collect())
    }
}

impl HotKeys {
    /// May be wrong, which costs a read by the one thread or the other.
    fn contains(&self, hash: u64) -> bool {
        hash != 0 && self.0.get(slot_of(hash)).is_some_and(|slot| slot.load(Relaxed) == hash)
    }

    fn set(&self, hash: u64) {
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
    fn get(&self, hash: u64, key: &[u8]) -> Option<&Option<Bytes>> {
        self.0.get(&slot_of(hash)).filter(|row| row.key == key).map(|row| &row.value)
    }

    fn insert(&mut self, hash: u64, key: &Bytes, value: &Option<Bytes>) {
        // Copies: a slice of a large buffer would keep all of it in memory.
        let value = value.as_deref().map(Bytes::copy_from_slice);
        self.0.insert(slot_of(hash), HotRow { key: Bytes::copy_from_slice(key), value });
    }

    /// A group writes a key.
    fn note(&mut self, hash: u64, (key, value): (&Bytes, &Option<Bytes>), hot_keys: &HotKeys) {
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

fn is_small(value: &Option<Bytes>) -> bool {
    value.as_ref().is_none_or(|value| value.len() <= HOT_BYTES_MAX)
}

/// The writes of the latest groups, kept by the commit thread.
#[derive(Default)]
pub(super) struct RecentWrites {
    hot: HotRows,
    /// The group that wrote a key last, by the hash of the key.
    written: HashMap<u64, u64>,
    /// The remembered groups with the hashes of what they wrote, oldest first.
    groups: VecDeque<(u64, Vec<u64>)>,
    keys: usize,
    /// Every group after this one is remembered.
    forgotten: u64,
}

impl RecentWrites {
    /// The newest value of the key at `index` of a change.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn newest(
        &mut self,
        cached: &CachedReads,
        (index, key): (usize, &Bytes),
        shared: &EngineState,
    ) -> Result<Option<Bytes>, EngineError> {
        let hash = cached.hash(index, key);
        if let Some(value) = self.hot.get(hash, key) {
            return Ok(value.clone());
        }
        if let Some(value) = self.still_newest(cached, index, hash) {
            return Ok(value.clone());
        }
        let value = shared.newest(key)?;
        // It was written between the read of the request and now: it will be again.
        if cached.value(index).is_some() && is_small(&value) {
            self.hot.insert(hash, key, &value);
            shared.hot_keys.set(hash);
        }
        Ok(value)
    }

    /// The value of the key at `index` of what was cached, if it is still the newest.
    fn still_newest<'a>(
        &self,
        cached: &'a CachedReads,
        index: usize,
        hash: u64,
    ) -> Option<&'a Option<Bytes>> {
        let value = cached.value(index)?;
        let written = self.written.get(&hash).copied().unwrap_or(0);
        (cached.group >= self.forgotten && written <= cached.group).then_some(value)
    }

    /// Remembers what a group writes. Nothing is read again if its write fails.
    pub(super) fn note<'a>(
        &mut self,
        group: u64,
        writes: impl Iterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
        hot_keys: &HotKeys,
    ) {
        let hot = &mut self.hot;
        let hash = |write: (&Bytes, &Option<Bytes>)| {
            let hash = xxh3_64(write.0);
            hot.note(hash, write, hot_keys);
            hash
        };
        let hashes: Vec<u64> = writes.map(hash).collect();
        self.written.extend(hashes.iter().map(|hash| (*hash, group)));
        self.keys += hashes.len();
        self.groups.push_back((group, hashes));
        while self.keys > KEYS_MAX {
            let Some((oldest, hashes)) = self.groups.pop_front() else { break };
            self.keys -= hashes.len();
            self.forgotten = oldest;
            for hash in hashes {
                // A later group may have written the key again.
                if self.written.get(&hash) == Some(&oldest) {
                    self.written.remove(&hash);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(group: u64, key: &[u8]) -> CachedReads {
        CachedReads { group, reads: vec![CachedRead { hash: xxh3_64(key), value: Some(None) }] }
    }

    fn holds(recent: &RecentWrites, group: u64, key: &[u8]) -> bool {
        recent.still_newest(&cached(group, key), 0, xxh3_64(key)).is_some()
    }

    #[test]
    fn a_value_holds_until_a_later_group_writes_its_key() {
        let (written, other) = (Bytes::from_static(b"k"), b"other");
        let mut recent = RecentWrites::default();

        recent.note(5, [(&written, &None)].into_iter(), &HotKeys::default());

        assert!(holds(&recent, 5, &written), "cached with the write");
        assert!(!holds(&recent, 4, &written), "cached before the write");
        assert!(holds(&recent, 4, other), "never written");
    }

    #[test]
    fn a_value_read_before_a_forgotten_group_is_read_again() {
        let keys = |from: usize, count: usize| -> Vec<Bytes> {
            (from..from + count).map(|number| number.to_string().into()).collect()
        };
        let mut recent = RecentWrites::default();

        let hot_keys = HotKeys::default();
        recent.note(1, keys(0, 10).iter().map(|key| (key, &None)), &hot_keys);
        recent.note(2, keys(10, KEYS_MAX).iter().map(|key| (key, &None)), &hot_keys);

        assert!(!holds(&recent, 0, b"unrelated"), "group 1 is forgotten");
        assert!(holds(&recent, 1, b"unrelated"));
        assert!(!holds(&recent, 1, b"10"));
        assert!(holds(&recent, 2, b"10"));
        assert_eq!(recent.written.len(), KEYS_MAX, "forgotten keys take no memory");
    }

    #[test]
    fn a_key_written_again_is_remembered_by_its_last_group() {
        let key = Bytes::from_static(b"k");
        let mut recent = RecentWrites::default();
        let hot_keys = HotKeys::default();
        recent.note(1, [(&key, &None)].into_iter(), &hot_keys);
        recent.note(2, [(&key, &None)].into_iter(), &hot_keys);

        let many: Vec<Bytes> = (0..KEYS_MAX - 1).map(|n| n.to_string().into()).collect();
        recent.note(3, many.iter().map(|key| (key, &None)), &hot_keys);

        assert!(!holds(&recent, 1, &key), "group 1 is forgotten, its key is not");
        assert!(holds(&recent, 2, &key));
    }
}
