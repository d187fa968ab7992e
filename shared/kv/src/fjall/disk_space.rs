//! Space on the disk of a store for files that are written beside its database.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::delayed::WAITS_MAX;
use super::guard::Room;
use super::shared::EngineState;
use crate::CommitError;

/// How often a claim that waits is repeated.
const REPEATS_EVERY: Duration = Duration::from_millis(50);

/// The disk of a store: files beside its database, such as the contents of blobs, share its reserve of free bytes.
/// Clones share it. It does not keep the store open.
#[derive(Clone)]
pub struct DiskSpace(pub(super) Weak<EngineState>);

/// Bytes of a file that is being written. Dropped once the file is part of the store, or deleted.
pub struct SpaceClaim {
    store: Weak<EngineState>,
    bytes: u64,
    is_written: bool,
}

impl DiskSpace {
    /// Claims space for a file of so many bytes, before it is written. Waits as long as writes do for a flush, where
    /// the free bytes are at the reserve.
    ///
    /// # Errors
    /// [`CommitError::Full`] where space is short, [`CommitError::Stopped`] where the store is closed.
    pub async fn claim(&self, bytes: u64) -> Result<SpaceClaim, CommitError> {
        let since = Instant::now();
        loop {
            let store = self.open_store()?;
            let buffered_bytes = store.buffered_bytes.load(Relaxed);
            match store.space.claim(bytes, buffered_bytes)? {
                Room::Admitted => {
                    return Ok(SpaceClaim { store: self.0.clone(), bytes, is_written: false });
                }
                Room::WaitsForFlush if since.elapsed() >= WAITS_MAX => {
                    return Err(store.space.full(buffered_bytes));
                }
                Room::WaitsForFlush => {}
            }
            drop(store);
            tokio::time::sleep(REPEATS_EVERY).await;
        }
    }

    /// The same for a file that replaces more bytes of rows, which are deleted once it is published: it may use a part
    /// of the reserve, so that space is given back where there is little.
    ///
    /// # Errors
    /// As of [`DiskSpace::claim`].
    pub async fn claim_to_replace_rows(&self, bytes: u64) -> Result<SpaceClaim, CommitError> {
        let store = self.open_store()?;
        if store.space.claim_of_reserve(bytes, store.buffered_bytes.load(Relaxed)) {
            return Ok(SpaceClaim { store: self.0.clone(), bytes, is_written: false });
        }
        drop(store);
        self.claim(bytes).await
    }

    fn open_store(&self) -> Result<Arc<EngineState>, CommitError> {
        let store = self.0.upgrade();
        store.ok_or_else(|| CommitError::Stopped { reason: "the store is closed".into() })
    }
}

impl SpaceClaim {
    /// The file is written.
    pub fn written(&mut self) {
        if !std::mem::replace(&mut self.is_written, true)
            && let Some(store) = self.store.upgrade()
        {
            store.space.written(self.bytes);
        }
    }
}

impl Drop for SpaceClaim {
    fn drop(&mut self) {
        self.written();
        if let Some(store) = self.store.upgrade() {
            store.space.published(self.bytes);
        }
    }
}
