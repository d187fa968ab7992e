//! Which keys the latest groups wrote, so that the commit thread need not read again what a request
//! has just read.
//!
//! A request reads its keys before it queues, which brings them into memory, and records which group
//! was the last whose writes it could see. When it is decided, a value it read is still the newest
//! unless a later group wrote the key. Keys are remembered by a hash: two keys with one hash cost a
//! read, never a wrong answer.
//!
//! Rows that nearly every group writes, such as the head of a busy queue, are never still the newest.
//! The commit thread keeps the values of a few of them ([`HotRows`]), and requests do not read them.

use std::collections::VecDeque;

use bytes::Bytes;
use foldhash::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::hot_rows::{HotKeys, HotRows, is_small};
use super::shared::EngineState;
use trestle_kv::EngineError;

/// Keys that are remembered; beyond them the oldest groups are forgotten.
const KEYS_MAX: usize = 65_536;

/// Biggest value that waits in the queue with its change; a bigger one is read again.
const CARRIED_BYTES_MAX: usize = 16 * 1024;

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
        // Before the values are read: they may be newer than this group, never older.
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
    pub(super) fn record<'a>(
        &mut self,
        group: u64,
        writes: impl Iterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
        hot_keys: &HotKeys,
    ) {
        let hot = &mut self.hot;
        let hash = |write: (&Bytes, &Option<Bytes>)| {
            let hash = xxh3_64(write.0);
            hot.record(hash, write, hot_keys);
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
mod tests;
