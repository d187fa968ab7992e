//! The engine for tests, demonstrations and `--ephemeral`: everything is lost with the process.
//!
//! The map is persistent in the functional sense: a snapshot is a second handle to the same tree,
//! made in constant time, and a commit copies only the path it changes. One lock makes commits
//! follow each other; readers hold it just long enough to take a handle. It checks every rule of
//! the contract, so that a service that was tested on it works on any engine.

use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use rpds::RedBlackTreeMapSync;

use crate::decide::{ChangeRules, DecidedChange, decide};
use crate::keyspace::{Keyspace, Keyspaces, unknown_keyspace};
use crate::limits::Limits;
use crate::service_clock::ServiceClock;
use crate::version::Versions;
use crate::{
    Change, CommitError, Direction, Durability, Engine, EngineError, EngineStatus, Entry, Scan,
    ScanLimit, Snapshot, Span, Version, Write,
};
use trestle_model::time::{Clock, SystemClock, Ticks};

type Map = RedBlackTreeMapSync<Bytes, Bytes>;

/// An engine in memory. Clones are handles on one store.
#[derive(Clone)]
pub struct MemoryEngine {
    store: Arc<MemoryStore>,
}

struct MemoryStore {
    keyspaces: Keyspaces,
    limits: Limits,
    clock: ServiceClock,
    state: Mutex<MemoryState>,
}

struct MemoryState {
    map: Map,
    versions: Versions,
}

impl MemoryEngine {
    /// An empty engine with these keyspaces and the clock of the machine.
    ///
    /// # Panics
    /// If the keyspaces overlap, or one has no name or no kinds.
    #[must_use]
    pub fn new(keyspaces: impl Into<Vec<Keyspace>>) -> Self {
        Self::with_clock(keyspaces, Arc::new(SystemClock))
    }

    /// An empty engine with a clock of its own.
    ///
    /// # Panics
    /// As [`MemoryEngine::new`] does.
    #[must_use]
    pub fn with_clock(keyspaces: impl Into<Vec<Keyspace>>, clock: Arc<dyn Clock>) -> Self {
        let keyspaces = Keyspaces::new(keyspaces.into()).expect("keyspaces are constants");
        let state = MemoryState { map: Map::default(), versions: Versions::after(Ticks::MIN) };
        let (limits, state) = (Limits::default(), Mutex::new(state));
        let clock = ServiceClock::after(Ticks::MIN, None, clock);
        Self { store: Arc::new(MemoryStore { keyspaces, limits, clock, state }) }
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        let map = self.store.state.lock().unwrap_or_else(PoisonError::into_inner).map.clone();
        Ok(Box::new(MemorySnapshot { map, store: Arc::clone(&self.store) }))
    }

    async fn commit(&self, mut change: Change) -> Result<Version, CommitError> {
        let MemoryStore { keyspaces, limits, clock, state } = &*self.store;
        change.spec.check(keyspaces, limits)?;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let MemoryState { map, versions } = &mut *state;
        let reads = change.spec.reads.keys();
        let current: Vec<_> = reads.iter().map(|key| map.get(key).cloned()).collect();
        let rules = ChangeRules { keyspaces, limits };
        let decided = decide(&mut change, &current, &rules, versions, clock.now())?;
        let DecidedChange { version, writes } = decided;
        for write in writes {
            match write {
                Write::Put { key, value } => map.insert_mut(key, value),
                Write::Delete { key } => {
                    map.remove_mut(&key);
                }
            }
        }
        Ok(version)
    }

    fn limits(&self) -> Limits {
        self.store.limits
    }

    fn now(&self) -> Ticks {
        self.store.clock.now()
    }

    fn status(&self) -> EngineStatus {
        EngineStatus {
            name: "memory",
            durability: Durability::None,
            stopped: None,
            disk: None,
            is_read_only: false,
            clock_offset_ms: self.store.clock.offset_ms(),
        }
    }
}

struct MemorySnapshot {
    map: Map,
    store: Arc<MemoryStore>,
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.store.keyspaces.of(key).ok_or_else(|| unknown_keyspace(key))?;
        Ok(self.map.get(key).cloned())
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        if span.is_empty() {
            return Ok(Scan { entries: Vec::new(), more: false });
        }
        self.store.keyspaces.index_of_span(span)?;
        let limit = self.store.limits.of_scan(limit);
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
