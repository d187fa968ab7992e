//! How calls name a state of a blob: by the time of a snapshot, or by the id of a version.

use trestle_kv::{ScanLimit, Snapshot, Span, after_key};
use trestle_model::time::Ticks;

use super::BlobState;
use crate::{
    blobs::{BlobKey, decode_record},
    error::BlobError,
    keys::{self, BlobRow},
    record::BlobRecord,
};

/// Past states that are read at once. Most versions are found in the first row.
const SCAN: ScanLimit = ScanLimit { rows: 32, bytes: 256 * 1024 };

/// How a call names a state of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateName {
    /// The blob itself.
    Current,
    /// A snapshot, by its time.
    Snapshot(Ticks),
    /// A version, by its id.
    Version(Ticks),
}

impl From<BlobState> for StateName {
    fn from(state: BlobState) -> Self {
        match state {
            BlobState::Current => Self::Current,
            BlobState::Past(at) => Self::Snapshot(at),
        }
    }
}

impl StateName {
    /// The state with this name, and its record.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], or a failed read.
    pub(crate) async fn find(
        self,
        snapshot: &dyn Snapshot,
        blob: &BlobKey,
    ) -> Result<(BlobState, BlobRecord), BlobError> {
        let state = match self {
            Self::Current => BlobState::Current,
            Self::Snapshot(at) => BlobState::Past(at),
            Self::Version(id) => return find_version(id, snapshot, blob).await,
        };
        let record = state.record(snapshot, blob).await?;
        match state {
            // The time of a version is not a name of it.
            BlobState::Past(_) if record.version.is_some() => Err(blob.not_found()),
            _ => Ok((state, record)),
        }
    }
}

/// The version with this id. Changes that make no version may have followed the write that made it, so the key of a
/// past one is its last etag.
async fn find_version(
    id: Ticks,
    snapshot: &dyn Snapshot,
    blob: &BlobKey,
) -> Result<(BlobState, BlobRecord), BlobError> {
    let is_version = |record: &BlobRecord| record.version == Some(id);
    let current = decode_record(snapshot.get(&BlobState::Current.row(blob)).await?.as_ref())?;
    if let Some(current) = current.filter(is_version) {
        return Ok((BlobState::Current, current));
    }
    let of_blob = (blob.container, &blob.name);
    let mut span = keys::numbered_rows(BlobRow::Past, of_blob, id.get()..u64::MAX);
    loop {
        let scan = snapshot.scan(&span, SCAN).await?;
        for entry in &scan.entries {
            let Some(record) = decode_record(Some(&entry.value))? else { continue };
            match record.version {
                Some(version) if version == id => {
                    return Ok((BlobState::Past(keys::time_of(&entry.key)?), record));
                }
                // Versions follow each other.
                Some(version) if version > id => return Err(blob.not_found()),
                _ => {}
            }
        }
        match scan.entries.last().filter(|_| scan.more) {
            Some(last) => span = Span::new(after_key(&last.key), span.end),
            None => return Err(blob.not_found()),
        }
    }
}
