//! What the tests need to open engines and to talk to them in few words.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trestle_kv::conformance::{KEYSPACES, covering};
use trestle_kv::{
    Change, CommitError, Engine, Entry, FjallEngine, FjallOptions, ScanLimit, Span, Version, Write,
};

pub(crate) const NO_LIMIT: ScanLimit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };

/// Options for a directory: a quick tick, and no reserve, as test machines are often full.
pub(crate) fn options(path: &Path) -> FjallOptions {
    let defaults = FjallOptions::new(path, KEYSPACES.to_vec());
    FjallOptions {
        cache_bytes: 8 * 1024 * 1024,
        min_free_bytes: 0,
        tick: Duration::from_millis(20),
        ..defaults
    }
}

pub(crate) fn open(path: &Path) -> Arc<FjallEngine> {
    Arc::new(FjallEngine::open(options(path)).unwrap())
}

/// A key of the first keyspace.
pub(crate) fn key(name: impl AsRef<[u8]>) -> Bytes {
    [&[1], name.as_ref()].concat().into()
}

pub(crate) fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Write {
    Write::Put { key: key.into(), value: value.into() }
}

pub(crate) async fn commit(
    engine: &dyn Engine,
    writes: Vec<Write>,
) -> Result<Version, CommitError> {
    let spec = covering(writes.iter().map(Write::key));
    engine.commit(Change::new(spec, move |_, _| writes.clone().into())).await
}

pub(crate) async fn get(engine: &dyn Engine, key: &[u8]) -> Option<Bytes> {
    engine.snapshot().await.unwrap().get(key).await.unwrap()
}

/// Everything of the first keyspace.
pub(crate) async fn everything(engine: &dyn Engine) -> Vec<Entry> {
    let view = engine.snapshot().await.unwrap();
    view.scan(&Span::prefix(&[1]), NO_LIMIT).await.unwrap().entries
}

/// Bytes that do not compress.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
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
