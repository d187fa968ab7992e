//! Metadata of segments in memory, bounded by bytes: the least recently used is dropped first.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::metadata::CachedMetadata;

/// Keeps metadata of segments by their ids.
pub(crate) struct MetadataCache {
    bytes_max: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_id: HashMap<u64, MetadataEntry>,
    /// Ids by their last use.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    bytes: usize,
}

struct MetadataEntry {
    metadata: CachedMetadata,
    bytes: usize,
    used: u64,
}

impl MetadataCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, entries: Mutex::default() }
    }

    /// The metadata of a segment, if it is in the cache.
    pub(crate) fn get(&self, id: u64) -> Option<CachedMetadata> {
        let entries = &mut *self.lock();
        let entry = entries.by_id.get_mut(&id)?;
        entries.uses += 1;
        entries.by_use.remove(&entry.used);
        entries.by_use.insert(entries.uses, id);
        entry.used = entries.uses;
        Some(entry.metadata.clone())
    }

    /// Keeps the metadata of a segment.
    pub(crate) fn put(&self, id: u64, metadata: CachedMetadata) {
        let bytes = metadata.memory_bytes();
        let entries = &mut *self.lock();
        entries.remove(id);
        if bytes > self.bytes_max {
            return;
        }
        entries.uses += 1;
        let used = entries.uses;
        entries.by_use.insert(used, id);
        entries.by_id.insert(id, MetadataEntry { metadata, bytes, used });
        entries.bytes += bytes;
        while entries.bytes > self.bytes_max
            && let Some((_, id)) = entries.by_use.first_key_value().map(|(used, id)| (*used, *id))
        {
            entries.remove(id);
        }
    }

    /// Drops the metadata of a segment.
    pub(crate) fn remove(&self, id: u64) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, id: u64) {
        if let Some(entry) = self.by_id.remove(&id) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}
