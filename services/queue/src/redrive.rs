//! Redrive: moving the messages of a dead-letter queue back, or to a queue of the client's choice.

use std::collections::HashMap;

use trestle_model::{fault::Violations, name::QueueName};

use crate::{
    authorize::QueueAccess,
    delivery::AttemptError,
    error::QueueError,
    messages::{MessageOperations, find},
    queues::FoundQueue,
    slot::Slot,
    transfer::MessageTransfer,
};

/// Most messages of one commit of a redrive.
const STEP_MAX: usize = 64;

impl MessageOperations {
    /// Moves up to `max` visible messages of a queue to `destination`, or each back to its queue of origin; returns
    /// their number.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::NotOwner`], or a failed commit.
    pub(crate) async fn redrive(
        &self,
        access: &QueueAccess,
        name: &QueueName,
        destination: Option<QueueName>,
        max: usize,
    ) -> Result<usize, QueueError> {
        let from = self.queues.open(access, name).await?;
        let to = match &destination {
            Some(destination) => Some(self.queues.open(access, destination).await?),
            None => None,
        };
        let (mut moved, mut after) = (0, None);
        while moved < max {
            let slots = match self.due_in(&from, after, STEP_MAX.min(max - moved)).await {
                Ok(slots) => slots,
                Err(error) => {
                    // A queue that was cleared or deleted has no message left to move.
                    self.may_retry(error, name)?;
                    break;
                }
            };
            let Some(last) = slots.last() else { break };
            after = Some(*last);
            for (to, slots) in self.destinations(&from, to.as_ref(), slots).await? {
                let (from, is_dead_letter) = (from.clone(), false);
                let destination = to.name.clone();
                match self.transfer(MessageTransfer { from, to, slots, is_dead_letter }).await {
                    Ok(emptied) => moved += emptied.len(),
                    // One of the queues was cleared or deleted meanwhile.
                    Err(error) => self.may_retry(error, &destination)?,
                }
            }
        }
        Ok(moved)
    }

    async fn due_in(
        &self,
        queue: &FoundQueue,
        after: Option<Slot>,
        max: usize,
    ) -> Result<Vec<Slot>, AttemptError> {
        self.schedulers.open(queue).await?.look(after, max).await
    }

    /// The slots by the queue that their messages are moved to; those without a destination are left out.
    async fn destinations(
        &self,
        from: &FoundQueue,
        to: Option<&FoundQueue>,
        slots: Vec<Slot>,
    ) -> Result<Vec<(FoundQueue, Vec<Slot>)>, QueueError> {
        if let Some(to) = to {
            return Ok(vec![(to.clone(), slots)]);
        }
        let now = self.engine.now();
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
