//! Which keys the latest groups wrote, so that the commit thread need not read again what a request
//! has just read.
//!
//! A request reads its keys before it queues, which brings them into memory, and notes which group
//! was the last whose writes it could see. When its turn comes, a value it read is still the newest
//! unless a later group wrote the key. Keys are remembered by a hash: two keys with one hash cost a
//! read, never a wrong answer.

use std::collections::VecDeque;

use bytes::Bytes;
use foldhash::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::shared::EngineState;

/// Keys that are remembered; beyond them the oldest groups are forgotten.
const KEYS_MAX: usize = 65_536;

/// Biggest value that waits in the queue with its change; a bigger one is read again.
const CARRIED_BYTES_MAX: usize = 16 * 1024;

/// What a request read before it queued.
#[derive(Default)]
pub(super) struct CachedReads {
    /// The last group whose writes the values show, all of them at least.
    group: u64,
    /// For each key its value, if it is small enough to be carried.
    values: Vec<Option<Option<Bytes>>>,
}

impl CachedReads {
    /// Reads keys, which also brings them into memory. A read that fails is left to the commit
    /// thread, where it fails again and is answered.
    pub(super) fn read(keys: &[Bytes], shared: &EngineState) -> Self {
        // Before the values are read: they may be newer than this says, never older.
        let group = shared.visible_group();
        let read = |key: &Bytes| shared.newest(key).ok().filter(is_carried);
        Self { group, values: keys.iter().map(read).collect() }
    }

    fn value(&self, index: usize) -> Option<&Option<Bytes>> {
        self.values.get(index)?.as_ref()
    }
}

fn is_carried(value: &Option<Bytes>) -> bool {
    value.as_ref().is_none_or(|value| value.len() <= CARRIED_BYTES_MAX)
}

/// The writes of the latest groups, kept by the commit thread.
#[derive(Default)]
pub(super) struct RecentWrites {
    /// The group that wrote a key last, by the hash of the key.
    written: HashMap<u64, u64>,
    /// The remembered groups with the hashes of what they wrote, oldest first.
    groups: VecDeque<(u64, Vec<u64>)>,
    keys: usize,
    /// Every group after this one is remembered.
    forgotten: u64,
}

impl RecentWrites {
    /// The value of the key at `index` of what was cached, if it is still the newest.
    pub(super) fn still_newest<'a>(
        &self,
        cached: &'a CachedReads,
        index: usize,
        key: &[u8],
    ) -> Option<&'a Option<Bytes>> {
        let value = cached.value(index)?;
        let written = self.written.get(&xxh3_64(key)).copied().unwrap_or(0);
        (cached.group >= self.forgotten && written <= cached.group).then_some(value)
    }

    /// Remembers what a group writes.
    pub(super) fn note<'a>(&mut self, group: u64, keys: impl Iterator<Item = &'a Bytes>) {
        let hashes: Vec<u64> = keys.map(|key| xxh3_64(key)).collect();
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

    fn cached(group: u64) -> CachedReads {
        CachedReads { group, values: vec![Some(None)] }
    }

    fn holds(recent: &RecentWrites, group: u64, key: &[u8]) -> bool {
        recent.still_newest(&cached(group), 0, key).is_some()
    }

    #[test]
    fn a_value_holds_until_a_later_group_writes_its_key() {
        let (written, other) = (Bytes::from_static(b"k"), b"other");
        let mut recent = RecentWrites::default();

        recent.note(5, [&written].into_iter());

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

        recent.note(1, keys(0, 10).iter());
        recent.note(2, keys(10, KEYS_MAX).iter());

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
        recent.note(1, [&key].into_iter());
        recent.note(2, [&key].into_iter());

        let many: Vec<Bytes> = (0..KEYS_MAX - 1).map(|n| n.to_string().into()).collect();
        recent.note(3, many.iter());

        assert!(!holds(&recent, 1, &key), "group 1 is forgotten, its key is not");
        assert!(holds(&recent, 2, &key));
    }
}
