//! The rows of a message, all of which are written by [`write_message`]: an additional row of a message, for an index
//! or a change feed, is one more write there.

use bytes::Bytes;
use trestle_kv::Writes;

use crate::{
    keys::{self, QueueId},
    next_in_group::NextInGroup,
    slot::Slot,
    stored::MessageState,
};

/// Where the state of a message is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessagePosition {
    /// In its slot, in the order of delivery.
    Scheduled(Slot),
    /// Behind another message of its group; the slot is its earliest one.
    BehindInGroup {
        /// The sequence of the message before it.
        before: u64,
        /// Its earliest slot.
        slot: Slot,
    },
}

/// The change of the body of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyChange {
    /// It remains unchanged.
    Keep,
    /// It is written.
    Put(Bytes),
    /// It is removed.
    Delete,
}

/// A change of one message: from its old position to its new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageChange<'a> {
    /// Its sequence.
    pub(crate) sequence: u64,
    /// The old position of its state; none for a new message.
    pub(crate) from: Option<MessagePosition>,
    /// The new position of its state, and the state; none for a removed message.
    pub(crate) to: Option<(MessagePosition, &'a MessageState)>,
    /// The change of its body.
    pub(crate) body: BodyChange,
}

impl<'a> MessageChange<'a> {
    /// A new message.
    pub(crate) fn insert(position: MessagePosition, state: &'a MessageState, body: Bytes) -> Self {
        let sequence = position.slot().sequence;
        Self { sequence, from: None, to: Some((position, state)), body: BodyChange::Put(body) }
    }

    /// A message that becomes visible at another time.
    pub(crate) fn reschedule(from: Slot, to: Slot, state: &'a MessageState) -> Self {
        let (from, position) =
            (Some(MessagePosition::Scheduled(from)), MessagePosition::Scheduled(to));
        Self { sequence: to.sequence, from, to: Some((position, state)), body: BodyChange::Keep }
    }

    /// A message that is removed from its slot.
    pub(crate) fn remove(slot: Slot) -> Self {
        let from = Some(MessagePosition::Scheduled(slot));
        Self { sequence: slot.sequence, from, to: None, body: BodyChange::Delete }
    }

    /// The next message of a group, after the one with the sequence `before` was removed.
    pub(crate) fn promote(before: u64, slot: Slot, state: &'a MessageState) -> Self {
        let from = Some(MessagePosition::BehindInGroup { before, slot });
        let to = Some((MessagePosition::Scheduled(slot), state));
        Self { sequence: slot.sequence, from, to, body: BodyChange::Keep }
    }
}

impl MessagePosition {
    /// The slot of the message, at the earliest.
    pub(crate) fn slot(self) -> Slot {
        let (Self::Scheduled(slot) | Self::BehindInGroup { slot, .. }) = self;
        slot
    }

    fn key(self, id: QueueId) -> Bytes {
        match self {
            Self::Scheduled(slot) => keys::state(id, slot),
            Self::BehindInGroup { before, .. } => keys::next_in_group(id, before),
        }
    }

    fn value(self, state: &MessageState) -> Bytes {
        match self {
            Self::Scheduled(_) => state.encode(),
            Self::BehindInGroup { slot, .. } => NextInGroup { slot, state: *state }.encode(),
        }
    }
}

/// Writes every row of a message that changes.
pub(crate) fn write_message(id: QueueId, change: MessageChange<'_>, writes: &mut Writes) {
    // The old state first: both may have the same key.
    if let Some(from) = change.from {
        writes.delete(from.key(id));
    }
    if let Some((to, state)) = change.to {
        writes.put(to.key(id), to.value(state));
    }
    match change.body {
        BodyChange::Keep => {}
        BodyChange::Put(body) => {
            writes.put(keys::body(id, change.sequence), body);
        }
        BodyChange::Delete => {
            writes.delete(keys::body(id, change.sequence));
        }
    }
}
