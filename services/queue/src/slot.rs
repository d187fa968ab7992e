//! The order of delivery: slots, and the cursor before which a queue has no message.

use bytes::Bytes;
use trestle_model::time::Ticks;

use crate::{error::QueueError, wire::RecordReader};

/// Version byte of a stored cursor.
const VERSION: u8 = 1;

const FIRST_TICK: Ticks = match Ticks::new(0) {
    Some(ticks) => ticks,
    None => Ticks::MAX,
};

/// The position of a message in the order of delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot {
    /// When the message becomes visible.
    pub(crate) visible_at: Ticks,
    /// Its sequence number; later messages of a queue have higher ones.
    pub(crate) sequence: u64,
}

/// The lowest slot and the lowest sequence that a message of a queue can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The lowest slot.
    pub(crate) slot: Slot,
    /// The lowest sequence.
    pub(crate) sequence: u64,
}

impl Slot {
    /// Before every message.
    pub(crate) const FIRST: Self = Self { visible_at: FIRST_TICK, sequence: 0 };

    /// The next slot.
    pub(crate) fn next(self) -> Self {
        Self { sequence: self.sequence.saturating_add(1), ..self }
    }
}

impl Cursor {
    /// Before every message.
    pub(crate) const START: Self = Self { slot: Slot::FIRST, sequence: 0 };

    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut value = vec![VERSION];
        for number in [self.slot.visible_at.get(), self.slot.sequence, self.sequence] {
            value.extend_from_slice(&number.to_be_bytes());
        }
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, QueueError> {
        let fields = || {
            let mut fields = RecordReader::of(value, VERSION)?;
            let slot = Slot { visible_at: fields.ticks()?, sequence: fields.u64()? };
            let sequence = fields.u64()?;
            fields.end(Self { slot, sequence })
        };
        fields().ok_or_else(|| QueueError::corrupt("cursor of a queue"))
    }
}
