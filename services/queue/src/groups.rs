//! Ordering groups: the messages of a group are delivered one at a time, in the order in which they were sent.
//!
//! Only the first message of a group has a state in the order of delivery. Each of the others is stored under the
//! sequence of the one before it. So the removal of a message finds the next one with one read, and makes it visible in
//! the same commit, without a search. The group has a row with the sequence of its last message, while it has any, so a
//! send finds the end of the group without a search too.
//!
//! ```text
//! next in group: version (1) = 1 | sequence u64 | visible ticks u64 | state as stored
//! ```

use bytes::Bytes;
use trestle_kv::Writes;
use trestle_model::time::Ticks;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    delivery::IndexEntry,
    error::QueueError,
    keys::{self, GroupId, QueueId},
    message_rows::{MessageChange, write_message},
    slot::Slot,
    stored::MessageState,
    wire::RecordReader,
};

const VERSION: u8 = 1;

/// A message behind another one of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextInGroup {
    /// Its sequence, and when it becomes visible at the earliest.
    pub(crate) slot: Slot,
    /// Its state.
    pub(crate) state: MessageState,
}

impl GroupId {
    /// The number of a group by its name. Two names with one number share one order, which is harmless.
    pub(crate) fn of(name: &str) -> Self {
        Self(xxh3_64(name.as_bytes()))
    }
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

/// Writes the rows after the removal of the first message of a group, which had this `sequence` and `group`: the next
/// one, stored as `next`, becomes visible; without one, the group is deleted.
///
/// # Errors
/// [`QueueError::Corrupt`].
pub(crate) fn promote_next(
    id: QueueId,
    (sequence, group): (u64, GroupId),
    next: Option<&Bytes>,
    now: Ticks,
    writes: &mut Writes,
) -> Result<Option<IndexEntry>, QueueError> {
    let Some(next) = next else {
        writes.delete(keys::group(id, group));
        return Ok(None);
    };
    let NextInGroup { slot, state } = NextInGroup::decode(next)?;
    // Not in the past: no message may be written before the cursor of the queue.
    let slot = Slot { visible_at: slot.visible_at.max(now), ..slot };
    write_message(id, MessageChange::promote(sequence, slot, &state), writes);
    Ok(Some(IndexEntry { slot, expires_at: state.expires_at }))
}

#[cfg(test)]
mod tests;
