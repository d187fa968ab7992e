//! Updating a message by its receipt: its visibility timeout, and its content if that changes.

use std::time::Duration;

use trestle_kv::{ReadId, Reads, Version, Writes, transact};
use trestle_model::{name::QueueName, time::Ticks};

use crate::{
    authorize::QueueAccess,
    delivery::{AttemptError, FencedHead, IndexEntry},
    detached::detached,
    error::QueueError,
    keys::{self, QueueId},
    message_rows::{BodyChange, MessageChange, write_message},
    messages::MessageOperations,
    queues::FoundQueue,
    receipt::{Claimed, Receipt, valid_state},
    slot::Slot,
    stored::{Body, MessageState, Payload},
};

/// An update of a message, checked.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    /// Which message.
    pub(crate) claimed: Claimed,
    /// Its visibility timeout from now on.
    pub(crate) visibility_timeout: Duration,
    /// Its new content, if that changes.
    pub(crate) payload: Option<Payload>,
}

/// An update ready to be decided.
struct UpdatePlan {
    id: QueueId,
    now: Ticks,
    head: FencedHead,
    state: ReadId,
    body: ReadId,
    /// The nonce of the new state.
    nonce: u64,
    update: Update,
}

impl MessageOperations {
    /// Updates a message; its new receipt.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::MessageNotFound`], [`QueueError::NotOwner`], or a failed commit.
    pub(crate) async fn update(
        &self,
        access: &QueueAccess,
        name: &QueueName,
        update: Update,
    ) -> Result<Receipt, QueueError> {
        self.with_queue(access, name, |queue| {
            detached(self.clone().update_in(queue, update.clone()))
        })
        .await
    }

    async fn update_in(self, queue: FoundQueue, update: Update) -> Result<Receipt, AttemptError> {
        let id = queue.record.id;
        let scheduler = self.schedulers.open(&queue).await?;
        let old = update.claimed.receipt.slot;
        let (_writing, now) = scheduler.begin_move(old.sequence);
        let (mut spec, head) = scheduler.fence(queue.record.version).begin();
        let state = spec.read(keys::state(id, old));
        let body = spec.read(keys::body(id, old.sequence));
        let nonce = self.new_nonce();
        let plan = UpdatePlan { id, now, head, state, body, nonce, update };
        let decide = move |reads: &Reads<'_>, _: Version| plan.decide(reads);
        let (receipt, entry) = transact(&*self.engine, spec, decide).await??;
        scheduler.change(&[old], &[entry]);
        Ok(receipt)
    }
}

impl UpdatePlan {
    /// The writes, the new receipt, and the new entry of the index.
    fn decide(&self, reads: &Reads<'_>) -> Result<(Writes, (Receipt, IndexEntry)), AttemptError> {
        self.head.check(reads)?;
        let claimed = &self.update.claimed;
        let Some(state) = valid_state(claimed, reads.get(self.state), self.now)? else {
            return Err(QueueError::MessageNotFound(claimed.message_id.clone()).into());
        };
        let old = claimed.receipt.slot;
        let slot = Slot { visible_at: self.now.after(self.update.visibility_timeout), ..old };
        let (generation, nonce) = (state.generation.wrapping_add(1), self.nonce);
        let state = MessageState { generation, nonce, ..state };
        let mut change = MessageChange::reschedule(old, slot, &state);
        if let Some(payload) = &self.update.payload {
            let body = reads.get(self.body);
            let body = body.ok_or_else(|| QueueError::corrupt("a message without a body"))?;
            let body = Body { payload: payload.clone(), ..Body::decode(body)? };
            change.body = BodyChange::Put(body.encode());
        }
        let mut writes = Writes::new();
        write_message(self.id, change, &mut writes);
        let entry = IndexEntry { slot, expires_at: state.expires_at };
        Ok((writes, (Receipt::of(slot, &state), entry)))
    }
}

#[cfg(test)]
mod tests;
