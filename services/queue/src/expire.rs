//! Removing messages that have expired.

use trestle_kv::{ChangeSpec, ReadId, Reads, Version, Writes, transact};
use trestle_model::time::Ticks;

use crate::{
    delivery::{AttemptError, FencedHead, IndexEntry},
    detached::detached,
    groups,
    keys::{self, QueueId},
    message_rows::{MessageChange, write_message},
    messages::MessageOperations,
    queues::FoundQueue,
    slot::Slot,
    stored::MessageState,
};

/// Which slots are empty, and which messages became the first of their groups.
type Removed = (Vec<Slot>, Vec<IndexEntry>);

/// A removal ready to be decided.
struct ExpirePlan {
    id: QueueId,
    now: Ticks,
    head: FencedHead,
    slots: Vec<ExpiredSlot>,
}

/// A slot whose message may have expired.
struct ExpiredSlot {
    slot: Slot,
    state: ReadId,
    next: ReadId,
}

impl MessageOperations {
    /// Removes the messages that have expired; returns which of the slots are empty now.
    ///
    /// # Errors
    /// [`AttemptError::Fenced`], or a failed commit.
    pub(crate) async fn remove_expired(
        &self,
        queue: &FoundQueue,
        slots: Vec<Slot>,
    ) -> Result<Vec<Slot>, AttemptError> {
        detached(self.clone().remove_expired_in(queue.clone(), slots)).await
    }

    async fn remove_expired_in(
        self,
        queue: FoundQueue,
        slots: Vec<Slot>,
    ) -> Result<Vec<Slot>, AttemptError> {
        let id = queue.record.id;
        let scheduler = self.schedulers.open(&queue).await?;
        // The next messages of their groups become visible.
        let (_writing, now) = scheduler.begin_move(0);
        let (mut spec, head) = scheduler.fence(None).begin();
        let slots = slots.into_iter().map(|slot| ExpiredSlot::read(id, slot, &mut spec));
        let plan = ExpirePlan { id, now, head, slots: slots.collect() };
        let decide = move |reads: &Reads<'_>, _: Version| plan.decide(reads);
        let (empty, promoted) = transact(&*self.engine, spec, decide).await??;
        scheduler.change(&empty, &promoted);
        self.checkpoint_if_due(&scheduler);
        Ok(empty)
    }
}

impl ExpiredSlot {
    fn read(id: QueueId, slot: Slot, spec: &mut ChangeSpec) -> Self {
        let state = spec.read(keys::state(id, slot));
        let next = spec.read(keys::next_in_group(id, slot.sequence));
        Self { slot, state, next }
    }
}

impl ExpirePlan {
    /// The writes, which slots are empty now, and which messages became the first of their groups.
    fn decide(&self, reads: &Reads<'_>) -> Result<(Writes, Removed), AttemptError> {
        let head = self.head.check(reads)?;
        let (mut writes, mut removed) = (Writes::new(), 0);
        let (mut empty, mut promoted) = (Vec::new(), Vec::new());
        for ExpiredSlot { slot, state, next } in &self.slots {
            let Some(state) = reads.get(*state) else {
                empty.push(*slot);
                continue;
            };
            let state = MessageState::decode(state)?;
            if !state.is_expired(self.now) {
                continue;
            }
            write_message(self.id, MessageChange::remove(*slot), &mut writes);
            if let Some(group) = state.group {
                let (first, next) = ((slot.sequence, group), reads.get(*next));
                promoted.extend(groups::promote_next(self.id, first, next, self.now, &mut writes)?);
            }
            empty.push(*slot);
            removed += 1;
        }
        if removed > 0 {
            head.with_removed(removed).put(self.id, &mut writes);
        }
        Ok((writes, (empty, promoted)))
    }
}

#[cfg(test)]
mod tests;
