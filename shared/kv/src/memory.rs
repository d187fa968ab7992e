//! The engine for tests, demonstrations and `--ephemeral`: everything is gone with the process.
//!
//! The map is persistent in the functional sense: a snapshot is a second handle to the same tree,
//! taken in constant time, and a commit copies only the path it changes. One lock makes commits
//! follow each other; readers hold it just long enough to take a handle.

use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use rpds::RedBlackTreeMapSync;

use crate::decide::decide;
use crate::{
    Change, CommitError, Direction, Durability, Engine, EngineError, EngineStatus, Entry, Scan,
    ScanLimit, Snapshot, Span, Write, limits,
};

type Map = RedBlackTreeMapSync<Bytes, Bytes>;

/// An engine in memory. Clones share one map.
#[derive(Debug, Clone, Default)]
pub struct MemoryEngine {
    map: Arc<Mutex<Map>>,
}

impl MemoryEngine {
    /// An empty engine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        let map = self.map.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Box::new(MemorySnapshot { map }))
    }

    async fn commit(&self, mut change: Change) -> Result<(), CommitError> {
        limits::check_reads(&change.reads)?;
        let mut map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        let current: Vec<_> = change.reads.iter().map(|key| map.get(key).cloned()).collect();
        for write in decide(&mut change, &current)? {
            match write {
                Write::Put { key, value } => map.insert_mut(key, value),
                Write::Delete { key } => {
                    map.remove_mut(&key);
                }
            }
        }
        Ok(())
    }

    fn status(&self) -> EngineStatus {
        EngineStatus {
            name: "memory",
            durability: Durability::None,
            stopped: None,
            storage_bytes: 0,
            free_bytes: None,
        }
    }
}

struct MemorySnapshot {
    map: Map,
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(self.map.get(key).cloned())
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        if span.is_empty() {
            return Ok(Scan { entries: Vec::new(), more: false });
        }
        let range = (Bound::Included(&span.start), Bound::Excluded(&span.end));
        let entries = self
            .map
            .range::<Bytes, _>(range)
            .map(|(key, value)| Entry { key: key.clone(), value: value.clone() });
        Ok(match span.direction {
            Direction::Forward => take(entries, limit),
            Direction::Backward => take(entries.rev(), limit),
        })
    }
}

fn take(mut entries: impl Iterator<Item = Entry>, limit: ScanLimit) -> Scan {
    let mut scan = Scan { entries: Vec::new(), more: false };
    let mut bytes = 0_usize;
    for entry in entries.by_ref() {
        bytes = bytes.saturating_add(entry.key.len()).saturating_add(entry.value.len());
        scan.entries.push(entry);
        if scan.entries.len() >= limit.rows || bytes >= limit.bytes {
            scan.more = entries.next().is_some();
            break;
        }
    }
    scan
}
