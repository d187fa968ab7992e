//! Space on the disk of a store for files that are written beside its database.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use trestle_kv::{ClaimedSpace, CommitError, Disk, SpaceClaim};

use super::delayed::WAITS_MAX;
use super::guard::Room;
use super::shared::EngineState;

/// How often a claim that waits is repeated.
const REPEATS_EVERY: Duration = Duration::from_millis(50);

/// The disk of a store on disk.
pub(super) struct StoreDisk(pub(super) Weak<EngineState>);

/// Bytes of a file beside the database of a store.
struct StoreClaim {
    store: Weak<EngineState>,
    bytes: u64,
    is_written: bool,
}

#[async_trait]
impl Disk for StoreDisk {
    async fn claim(&self, bytes: u64) -> Result<SpaceClaim, CommitError> {
        let since = Instant::now();
        loop {
            let store = self.open_store()?;
            let buffered_bytes = store.buffered_bytes.load(Relaxed);
            match store.space.claim(bytes, buffered_bytes)? {
                Room::Admitted => return Ok(self.claimed(bytes)),
                Room::WaitsForFlush if since.elapsed() >= WAITS_MAX => {
                    return Err(store.space.full(buffered_bytes));
                }
                Room::WaitsForFlush => {}
            }
            drop(store);
            tokio::time::sleep(REPEATS_EVERY).await;
        }
    }

    async fn claim_to_replace_rows(&self, bytes: u64) -> Result<SpaceClaim, CommitError> {
        let store = self.open_store()?;
        if store.space.claim_of_reserve(bytes, store.buffered_bytes.load(Relaxed)) {
            return Ok(self.claimed(bytes));
        }
        drop(store);
        self.claim(bytes).await
    }
}

impl StoreDisk {
    fn claimed(&self, bytes: u64) -> SpaceClaim {
        Box::new(StoreClaim { store: self.0.clone(), bytes, is_written: false })
    }

    fn open_store(&self) -> Result<Arc<EngineState>, CommitError> {
        let store = self.0.upgrade();
        store.ok_or_else(|| CommitError::Stopped { reason: "the store is closed".into() })
    }
}

impl ClaimedSpace for StoreClaim {
    fn written(&mut self) {
        if !std::mem::replace(&mut self.is_written, true)
            && let Some(store) = self.store.upgrade()
        {
            store.space.written(self.bytes);
        }
    }
}

impl Drop for StoreClaim {
    fn drop(&mut self) {
        self.written();
        if let Some(store) = self.store.upgrade() {
            store.space.published(self.bytes);
        }
    }
}
