//! Moving messages from one queue to another, each in one step: into a dead-letter queue, and back.

use std::collections::HashMap;

use bytes::Bytes;
use trestle_kv::{Write, transact};
use trestle_service::{clock::Ticks, fault::Violations, name::QueueName};

use crate::{
    authorize::Access,
    delivery::IndexEntry,
    detached::detached,
    error::QueueError,
    groups,
    keys::{self, QueueId, Slot},
    messages::{AttemptError, Messages, find, live},
    queues::Queue,
    stored::{Body, MessageState, Origin},
};

/// Most messages of one commit of a redrive.
const STEP_MAX: usize = 64;

/// What to move.
pub(crate) struct Transfer {
    /// Where the messages are.
    pub(crate) from: Queue,
    /// Where they go.
    pub(crate) to: Queue,
    /// Which of them, if they are still there.
    pub(crate) slots: Vec<Slot>,
    /// Whether they go into a dead-letter queue, and are to be told where they come from.
    pub(crate) is_dead_letter: bool,
}

/// A transfer ready to be decided.
struct TransferPlan {
    from: QueueId,
    to: QueueId,
    now: Ticks,
    /// The name that dead letters are given as their origin.
    origin: Option<String>,
    /// The sequence of the first in its new queue.
    first: u64,
    slots: Vec<Slot>,
}

/// What a transfer did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Moved {
    emptied: Vec<Slot>,
    filled: Vec<IndexEntry>,
    /// What came to be first of its group where they were.
    promoted: Vec<IndexEntry>,
}

impl Messages {
    /// Moves messages; which slots are empty now.
    ///
    /// # Errors
    /// [`AttemptError::QueueReplaced`] when either queue is no more, or a failed commit. Nothing is moved then.
    pub(crate) async fn transfer(&self, transfer: Transfer) -> Result<Vec<Slot>, AttemptError> {
        detached(self.clone().carry_out(transfer)).await
    }

    async fn carry_out(self, transfer: Transfer) -> Result<Vec<Slot>, AttemptError> {
        let Transfer { from, to, slots, is_dead_letter } = transfer;
        let source = self.schedulers.open(from.record.id).await?;
        let target = self.schedulers.open(to.record.id).await?;
        let counter = self.sequences.counter().await?;
        // What lies behind them in their groups becomes visible.
        let _writing_there = source.write(|| (0, ()));
        let (_writing, now, first) = target.write(|| {
            let first = counter.take(slots.len());
            (first, first)
        });
        let (from_id, to_id) = (from.record.id, to.record.id);
        let origin = is_dead_letter.then(|| from.name.as_str().to_owned());
        let mut reads = vec![keys::count(from_id), keys::count(to_id)];
        for slot in &slots {
            reads.push(keys::state(from_id, *slot));
            reads.push(keys::body(from_id, slot.sequence));
            reads.push(keys::next_in_group(from_id, slot.sequence));
        }
        let plan = TransferPlan { from: from_id, to: to_id, now, origin, first, slots };
        let moved = transact(&*self.engine, reads, move |current| plan.decide(current)).await??;
        source.change(&moved.emptied, &moved.promoted);
        target.change(&[], &moved.filled);
        Ok(moved.emptied)
    }

    /// Moves up to `max` visible messages of a queue to `destination`, or each back to where it came from; how many.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn redrive(
        &self,
        access: &Access,
        name: &QueueName,
        destination: Option<QueueName>,
        max: usize,
    ) -> Result<usize, QueueError> {
        let from = self.queues.open(access, name).await?;
        let to = match &destination {
            Some(destination) => Some(self.queues.open(access, destination).await?),
            None => None,
        };
        let scheduler = self.schedulers.open(from.record.id).await?;
        let (mut moved, mut after) = (0, None);
        while moved < max {
            let slots = scheduler.look(after, STEP_MAX.min(max - moved)).await?;
            let Some(last) = slots.last() else { break };
            after = Some(*last);
            for (to, slots) in self.destinations(&from, to.as_ref(), slots).await? {
                let (from, is_dead_letter) = (from.clone(), false);
                match self.transfer(Transfer { from, to, slots, is_dead_letter }).await {
                    Ok(emptied) => moved += emptied.len(),
                    // One of the queues went away meanwhile.
                    Err(AttemptError::QueueReplaced) => {}
                    Err(AttemptError::Failed(error)) => return Err(error),
                }
            }
        }
        Ok(moved)
    }

    /// The slots by the queue that their messages go to; those that have nowhere to go are left out.
    async fn destinations(
        &self,
        from: &Queue,
        to: Option<&Queue>,
        slots: Vec<Slot>,
    ) -> Result<Vec<(Queue, Vec<Slot>)>, QueueError> {
        if let Some(to) = to {
            return Ok(vec![(to.clone(), slots)]);
        }
        let now = self.clock.now();
        let snapshot = self.engine.snapshot().await?;
        let mut by_origin: HashMap<String, Vec<Slot>> = HashMap::new();
        for slot in slots {
            let found = find(&*snapshot, from.record.id, slot, now).await?;
            if let Some(origin) = found.and_then(|(_, body)| body.origin) {
                by_origin.entry(origin.queue).or_default().push(slot);
            }
        }
        let mut destinations = Vec::new();
        for (name, slots) in by_origin {
            let name = QueueName::parse(name, "origin", &mut Violations::default());
            let Some(name) = name.filter(|name| *name != from.name) else { continue };
            let to = self.queues.find(&from.account, &name).await?;
            destinations.extend(to.map(|to| (to, slots)));
        }
        Ok(destinations)
    }
}

impl TransferPlan {
    /// What to write and what moved. `current` is both counts, then of each slot the state, the body and what
    /// waits behind it. What is moved leaves its group: it may come back at any time, or never.
    fn decide(&self, current: &[Option<Bytes>]) -> Result<(Vec<Write>, Moved), AttemptError> {
        let [Some(left), Some(held), messages @ ..] = current else {
            return Err(AttemptError::QueueReplaced);
        };
        let left = keys::decode_number(left, "count of a queue")?;
        let held = keys::decode_number(held, "count of a queue")?;
        let mut writes = Vec::with_capacity(messages.len() * 2 + 2);
        let mut moved = Moved::default();
        let rows = self.slots.iter().zip(messages.chunks(3)).zip(self.first..);
        for ((slot, values), sequence) in rows {
            let [state, Some(body), next_in_group] = values else { continue };
            // What cannot be read stays, and must not keep the others.
            let Ok(Some(state)) = live(state.as_ref(), self.now) else { continue };
            let Ok(body) = Body::decode(body) else { continue };
            let origin = self
                .origin
                .as_ref()
                .map(|queue| Origin { queue: queue.clone(), dequeue_count: state.dequeue_count });
            let new_slot = Slot { visible_at: self.now, sequence };
            let new_state = MessageState { generation: 0, dequeue_count: 0, group: None, ..state };
            let new_body = Body { origin, ..body };
            let put = |key, value| Write::Put { key, value };
            writes.push(Write::Delete { key: keys::state(self.from, *slot) });
            writes.push(Write::Delete { key: keys::body(self.from, slot.sequence) });
            if let Some(group) = state.group {
                let (gone, next_in_group) = ((slot.sequence, group), next_in_group.as_ref());
                let next =
                    groups::promote_next(self.from, gone, next_in_group, self.now, &mut writes)?;
                moved.promoted.extend(next);
            }
            writes.push(put(keys::state(self.to, new_slot), new_state.encode()));
            writes.push(put(keys::body(self.to, sequence), new_body.encode()));
            moved.emptied.push(*slot);
            moved.filled.push(IndexEntry { slot: new_slot, expires_at: state.expires_at });
        }
        let count = u64::try_from(moved.emptied.len()).unwrap_or(u64::MAX);
        if count > 0 {
            let counts = [(self.from, left.saturating_sub(count)), (self.to, held + count)];
            writes.extend(counts.map(|(id, count)| Write::Put {
                key: keys::count(id),
                value: keys::encode_number(count),
            }));
        }
        Ok((writes, moved))
    }
}

#[cfg(test)]
mod tests;
