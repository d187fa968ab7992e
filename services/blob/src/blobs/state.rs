//! The states of a blob: itself, its snapshots and its versions.

mod name;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use trestle_kv::Snapshot;
use trestle_model::time::Ticks;

pub(crate) use self::name::StateName;
use super::{BlobKey, decode_record, decode_stored};
use crate::{error::BlobError, keys::BlobRow, record::BlobRecord};

/// A state of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobState {
    /// The blob itself.
    Current,
    /// The past state of this time: a snapshot or a version.
    Past(Ticks),
}

impl BlobState {
    /// The time in its name, if it is a past one.
    pub(crate) fn time(self) -> Option<u64> {
        self.numbers().first().copied()
    }

    /// The numbers that follow the name in the keys of its rows.
    pub(crate) fn numbers(self) -> Vec<u64> {
        match self {
            Self::Current => Vec::new(),
            Self::Past(at) => vec![at.get()],
        }
    }

    /// The key of its record.
    pub(crate) fn row(self, blob: &BlobKey) -> Bytes {
        match self {
            Self::Current => blob.row(BlobRow::Record, &[]),
            Self::Past(at) => blob.row(BlobRow::Past, &[at.get()]),
        }
    }

    /// The record of the state of a blob.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], or a failed read.
    pub(crate) async fn record(
        self,
        snapshot: &dyn Snapshot,
        blob: &BlobKey,
    ) -> Result<BlobRecord, BlobError> {
        let value = snapshot.get(&self.row(blob)).await?;
        decode_record(value.as_ref())?.ok_or_else(|| blob.not_found())
    }

    /// The same, also where it is deleted and can be restored: its content is still there.
    ///
    /// # Errors
    /// As [`BlobState::record`].
    pub(crate) async fn stored(
        self,
        snapshot: &dyn Snapshot,
        blob: &BlobKey,
    ) -> Result<BlobRecord, BlobError> {
        let value = snapshot.get(&self.row(blob)).await?;
        decode_stored(value.as_ref())?.ok_or_else(|| blob.not_found())
    }
}
