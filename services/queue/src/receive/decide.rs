//! The decision of a receive.

use trestle_kv::{ChangeSpec, ReadId, Reads, Writes};
use trestle_model::time::Ticks;

use crate::{
    delivery::{AttemptError, FencedHead},
    keys::{self, QueueId},
    message_rows::{MessageChange, write_message},
    messages::Delivered,
    slot::Slot,
    stored::{Body, MessageState},
};

/// The content of a claimed slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// A message, which is delivered.
    Delivered(Box<Delivered>),
    /// Nothing: it was deleted, or received by another consumer.
    Nothing,
    /// A message that has expired.
    Expired,
    /// A message that reached the delivery limit of its queue.
    Exhausted,
    /// An unreadable record, which cannot be delivered.
    Unreadable,
}

/// A claimed slot and the rows of its message.
pub(super) struct ClaimedSlot {
    slot: Slot,
    state: ReadId,
    body: ReadId,
}

/// A receive ready to be decided.
pub(super) struct ReceivePlan {
    pub(super) id: QueueId,
    pub(super) now: Ticks,
    pub(super) head: FencedHead,
    /// When the messages are visible again.
    pub(super) visible_at: Ticks,
    /// Deliveries before a message is dead-lettered.
    pub(super) dequeue_count_max: Option<u32>,
    pub(super) slots: Vec<ClaimedSlot>,
    /// The nonces of the new states, one for each slot.
    pub(super) nonces: Vec<u64>,
}

impl ClaimedSlot {
    pub(super) fn read(id: QueueId, slot: Slot, spec: &mut ChangeSpec) -> Self {
        let state = spec.read(keys::state(id, slot));
        let body = spec.read(keys::body(id, slot.sequence));
        Self { slot, state, body }
    }
}

impl ReceivePlan {
    /// The writes, and the content of each slot.
    pub(super) fn decide(&self, reads: &Reads<'_>) -> Result<(Writes, Vec<Found>), AttemptError> {
        self.head.check(reads)?;
        let mut writes = Writes::with_capacity(self.slots.len() * 2);
        let slots = self.slots.iter().zip(&self.nonces);
        let found = slots.map(|slot| self.decide_slot(slot, reads, &mut writes));
        let found = found.collect();
        Ok((writes, found))
    }

    fn decide_slot(
        &self,
        (claimed, nonce): (&ClaimedSlot, &u64),
        reads: &Reads<'_>,
        writes: &mut Writes,
    ) -> Found {
        let (state, body) = match (reads.get(claimed.state), reads.get(claimed.body)) {
            (Some(state), Some(body)) => (state, body),
            (Some(_), None) => return Found::Unreadable,
            (None, _) => return Found::Nothing,
        };
        let Ok((state, body)) =
            MessageState::decode(state).and_then(|state| Ok((state, Body::decode(body)?)))
        else {
            return Found::Unreadable;
        };
        if state.is_expired(self.now) {
            return Found::Expired;
        }
        if self.dequeue_count_max.is_some_and(|max| state.dequeue_count >= max) {
            return Found::Exhausted;
        }
        let state = MessageState {
            generation: state.generation.wrapping_add(1),
            nonce: *nonce,
            dequeue_count: state.dequeue_count.saturating_add(1),
            ..state
        };
        let slot = Slot { visible_at: self.visible_at, sequence: claimed.slot.sequence };
        write_message(self.id, MessageChange::reschedule(claimed.slot, slot, &state), writes);
        Found::Delivered(Box::new(Delivered { slot, state, body }))
    }
}

#[cfg(test)]
mod tests;
