//! The storage seam.

pub mod engine;
mod error;
mod span;

pub use engine::{
    Change, Durability, Engine, EngineStatus, Entry, Scan, ScanLimit, Snapshot, Write, transact,
};
pub use error::{CommitError, EngineError};
pub use span::{Direction, Span, after_key, after_prefix};
