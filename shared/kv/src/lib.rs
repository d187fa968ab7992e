//! Storage behind one small seam: an ordered, transactional, durable map from bytes to bytes.
//!
//! A service asks for three things only: a consistent view ([`Engine::snapshot`]), an ordered
//! page of it ([`Snapshot::scan`]), and an atomic change that depends on what is there
//! ([`Engine::commit`]). [`FjallEngine`] keeps the map on disk, [`MemoryEngine`] in memory.
//! The module [`conformance`](#testing) states the contract as functions; an engine is accepted
//! when all of them pass.
//!
//! # The contract
//!
//! **Order.** Keys compare as bytes. The first byte of a key is its *kind*; a [`Span`] stays
//! within the kinds of one [`Keyspace`]. [`order`] makes bytes that compare like the texts and
//! numbers they stand for.
//!
//! **Atomicity.** A [`Change`] is written whole or not at all, whatever kinds its keys are of, and
//! also when the process or the machine dies in the middle. Its writes apply in order.
//!
//! **Isolation.** Commits have one order. A decision is given the newest values of its reads, and
//! no other commit comes between them and its writes: a condition that is checked in the decision
//! holds when the change is written. A snapshot shows every commit that was answered before it
//! was taken, no part of any other but whole, and never changes.
//!
//! **Durability.** `commit` returns when the change is as durable as the engine is configured
//! ([`Durability`]); by default, on stable storage. What a decision saw of other changes is as
//! durable as its own answer.
//!
//! **Failure.** [`CommitError::Unknown`] means that the change may be there after a restart. Every
//! other error means that nothing of it was written. After a failed write or sync an engine takes
//! no more changes and goes on reading. A caller that drops the future of `commit` does not undo
//! the change.
//!
//! **Limits.** [`limits`] bounds keys, values and changes; [`ScanLimit`] bounds every scan; the
//! queue of an engine is bounded and turns changes away when it is full. A snapshot is held for a
//! page, not at the pace of a client: old versions stay on disk as long as it lives.
//!
//! It is not a place for rules of a data model, nor for time: an engine knows neither tables nor
//! clocks, and expires nothing.
//!
//! # Decisions
//!
//! The decision of a change is a pure and fast function: an engine runs it on its one commit
//! thread, where everybody else waits for it, or runs it again after a conflict. Values it writes
//! should own their bytes: a [`bytes::Bytes`] that is a slice of a large buffer keeps all of it
//! in memory until the row is flushed.
//!
//! ```
//! use trestle_kv::{Engine, MemoryEngine, Span, ScanLimit, Write, transact};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = MemoryEngine::new();
//! let key: bytes::Bytes = vec![1, b'a'].into();
//!
//! // Inserts the key if it is absent, and tells whether it did.
//! for expected in [Ok("inserted"), Err("exists")] {
//!     let target = key.clone();
//!     let inserted = transact(&engine, vec![key.clone()], move |current| match current {
//!         [None] => {
//!             let put = Write::Put { key: target.clone(), value: "value".into() };
//!             Ok((vec![put], "inserted"))
//!         }
//!         _ => Err("exists"),
//!     });
//!     assert_eq!(inserted.await?, expected);
//! }
//!
//! let view = engine.snapshot().await?;
//! let limit = ScanLimit { rows: 100, bytes: 1024 * 1024 };
//! let page = view.scan(&Span::prefix(&[1]), limit).await?;
//! assert_eq!(page.entries.len(), 1);
//! assert!(!page.more);
//! # Ok(())
//! # }
//! ```
//!
//! # Testing
//!
//! With the feature `testing`, `conformance` holds the contract as functions over any engine, and
//! `faulty` wraps an engine to fail on purpose, by a seed.

#[cfg(feature = "testing")]
pub mod conformance;
mod decide;
pub mod engine;
mod error;
#[cfg(feature = "testing")]
pub mod faulty;
pub mod fjall;
pub mod limits;
mod memory;
pub mod order;
mod span;

pub use crate::engine::{
    Change, Durability, Engine, EngineStatus, Entry, Scan, ScanLimit, Snapshot, Write, transact,
};
pub use crate::error::{CommitError, EngineError};
pub use crate::fjall::{
    EngineStats, FjallEngine, FjallOptions, GroupObserver, GroupWrite, Keyspace, OpenError,
    SpaceProbe, SyncObserver, SyncPolicy,
};
pub use crate::memory::MemoryEngine;
pub use crate::span::{Direction, Span, after_key, after_prefix};
