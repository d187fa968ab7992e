//! The row of a message behind another one of its group.
//!
//! ```text
//! version (1) = 1 | sequence u64 | visible ticks u64 | state as stored
//! ```

use bytes::Bytes;

use crate::{error::QueueError, slot::Slot, stored::MessageState, wire::RecordReader};

const VERSION: u8 = 1;

/// A message behind another one of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextInGroup {
    /// Its sequence, and when it becomes visible at the earliest.
    pub(crate) slot: Slot,
    /// Its state.
    pub(crate) state: MessageState,
}

impl NextInGroup {
    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.slot.sequence.to_be_bytes());
        value.extend_from_slice(&self.slot.visible_at.get().to_be_bytes());
        value.extend_from_slice(&self.state.encode());
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let fields = || {
            let mut fields = RecordReader::of(value, VERSION)?;
            let sequence = fields.u64()?;
            let slot = Slot { visible_at: fields.ticks()?, sequence };
            let state = MessageState::decode(fields.rest()).ok()?;
            Some(Self { slot, state })
        };
        fields().ok_or_else(|| QueueError::corrupt("a message behind another one"))
    }
}
