//! An engine over rows that never change, such as those of a backup: it serves reads and rejects writes, and its time
//! is always the instant of the rows, so that what had not expired then has not expired.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::decide::{ChangeRules, decide};
use crate::keyspace::{Keyspace, Keyspaces, unknown_keyspace};
use crate::limits::Limits;
use crate::version::Versions;
use crate::{
    Change, CommitError, Durability, Engine, EngineError, EngineStatus, Scan, ScanLimit, Snapshot,
    Span, Version,
};
use trestle_model::time::Ticks;

/// Rows that never change. Clones are handles on them.
#[derive(Clone)]
pub struct ReadOnlyEngine {
    store: Arc<ReadOnlyStore>,
}

struct ReadOnlyStore {
    keyspaces: Keyspaces,
    limits: Limits,
    rows: Arc<dyn Snapshot>,
    at: Ticks,
    what: &'static str,
    versions: Mutex<Versions>,
}

impl ReadOnlyEngine {
    /// An engine over `rows` as they were at an instant. `what` they are, such as `backup`, is in errors and in the
    /// status.
    ///
    /// # Panics
    /// If the keyspaces overlap, or one has no name or no kinds.
    #[must_use]
    pub fn new(
        keyspaces: impl Into<Vec<Keyspace>>,
        rows: Arc<dyn Snapshot>,
        at: Ticks,
        what: &'static str,
    ) -> Self {
        let keyspaces = Keyspaces::new(keyspaces.into()).expect("keyspaces are constants");
        let versions = Mutex::new(Versions::after(at));
        let limits = Limits::default();
        Self { store: Arc::new(ReadOnlyStore { keyspaces, limits, rows, at, what, versions }) }
    }
}

#[async_trait]
impl Engine for ReadOnlyEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        Ok(Box::new(ReadOnlyView(Arc::clone(&self.store))))
    }

    /// Succeeds where the decision writes nothing.
    async fn commit(&self, mut change: Change) -> Result<Version, CommitError> {
        let ReadOnlyStore { keyspaces, limits, rows, at, what, versions } = &*self.store;
        change.spec.check(keyspaces, limits)?;
        let mut current: Vec<Option<Bytes>> = Vec::new();
        for key in change.spec.reads.keys() {
            current.push(rows.get(key).await?);
        }
        let rules = ChangeRules { keyspaces, limits };
        let mut versions = versions.lock().unwrap_or_else(PoisonError::into_inner);
        let decided = decide(&mut change, &current, &rules, &mut versions, *at)?;
        match decided.writes.as_slice().is_empty() {
            true => Ok(decided.version),
            false => Err(CommitError::ReadOnly { what }),
        }
    }

    fn limits(&self) -> Limits {
        self.store.limits
    }

    fn now(&self) -> Ticks {
        self.store.at
    }

    fn status(&self) -> EngineStatus {
        EngineStatus {
            name: self.store.what,
            durability: Durability::None,
            stopped: None,
            disk: None,
            is_read_only: true,
            clock_offset_ms: 0,
        }
    }
}

/// Every view is the same.
struct ReadOnlyView(Arc<ReadOnlyStore>);

#[async_trait]
impl Snapshot for ReadOnlyView {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.0.keyspaces.of(key).ok_or_else(|| unknown_keyspace(key))?;
        self.0.rows.get(key).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        if span.is_empty() {
            return Ok(Scan { entries: Vec::new(), more: false });
        }
        self.0.keyspaces.index_of_span(span)?;
        self.0.rows.scan(span, self.0.limits.of_scan(limit)).await
    }
}

#[cfg(test)]
mod tests;
