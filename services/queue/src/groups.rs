//! Ordering groups: the messages of a group are delivered one at a time, in the order in which they were sent.
//!
//! Only the first message of a group has a state where consumers find it. Each of the others lies under the sequence of
//! the one before it. So whoever removes a message finds the one behind it with one read, and puts it where it is seen,
//! in the same commit; nobody ever searches. The group has a row with the sequence of its last message, while it has
//! any, so a send finds the end without a search too.
//!
//! ```text
//! next_in_group: version (1) = 1 | sequence u64 | visible ticks u64 | state as stored
//! ```

use bytes::Bytes;
use trestle_kv::Write;
use trestle_service::clock::Ticks;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    delivery::IndexEntry,
    error::QueueError,
    keys::{self, GroupId, QueueId, Slot},
    stored::MessageState,
    wire::RecordReader,
};

const VERSION: u8 = 1;

/// A message that waits behind another one of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextInGroup {
    /// Its sequence, and when it may be received at the earliest.
    pub(crate) slot: Slot,
    /// How it stands.
    pub(crate) state: MessageState,
}

impl GroupId {
    /// The number of a group by its name. Two names that share a number share an order, which does no harm.
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

/// Adds what follows the removal of the first message of a group, which had this `sequence` and `group`: the one behind
/// it, if there is one, becomes visible; else the group is gone. `next_in_group` is what is stored behind it.
///
/// # Errors
/// [`QueueError::Corrupt`].
pub(crate) fn promote_next(
    id: QueueId,
    (sequence, group): (u64, GroupId),
    next_in_group: Option<&Bytes>,
    now: Ticks,
    writes: &mut Vec<Write>,
) -> Result<Option<IndexEntry>, QueueError> {
    let Some(next_in_group) = next_in_group else {
        writes.push(Write::Delete { key: keys::group(id, group) });
        return Ok(None);
    };
    let NextInGroup { slot, state } = NextInGroup::decode(next_in_group)?;
    // Not in the past: nothing may come to lie behind the cursor of the queue.
    let slot = Slot { visible_at: slot.visible_at.max(now), ..slot };
    writes.push(Write::Delete { key: keys::next_in_group(id, sequence) });
    writes.push(Write::Put { key: keys::state(id, slot), value: state.encode() });
    Ok(Some(IndexEntry { slot, expires_at: state.expires_at }))
}

#[cfg(test)]
mod tests;
