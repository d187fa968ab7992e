//! The blobs of containers: reading, writing, changing, leasing, listing and deleting them.

mod change;
mod list;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use trestle_kv::{Engine, Version, Writes};
use trestle_service::clock::Ticks;

pub(crate) use self::{
    change::BlobChange,
    list::{ListBlobs, ListedItem},
    read::{RequestedRange, inline, pieces_of_part},
    write::{NewContent, PutCommand, decide_put, remove_inline},
};
use crate::{
    error::BlobError,
    ids::Ids,
    keys::{self, BlobRow},
    names::BlobName,
    objects::Objects,
    record::{BlobKind, BlobRecord, ContainerId, Retired},
    stored::Stored as _,
    upload::UploadMemory,
};

/// The blobs of every container.
#[derive(Clone)]
pub(crate) struct Blobs {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) objects: Objects,
    pub(crate) ids: Arc<Ids>,
    pub(crate) memory: UploadMemory,
}

/// Names a blob in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobKey {
    /// The container that it is in.
    pub(crate) container: ContainerId,
    /// Its name.
    pub(crate) name: BlobName,
}

impl BlobKey {
    /// Key of a row of the blob, with the numbers that follow its name.
    pub(crate) fn row(&self, row: BlobRow, numbers: &[u64]) -> Bytes {
        keys::blob_row(row, self.container, &self.name, numbers)
    }

    /// The domain of every row of the blob.
    pub(crate) fn domain(&self) -> trestle_kv::Domain {
        keys::blob_domain(self.container, &self.name)
    }

    /// The error of an absent blob.
    pub(crate) fn not_found(&self) -> BlobError {
        BlobError::BlobNotFound(self.name.clone())
    }

    /// Whether a write of content of this kind may replace what the blob has. Staged blocks are those of a block blob.
    ///
    /// # Errors
    /// [`BlobError::OtherKind`].
    pub(crate) fn check_kind(
        &self,
        current: Option<&BlobRecord>,
        kind: BlobKind,
        is_staged: bool,
    ) -> Result<(), BlobError> {
        let current = current.map(|record| record.content.kind());
        let staged = is_staged.then_some(BlobKind::Block);
        match current.or(staged).is_none_or(|current| current == kind) {
            true => Ok(()),
            false => Err(BlobError::OtherKind(self.name.clone())),
        }
    }

    /// Leaves what a change no longer needs to the sweeper, if there is anything.
    pub(crate) fn retire(&self, retired: &Retired, version: Version, writes: &mut Writes) {
        if !retired.is_empty() {
            let key = self.row(BlobRow::Retired, &[version.ticks().get()]);
            writes.put(key, retired.encode());
        }
    }
}

/// A record, if there is one.
///
/// # Errors
/// [`BlobError::Corrupt`].
pub(crate) fn decode_record(value: Option<&Bytes>) -> Result<Option<BlobRecord>, BlobError> {
    value.map(|value| BlobRecord::decode(value)).transpose()
}

impl Blobs {
    /// The time of leases and versions.
    pub(crate) fn now(&self) -> Ticks {
        self.engine.now()
    }
}
