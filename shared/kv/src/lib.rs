//! The storage seam.

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
    EngineStats, FjallEngine, FjallOptions, Keyspace, OpenError, SpaceProbe, SyncPolicy,
};
pub use crate::memory::MemoryEngine;
pub use crate::span::{Direction, Span, after_key, after_prefix};
