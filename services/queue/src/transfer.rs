//! Moving messages from one queue to another in one commit: to the dead-letter queue, and back.

use trestle_kv::{ChangeSpec, ReadId, Reads, Version, Writes, transact};
use trestle_model::time::Ticks;

use crate::{
    delivery::{AttemptError, FencedHead, IndexEntry},
    detached::detached,
    groups,
    keys::{self, QueueId},
    message_rows::{MessageChange, MessagePosition, write_message},
    messages::MessageOperations,
    queues::FoundQueue,
    slot::Slot,
    stored::{Body, MessageState, Origin},
};

/// The parameters of a transfer.
pub(crate) struct MessageTransfer {
    /// Their queue.
    pub(crate) from: FoundQueue,
    /// The destination.
    pub(crate) to: FoundQueue,
    /// Which of them, if they still exist.
    pub(crate) slots: Vec<Slot>,
    /// Whether they become dead letters, which store their queue of origin.
    pub(crate) is_dead_letter: bool,
}

/// A transfer ready to be decided.
struct TransferPlan {
    from: (QueueId, FencedHead),
    to: (QueueId, FencedHead),
    now: Ticks,
    /// The name that dead letters are given as their origin.
    origin: Option<String>,
    /// The sequence of the first in its new queue.
    first: u64,
    messages: Vec<MovedMessage>,
    /// The nonces of their new states.
    nonces: Vec<u64>,
}

/// A message to move, and its rows.
struct MovedMessage {
    slot: Slot,
    state: ReadId,
    body: ReadId,
    next: ReadId,
}

/// The result of a transfer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Moved {
    emptied: Vec<Slot>,
    filled: Vec<IndexEntry>,
    /// The messages that became the first of their groups in the source queue.
    promoted: Vec<IndexEntry>,
}

impl MessageOperations {
    /// Moves messages; returns which slots are empty now.
    ///
    /// # Errors
    /// [`AttemptError::Fenced`] for either queue, or a failed commit. Nothing is moved then.
    pub(crate) async fn transfer(
        &self,
        transfer: MessageTransfer,
    ) -> Result<Vec<Slot>, AttemptError> {
        detached(self.clone().carry_out(transfer)).await
    }

    async fn carry_out(self, transfer: MessageTransfer) -> Result<Vec<Slot>, AttemptError> {
        let MessageTransfer { from, to, slots, is_dead_letter } = transfer;
        let source = self.schedulers.open(&from).await?;
        let target = self.schedulers.open_target(&to).await?;
        // The next messages of their groups become visible.
        let _moving = source.begin_move(0);
        let (_writing, now, first) = target.begin_insert(slots.len())?;
        let (from_id, to_id) = (source.id(), target.id());
        let origin = is_dead_letter.then(|| from.name.as_str().to_owned());
        let count = slots.len();
        let (mut spec, from_head) = source.fence(None).begin();
        let to_head = target.fence(None).join(&mut spec);
        let messages = slots.into_iter().map(|slot| MovedMessage::read(from_id, slot, &mut spec));
        let messages = messages.collect();
        let nonces = (0..count).map(|_| self.new_nonce()).collect();
        let (from, to) = ((from_id, from_head), (to_id, to_head));
        let plan = TransferPlan { from, to, now, origin, first, messages, nonces };
        let decide = move |reads: &Reads<'_>, _: Version| plan.decide(reads);
        let moved = transact(&*self.engine, spec, decide).await??;
        source.change(&moved.emptied, &moved.promoted);
        target.change(&[], &moved.filled);
        Ok(moved.emptied)
    }
}

impl MovedMessage {
    fn read(id: QueueId, slot: Slot, spec: &mut ChangeSpec) -> Self {
        let state = spec.read(keys::state(id, slot));
        let body = spec.read(keys::body(id, slot.sequence));
        let next = spec.read(keys::next_in_group(id, slot.sequence));
        Self { slot, state, body, next }
    }
}

impl TransferPlan {
    /// The writes, and the moved messages.
    fn decide(&self, reads: &Reads<'_>) -> Result<(Writes, Moved), AttemptError> {
        let ((from, from_head), (to, to_head)) = (&self.from, &self.to);
        let (from_head, to_head) = (from_head.check(reads)?, to_head.check(reads)?);
        let mut writes = Writes::with_capacity(self.messages.len() * 4 + 2);
        let mut moved = Moved::default();
        let targets = (self.first..=u64::MAX).zip(&self.nonces);
        for (message, target) in self.messages.iter().zip(targets) {
            self.move_message(message, target, reads, (&mut writes, &mut moved))?;
        }
        let count = moved.emptied.len();
        if count > 0 {
            from_head.with_removed(count).put(*from, &mut writes);
            to_head.with_added(count).put(*to, &mut writes);
        }
        Ok((writes, moved))
    }

    /// Moves a message, if it exists. It leaves its group: it may be moved back at any time, or never.
    fn move_message(
        &self,
        message: &MovedMessage,
        (sequence, nonce): (u64, &u64),
        reads: &Reads<'_>,
        (writes, moved): (&mut Writes, &mut Moved),
    ) -> Result<(), AttemptError> {
        let ((from, _), (to, _)) = (self.from, self.to);
        let (stored, Some(body)) = (reads.get(message.state), reads.get(message.body)) else {
            return Ok(());
        };
        // An unreadable message remains, and must not block the others.
        let Ok(Some(state)) = MessageState::unexpired(stored, self.now) else { return Ok(()) };
        let Ok(body) = Body::decode(body) else { return Ok(()) };
        let origin = self
            .origin
            .as_ref()
            .map(|queue| Origin { queue: queue.clone(), dequeue_count: state.dequeue_count });
        let slot = Slot { visible_at: self.now, sequence };
        let (generation, nonce, dequeue_count) = (0, *nonce, 0);
        let new_state = MessageState { generation, nonce, dequeue_count, group: None, ..state };
        let new_body = Body { origin, ..body }.encode();
        write_message(from, MessageChange::remove(message.slot), writes);
        if let Some(group) = state.group {
            let (first, next) = ((message.slot.sequence, group), reads.get(message.next));
            moved.promoted.extend(groups::promote_next(from, first, next, self.now, writes)?);
        }
        let insert = MessageChange::insert(MessagePosition::Scheduled(slot), &new_state, new_body);
        write_message(to, insert, writes);
        moved.emptied.push(message.slot);
        moved.filled.push(IndexEntry { slot, expires_at: state.expires_at });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
