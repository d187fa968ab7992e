//! Metadata of segments in memory, bounded by bytes: the least recently used is dropped first.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::metadata::CachedMetadata;

/// Keeps metadata of segments by the paths of their objects: an object is created and never replaced. The ids of
/// segments of different streams may be equal, where several processes write to one store.
pub(crate) struct MetadataCache {
    bytes_max: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_path: HashMap<Arc<str>, MetadataEntry>,
    /// Paths by their last use.
    by_use: BTreeMap<u64, Arc<str>>,
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
    pub(crate) fn get(&self, path: &str) -> Option<CachedMetadata> {
        let entries = &mut *self.lock();
        let entry = entries.by_path.get_mut(path)?;
        entries.uses += 1;
        if let Some(path) = entries.by_use.remove(&entry.used) {
            entries.by_use.insert(entries.uses, path);
        }
        entry.used = entries.uses;
        Some(entry.metadata.clone())
    }

    /// Keeps the metadata of a segment.
    pub(crate) fn put(&self, path: &str, metadata: CachedMetadata) {
        let bytes = metadata.memory_bytes();
        let entries = &mut *self.lock();
        entries.remove(path);
        if bytes > self.bytes_max {
            return;
        }
        entries.uses += 1;
        let (used, path) = (entries.uses, Arc::<str>::from(path));
        entries.by_use.insert(used, Arc::clone(&path));
        entries.by_path.insert(path, MetadataEntry { metadata, bytes, used });
        entries.bytes += bytes;
        while entries.bytes > self.bytes_max
            && let Some(path) = entries.by_use.first_entry().map(|first| Arc::clone(first.get()))
        {
            entries.remove(&path);
        }
    }

    /// Drops the metadata of a segment.
    pub(crate) fn remove(&self, path: &str) {
        self.lock().remove(path);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, path: &str) {
        if let Some(entry) = self.by_path.remove(path) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}
