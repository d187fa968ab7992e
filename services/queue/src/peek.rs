//! Peeking at messages, without receiving them.

use trestle_model::name::QueueName;

use crate::{
    authorize::QueueAccess,
    delivery::AttemptError,
    error::QueueError,
    keys,
    messages::{MessageOperations, find},
    queues::FoundQueue,
    stored::{Body, MessageState},
};

/// Most slots that one peek examines, whatever they contain.
const PEEKED_MAX: usize = 10_000;

impl MessageOperations {
    /// Messages that are visible, without receiving them.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::NotOwner`], or a failed read.
    pub(crate) async fn peek(
        &self,
        access: &QueueAccess,
        name: &QueueName,
        max: usize,
    ) -> Result<Vec<(MessageState, Body)>, QueueError> {
        self.with_queue(access, name, |queue| self.peek_in(queue, max)).await
    }

    async fn peek_in(
        &self,
        queue: FoundQueue,
        max: usize,
    ) -> Result<Vec<(MessageState, Body)>, AttemptError> {
        let id = queue.record.id;
        let scheduler = self.schedulers.open(&queue).await?;
        let (mut messages, mut after, mut looked_at) = (Vec::new(), None, 0);
        while messages.len() < max && looked_at < PEEKED_MAX {
            let slots = scheduler.look(after, max - messages.len()).await?;
            looked_at += slots.len();
            let snapshot = self.engine.snapshot().await?;
            // The index is complete only for the owner.
            let head = snapshot.get(&keys::head(id)).await?;
            scheduler.fence(queue.record.version).check(head.as_deref())?;
            let Some(last) = slots.last() else { break };
            after = Some(*last);
            let now = self.engine.now();
            for slot in slots {
                messages.extend(find(&*snapshot, id, slot, now).await?);
            }
        }
        Ok(messages)
    }
}
