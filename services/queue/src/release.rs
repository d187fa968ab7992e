//! Releasing deliveries that reach no consumer, because it disconnected, or its deadline passed, after its receive was
//! committed. The messages become visible at once, and the receive does not count.

use std::sync::Arc;

use trestle_kv::{ReadId, Reads, Version, Writes, transact};
use trestle_model::time::Ticks;

use crate::{
    delivery::{AttemptError, FencedHead, IndexEntry, Scheduler},
    error::QueueError,
    keys::{self, QueueId},
    message_rows::{MessageChange, write_message},
    messages::{Delivered, MessageOperations},
    receipt::Receipt,
    slot::Slot,
    stored::MessageState,
};

/// Received messages on their way to a consumer.
#[derive(Default)]
pub(crate) struct ReceivedBatch {
    /// The messages.
    pub(crate) delivered: Vec<Delivered>,
    /// Releases them where it is dropped; none without messages.
    pub(crate) handover: Option<DeliveryHandover>,
}

/// The handover of received messages. Dropped before it is completed, by any cancellation, it releases them.
pub(crate) struct DeliveryHandover {
    messages: MessageOperations,
    scheduler: Arc<Scheduler>,
    deliveries: Vec<(Slot, MessageState)>,
}

/// A release ready to be decided.
struct ReleasePlan {
    id: QueueId,
    now: Ticks,
    head: FencedHead,
    deliveries: Vec<(Slot, MessageState, ReadId)>,
    /// The nonces of their new states.
    nonces: Vec<u64>,
}

/// Which slots were left, and which were filled.
type Released = (Vec<Slot>, Vec<IndexEntry>);

impl ReceivedBatch {
    /// The messages that a commit of the owner of the queue made invisible.
    pub(crate) fn new(
        messages: &MessageOperations,
        scheduler: &Arc<Scheduler>,
        delivered: Vec<Delivered>,
    ) -> Self {
        let handover = (!delivered.is_empty()).then(|| DeliveryHandover {
            messages: messages.clone(),
            scheduler: Arc::clone(scheduler),
            deliveries: delivered.iter().map(|message| (message.slot, message.state)).collect(),
        });
        Self { delivered, handover }
    }

    /// The messages, which have reached their consumer.
    #[cfg(test)]
    pub(crate) fn complete(self) -> Vec<Delivered> {
        self.handover.into_iter().for_each(DeliveryHandover::complete);
        self.delivered
    }
}

impl DeliveryHandover {
    /// The messages are sent to their consumer.
    pub(crate) fn complete(mut self) {
        self.deliveries.clear();
    }
}

impl Drop for DeliveryHandover {
    fn drop(&mut self) {
        if self.deliveries.is_empty() {
            return;
        }
        // Without a runtime the process is shutting down: the visibility timeout applies.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (messages, scheduler) = (self.messages.clone(), Arc::clone(&self.scheduler));
            let deliveries = std::mem::take(&mut self.deliveries);
            runtime.spawn(async move { messages.release(&scheduler, deliveries).await });
        }
    }
}

impl MessageOperations {
    /// Makes messages visible whose deliveries were not handed over. On failure their visibility timeout applies.
    async fn release(self, scheduler: &Arc<Scheduler>, deliveries: Vec<(Slot, MessageState)>) {
        match self.release_from(scheduler, deliveries).await {
            Ok(()) => {}
            Err(AttemptError::Fenced(fenced)) => self.drop_outdated(&fenced),
            Err(error) => self.log_failure("undelivered messages cannot be released", &error),
        }
    }

    async fn release_from(
        &self,
        scheduler: &Arc<Scheduler>,
        deliveries: Vec<(Slot, MessageState)>,
    ) -> Result<(), AttemptError> {
        let lowest = deliveries.iter().map(|(slot, _)| slot.sequence).min().unwrap_or_default();
        let (_writing, now) = scheduler.begin_move(lowest);
        let id = scheduler.id();
        let (mut spec, head) = scheduler.fence(None).begin();
        // A state row for another one, as a receive.
        spec.gives_back_space();
        let nonces = deliveries.iter().map(|_| self.new_nonce()).collect();
        let read = |(slot, state)| (slot, state, spec.read(keys::state(id, slot)));
        let deliveries = deliveries.into_iter().map(read).collect();
        let plan = ReleasePlan { id, now, head, deliveries, nonces };
        let decide = move |reads: &Reads<'_>, _: Version| plan.decide(reads);
        let (left, filled) = transact(&*self.engine, spec, decide).await??;
        scheduler.change(&left, &filled);
        Ok(())
    }
}

impl ReleasePlan {
    /// The writes, and the slots that change.
    fn decide(&self, reads: &Reads<'_>) -> Result<(Writes, Released), AttemptError> {
        self.head.check(reads)?;
        let mut writes = Writes::with_capacity(self.deliveries.len() * 2);
        let (mut left, mut filled) = (Vec::new(), Vec::new());
        for ((slot, delivered, stored), nonce) in self.deliveries.iter().zip(&self.nonces) {
            let Some(state) = self.held(*slot, delivered, reads, *stored)? else { continue };
            let state = MessageState {
                // A receipt that reached the consumer after all is invalid from now on.
                generation: state.generation.wrapping_add(1),
                nonce: *nonce,
                dequeue_count: state.dequeue_count.saturating_sub(1),
                ..state
            };
            let to = Slot { visible_at: self.now, ..*slot };
            write_message(self.id, MessageChange::reschedule(*slot, to, &state), &mut writes);
            left.push(*slot);
            filled.push(IndexEntry { slot: to, expires_at: state.expires_at });
        }
        Ok((writes, (left, filled)))
    }

    /// The stored state of a message, if it is still that of the delivery.
    fn held(
        &self,
        slot: Slot,
        delivered: &MessageState,
        reads: &Reads<'_>,
        stored: ReadId,
    ) -> Result<Option<MessageState>, QueueError> {
        let state = MessageState::unexpired(reads.get(stored), self.now)?;
        let receipt = Receipt::of(slot, delivered);
        let is_held =
            |state: &MessageState| state.id == delivered.id && Receipt::of(slot, state) == receipt;
        Ok(state.filter(is_held))
    }
}

#[cfg(test)]
mod tests;
