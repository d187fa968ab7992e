//! The seam: what a service asks of storage. See the crate page for the contract in prose.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::{CommitError, EngineError, Span};

/// An ordered, transactional, durable map from bytes to bytes.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// A consistent view of everything committed so far.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`].
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError>;

    /// Reads the keys of the change, lets it decide, and writes what it decided, all in one step:
    /// no other commit comes between. Returns once the writes are durable, as the engine is
    /// configured. A change that decides to write nothing succeeds without a sync. `decide` may
    /// run more than once; the last run counts.
    ///
    /// # Errors
    /// Every kind of [`CommitError`]. A caller that drops the future does not undo the commit.
    async fn commit(&self, change: Change) -> Result<(), CommitError>;

    /// What the engine is and how it is.
    fn status(&self) -> EngineStatus;
}

/// A consistent view of the map; later commits do not change it. Hold it for a page, not for a
/// client's pace.
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// Every kind of [`EngineError`].
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError>;

    /// The entries of a range, in its direction, until the range or a limit ends.
    ///
    /// # Errors
    /// Every kind of [`EngineError`].
    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError>;
}

/// Decides what to write from the newest values of the keys that a change reads.
pub type Decide = Box<dyn FnMut(&[Option<Bytes>]) -> Vec<Write> + Send>;

/// An atomic change: the keys it depends on, and the decision what to write.
pub struct Change {
    /// The keys whose values `decide` is given, in this order.
    pub reads: Vec<Bytes>,
    /// From the newest values of `reads` to the writes. Must be pure, fast and free of I/O: an
    /// engine may run it on its one commit thread, or again after a conflict. No writes means that
    /// nothing is committed.
    pub decide: Decide,
}

/// One write of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sets a key.
    Put {
        /// The key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
    },
    /// Removes a key; one that is not there is no error.
    Delete {
        /// The key.
        key: Bytes,
    },
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
    /// `fjall` or `memory`.
    pub name: &'static str,
    /// When a commit returns.
    pub durability: Durability,
    /// Why the engine takes no more writes, if it does not.
    pub stopped: Option<Arc<str>>,
    /// Bytes on disk; 0 in memory.
    pub storage_bytes: u64,
    /// Bytes free on the disk; absent in memory.
    pub free_bytes: Option<u64>,
}

/// Commits a typed decision: what `decide` returned last is what the caller gets, once it is
/// durable.
///
/// An `Err` of `decide` writes nothing and comes back as `Ok(Err(_))`.
///
/// # Errors
/// Every kind of [`CommitError`].
pub async fn transact<T, E>(
    engine: &dyn Engine,
    reads: Vec<Bytes>,
    mut decide: impl FnMut(&[Option<Bytes>]) -> Result<(Vec<Write>, T), E> + Send + 'static,
) -> Result<Result<T, E>, CommitError>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let slot = Arc::new(Mutex::new(None));
    let decided = Arc::clone(&slot);
    let decide = move |current: &[Option<Bytes>]| {
        let (writes, outcome) = match decide(current) {
            Ok((writes, value)) => (writes, Ok(value)),
            Err(error) => (Vec::new(), Err(error)),
        };
        *decided.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        writes
    };
    engine.commit(Change { reads, decide: Box::new(decide) }).await?;
    let outcome = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    outcome
        .ok_or_else(|| CommitError::Refused { reason: "the engine never ran the decision".into() })
}
