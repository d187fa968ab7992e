//! The disk under a store, for what is written beside the rows of an engine that has one.

use std::sync::Arc;

use async_trait::async_trait;

use crate::CommitError;

/// The disk of a store: files beside its database, such as the contents of blobs, share its reserve of free bytes.
/// It does not keep the store open.
#[async_trait]
pub trait Disk: Send + Sync {
    /// Claims space for a file of `bytes` bytes, before it is written. Waits as long as writes do for a flush, where
    /// the free bytes are at the reserve.
    ///
    /// # Errors
    /// [`CommitError::Full`] where space is short, [`CommitError::Stopped`] where the store is closed.
    async fn claim(&self, bytes: u64) -> Result<SpaceClaim, CommitError>;

    /// The same for a file that replaces more bytes of rows, which are deleted once it is published: it may use a part
    /// of the reserve, so that space is given back where there is little.
    ///
    /// # Errors
    /// As of [`Disk::claim`].
    async fn claim_to_replace_rows(&self, bytes: u64) -> Result<SpaceClaim, CommitError>;
}

/// Bytes of a file that is being written. Dropped once the file is part of the store, or deleted.
pub trait ClaimedSpace: Send + Sync {
    /// The file is written.
    fn written(&mut self);
}

/// The disk of any engine. Clones share it.
pub type DiskSpace = Arc<dyn Disk>;

/// A claim of any engine.
pub type SpaceClaim = Box<dyn ClaimedSpace>;
