//! The blobs of containers: reading, writing, changing, leasing, listing and deleting them.

mod change;
mod copy;
mod delete;
mod list;
mod read;
mod replace;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod undelete;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use trestle_kv::{Engine, ScanLimit, Snapshot, Span, Version, Writes, after_key};
use trestle_model::time::Ticks;

pub(crate) use self::{
    change::BlobChange,
    copy::{CopyCommand, FinishedCopy, OpenedCopy, OpenedUrlCopy, of_source},
    delete::DeleteScope,
    list::{ListBlobs, ListedItem, PastStates},
    read::{FoundBlob, RequestedRange, inline, pieces_of_part},
    replace::{CURRENT as CURRENT_STATE, ReplacedRows},
    state::{BlobState, StateName},
    write::{NewContent, PutCommand, check_reserved, decide_put, remove_inline},
};
use crate::{
    error::BlobError,
    ids::Ids,
    keys::{self, BlobRow},
    names::BlobName,
    objects::Objects,
    read_memory::ReadMemory,
    record::{BlobKind, BlobRecord, ContainerId, Retired},
    stored::Stored as _,
    upload::UploadMemory,
};

/// Rows of deleted states that are read at once.
const RETIRED_SCAN: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };

/// The blobs of every container.
#[derive(Clone)]
pub(crate) struct Blobs {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) objects: Objects,
    pub(crate) ids: Arc<Ids>,
    pub(crate) memory: UploadMemory,
    pub(crate) reads: ReadMemory,
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

    /// The rows of its past states, oldest first.
    pub(crate) fn past(&self) -> Span {
        keys::numbered_rows(BlobRow::Past, (self.container, &self.name), 0..u64::MAX)
    }

    /// Whether the contents of a past state are still there: it exists, or was deleted and is not reclaimed.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn has_past(
        &self,
        snapshot: &dyn Snapshot,
        time: u64,
    ) -> Result<bool, BlobError> {
        if snapshot.get(&self.row(BlobRow::Past, &[time])).await?.is_some() {
            return Ok(true);
        }
        let mut span = Span::prefix(&self.row(BlobRow::SharedRetired, &[]));
        loop {
            let scan = snapshot.scan(&span, RETIRED_SCAN).await?;
            if scan.entries.iter().any(|it| keys::last_number_of(&it.key) == Some(time)) {
                return Ok(true);
            }
            match scan.entries.last().filter(|_| scan.more) {
                Some(last) => span = Span::new(after_key(&last.key), span.end),
                None => return Ok(false),
            }
        }
    }

    /// Leaves what a change no longer needs to the sweeper, if there is anything. Past states may share it.
    pub(crate) fn retire(
        &self,
        retired: &Retired,
        is_shared: bool,
        version: Version,
        writes: &mut Writes,
    ) {
        if is_shared {
            self.retire_shared(retired, None, version, writes);
        } else if !retired.is_empty() {
            let key = self.row(BlobRow::Retired, &[version.ticks().get()]);
            writes.put(key, retired.encode());
        }
    }

    /// Leaves what a past state had to the sweeper, or the blob itself, if there is anything. Other states may share
    /// it.
    pub(crate) fn retire_shared(
        &self,
        retired: &Retired,
        past: Option<Ticks>,
        version: Version,
        writes: &mut Writes,
    ) {
        if !retired.is_empty() {
            let at = version.ticks();
            let numbers = [at.get(), past.unwrap_or(at).get()];
            writes.put(self.row(BlobRow::SharedRetired, &numbers), retired.encode());
        }
    }
}

/// A record, if there is one that is not deleted.
///
/// # Errors
/// [`BlobError::Corrupt`].
pub(crate) fn decode_record(value: Option<&Bytes>) -> Result<Option<BlobRecord>, BlobError> {
    Ok(decode_stored(value)?.filter(|record| record.deletion.is_none()))
}

/// A record, if there is one, also where it is deleted.
///
/// # Errors
/// [`BlobError::Corrupt`].
pub(crate) fn decode_stored(value: Option<&Bytes>) -> Result<Option<BlobRecord>, BlobError> {
    value.map(|value| BlobRecord::decode(value)).transpose()
}

impl Blobs {
    /// The time of leases and versions.
    pub(crate) fn now(&self) -> Ticks {
        self.engine.now()
    }
}
