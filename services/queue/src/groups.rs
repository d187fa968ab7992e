//! Ordering groups: the messages of a group are delivered one at a time, in the order in which they were sent.
//!
//! Only the first message of a group has a state in the order of delivery. Each of the others is stored under the
//! sequence of the one before it. So the removal of a message finds the next one with one read, and makes it visible in
//! the same commit, without a search. The group has a row with the sequence of its last message, while it has any, so a
//! send finds the end of the group without a search too.

use bytes::Bytes;
use trestle_kv::Writes;
use trestle_model::time::Ticks;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    delivery::IndexEntry,
    error::QueueError,
    keys::{self, GroupId, QueueId},
    message_rows::{MessageChange, write_message},
    next_in_group::NextInGroup,
    slot::Slot,
};

impl GroupId {
    /// The number of a group by its name. Two names with one number share one order, which is harmless.
    pub(crate) fn of(name: &str) -> Self {
        Self(xxh3_64(name.as_bytes()))
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
