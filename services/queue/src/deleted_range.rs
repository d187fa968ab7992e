//! Rows of a deleted or cleared queue that the sweeper removes.

use bytes::Bytes;
use trestle_model::time::Ticks;

use crate::{error::QueueError, wire::RecordReader};

const VERSION: u8 = 1;

/// A kind of rows of a deleted queue; the sweeper removes each on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueuePart {
    /// The states of its messages.
    States = 0,
    /// Their bodies.
    Bodies = 1,
    /// The messages behind others of their groups.
    NextInGroups = 2,
    /// The groups.
    Groups = 3,
}

impl QueuePart {
    /// Every part.
    pub(crate) const ALL: [Self; 4] =
        [Self::States, Self::Bodies, Self::NextInGroups, Self::Groups];
}

/// A part of a deleted queue that is being removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeletedRange {
    /// When the queue was deleted or cleared.
    pub(crate) deleted_at: Ticks,
    /// First key not swept yet.
    pub(crate) resume: Bytes,
}

impl DeletedRange {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.deleted_at.get().to_be_bytes());
        value.extend_from_slice(&self.resume);
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let fields = || {
            let mut fields = RecordReader::of(value, VERSION)?;
            let deleted_at = fields.ticks()?;
            Some(Self { deleted_at, resume: Bytes::copy_from_slice(fields.rest()) })
        };
        fields().ok_or_else(|| QueueError::corrupt("range of a deleted queue"))
    }
}
