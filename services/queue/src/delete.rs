//! Deleting messages by their receipts.

use std::sync::Arc;

use foldhash::{HashSet, HashSetExt as _};
use trestle_kv::{ChangeSpec, ReadId, Reads, Version, Writes, transact};
use trestle_model::{name::QueueName, time::Ticks};

use crate::{
    authorize::QueueAccess,
    delivery::{AttemptError, FencedHead, IndexEntry},
    detached::detached,
    error::QueueError,
    groups,
    keys::{self, QueueId},
    message_rows::{MessageChange, write_message},
    messages::MessageOperations,
    queues::FoundQueue,
    receipt::{Claimed, valid_state},
};

/// Which messages were deleted, and which became the first of their groups.
type Deleted = (Vec<bool>, Vec<IndexEntry>);

/// A delete ready to be decided.
struct DeletePlan {
    id: QueueId,
    now: Ticks,
    head: FencedHead,
    messages: Vec<DeletedMessage>,
}

/// A message to delete.
struct DeletedMessage {
    claimed: Claimed,
    state: ReadId,
    /// The next one of its group, if the receipt names a group.
    next: Option<ReadId>,
}

impl MessageOperations {
    /// Deletes messages; returns for each whether it existed and its receipt was valid.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::NotOwner`], or a failed commit.
    pub(crate) async fn delete(
        &self,
        access: &QueueAccess,
        name: &QueueName,
        claimed: Vec<Claimed>,
    ) -> Result<Vec<bool>, QueueError> {
        let claimed = Arc::new(claimed);
        self.with_queue(access, name, |queue| {
            detached(self.clone().delete_from(queue, Arc::clone(&claimed)))
        })
        .await
    }

    async fn delete_from(
        self,
        queue: FoundQueue,
        claimed: Arc<Vec<Claimed>>,
    ) -> Result<Vec<bool>, AttemptError> {
        let id = queue.record.id;
        let scheduler = self.schedulers.open(&queue).await?;
        let is_in_group = claimed.iter().any(|claimed| claimed.receipt.is_in_group);
        // The next messages of their groups become visible, which is a write that the cursor must not pass.
        let writing = is_in_group.then(|| scheduler.begin_move(0));
        let now = writing.as_ref().map_or_else(|| self.engine.now(), |(_, now)| *now);
        let (mut spec, head) = scheduler.fence(queue.record.version).begin();
        let messages = claimed.iter().map(|claimed| DeletedMessage::read(id, claimed, &mut spec));
        let plan = DeletePlan { id, now, head, messages: messages.collect() };
        let decide = move |reads: &Reads<'_>, _: Version| plan.decide(reads);
        let (deleted, promoted) = transact(&*self.engine, spec, decide).await??;
        let removed = claimed.iter().zip(&deleted).filter(|(_, deleted)| **deleted);
        let slots: Vec<_> = removed.map(|(claimed, _)| claimed.receipt.slot).collect();
        scheduler.change(&slots, &promoted);
        self.checkpoint_if_due(&scheduler);
        Ok(deleted)
    }
}

impl DeletedMessage {
    fn read(id: QueueId, claimed: &Claimed, spec: &mut ChangeSpec) -> Self {
        let receipt = &claimed.receipt;
        let state = spec.read(keys::state(id, receipt.slot));
        let next =
            receipt.is_in_group.then(|| spec.read(keys::next_in_group(id, receipt.slot.sequence)));
        Self { claimed: claimed.clone(), state, next }
    }
}

impl DeletePlan {
    /// The writes, which messages are deleted, and which became the first of their groups.
    fn decide(&self, reads: &Reads<'_>) -> Result<(Writes, Deleted), AttemptError> {
        let head = self.head.check(reads)?;
        let mut writes = Writes::with_capacity(self.messages.len() * 2 + 1);
        let (mut seen, mut promoted) = (HashSet::new(), Vec::new());
        let mut deleted = Vec::with_capacity(self.messages.len());
        for message in &self.messages {
            let slot = message.claimed.receipt.slot;
            // The second of two equal receipts finds nothing, as it would in a call of its own.
            let state = valid_state(&message.claimed, reads.get(message.state), self.now)?
                .filter(|_| seen.insert(slot));
            deleted.push(state.is_some());
            let Some(state) = state else { continue };
            write_message(self.id, MessageChange::remove(slot), &mut writes);
            if let Some(group) = state.group {
                let next = message.next.and_then(|next| reads.get(next));
                let removed = (slot.sequence, group);
                let next = groups::promote_next(self.id, removed, next, self.now, &mut writes)?;
                promoted.extend(next);
            }
        }
        if !seen.is_empty() {
            head.with_removed(seen.len()).put(self.id, &mut writes);
        }
        Ok((writes, (deleted, promoted)))
    }
}

#[cfg(test)]
mod tests;
