//! Rows in few words, for tests that talk to an engine.

use bytes::Bytes;

use super::covering;
use crate::{Change, CommitError, Engine, Entry, ScanLimit, Span, Version, Write};

/// A scan as long as the engine allows.
pub const NO_LIMIT: ScanLimit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };

/// A key of the first keyspace.
#[must_use]
pub fn key(name: impl AsRef<[u8]>) -> Bytes {
    [&[1], name.as_ref()].concat().into()
}

/// A write of a value.
#[must_use]
pub fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Write {
    Write::Put { key: key.into(), value: value.into() }
}

/// Commits writes in the domains of their keys.
///
/// # Errors
/// Every kind of [`CommitError`].
pub async fn commit(engine: &dyn Engine, writes: Vec<Write>) -> Result<Version, CommitError> {
    let spec = covering(writes.iter().map(Write::key));
    engine.commit(Change::new(spec, move |_, _| writes.clone().into())).await
}

/// The newest value of a key.
///
/// # Panics
/// Where the engine cannot be read.
pub async fn get(engine: &dyn Engine, key: &[u8]) -> Option<Bytes> {
    engine
        .snapshot()
        .await
        .expect("the engine can be read")
        .get(key)
        .await
        .expect("the engine can be read")
}

/// Everything of the first keyspace.
///
/// # Panics
/// Where the engine cannot be read.
pub async fn everything(engine: &dyn Engine) -> Vec<Entry> {
    let view = engine.snapshot().await.expect("the engine can be read");
    view.scan(&Span::prefix(&[1]), NO_LIMIT).await.expect("the engine can be read").entries
}

/// Bytes that do not compress.
#[must_use]
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(bytes);
    while out.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out
}
