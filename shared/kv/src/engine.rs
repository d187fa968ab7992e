//! The seam: what a service needs of storage. See the crate page for the contract in prose.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::limits::Limits;
use crate::{Change, CommitError, EngineError, Span, Version};
use trestle_model::time::Ticks;

/// An ordered, transactional, durable map from bytes to bytes.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// A consistent view of everything committed so far.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`].
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError>;

    /// The newest value of a key.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.snapshot().await?.get(key).await
    }

    /// The newest entries of a range.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        self.snapshot().await?.scan(span, limit).await
    }

    /// Reads the keys of the change, runs its decision, and writes what that returned, all in one step: no other commit
    /// in its domains comes between. Returns the version of the change once the writes are durable, as the engine is
    /// configured. A change that writes nothing succeeds without a sync. The decision may run more than once; the last
    /// run counts.
    ///
    /// # Errors
    /// Every kind of [`CommitError`]. A caller that drops the future does not undo the commit.
    async fn commit(&self, change: Change) -> Result<Version, CommitError>;

    /// Reports to the engine that no key of the span is read or written from now on, such as those of a dropped table.
    /// It may remove some of them at once, cheaper than deletes do; the rest stays, and is to be deleted as usual. A
    /// key may come back that was deleted before. The default does nothing.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] for a span in no keyspace or in several, [`EngineError::Unavailable`].
    async fn discard(&self, span: &Span) -> Result<(), EngineError> {
        let _ = span;
        Ok(())
    }

    /// How big keys, values, changes and scans may be.
    fn limits(&self) -> Limits;

    /// Service time: the time of which versions are made. It never goes back and never steps with the wall clock: see
    /// [`crate::service_clock`].
    fn now(&self) -> Ticks;

    /// What the engine is and how it is.
    fn status(&self) -> EngineStatus;
}

/// A consistent view of the map; later commits do not change it. Hold it for a page, not for a
/// client's pace: an engine may end it after some seconds, and reads then fail with
/// [`EngineError::SnapshotEnded`].
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// Every kind of [`EngineError`].
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError>;

    /// The entries of a range, in its direction, until the range or a limit ends. A limit above
    /// [`Limits::scan`] is lowered to it.
    ///
    /// # Errors
    /// Every kind of [`EngineError`].
    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError>;
}

/// How much one scan may return. At least one entry is returned if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimit {
    /// At most this many entries.
    pub rows: usize,
    /// Ends after the entry that takes keys and values to this many bytes or more.
    pub bytes: usize,
}

/// The entries that one scan returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The entries, in the direction of the span.
    pub entries: Vec<Entry>,
    /// Whether the range may hold more entries after these.
    pub more: bool,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
}

impl Entry {
    /// The length of both.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = self.key.len().saturating_add(self.value.len());
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// When a commit returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After its group was synced to stable storage.
    Always,
    /// After it was handed to the operating system; a sync follows at an interval.
    Interval,
    /// After it was handed to the operating system.
    Os,
    /// Never durable: the memory engine.
    None,
}

/// What an engine is and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineStatus {
    /// `fjall`, `memory`, or what a view that is read-only shows.
    pub name: &'static str,
    /// When a commit returns.
    pub durability: Durability,
    /// Why the engine takes no more writes, if it does not.
    pub stopped: Option<Arc<str>>,
    /// Its disk; absent where it has none.
    pub disk: Option<DiskStatus>,
    /// Whether it never accepts a write, see [`crate::ReadOnlyEngine`].
    pub is_read_only: bool,
    /// How far [`Engine::now`] is ahead of the wall clock, in milliseconds; negative where it is behind.
    pub clock_offset_ms: i64,
}

impl EngineStatus {
    /// Whether disk space is short, so that only changes that remove keys are accepted.
    #[must_use]
    pub fn is_space_short(&self) -> bool {
        self.disk.is_some_and(|disk| disk.is_space_short)
    }
}

/// How the disk of an engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskStatus {
    /// Bytes of the store.
    pub storage_bytes: u64,
    /// Bytes free on the disk.
    pub free_bytes: u64,
    /// The reserve of free bytes under which only deletes are accepted.
    pub reserve_bytes: u64,
    /// Whether disk space is short, so that only changes that remove keys are accepted.
    pub is_space_short: bool,
}
