//! Storing the cursors of the queues in use, and closing unused schedulers.

use std::sync::Arc;

use super::Sweeper;
use crate::{
    delivery::{AttemptError, Scheduler},
    error::QueueError,
};

impl Sweeper {
    /// Stores the cursors of the queues in use; closes the schedulers of queues that are not used or not owned any
    /// more.
    pub(super) async fn checkpoint_all(&self) -> Result<bool, QueueError> {
        let messages = &self.messages;
        let mut failed = None;
        for (id, scheduler) in messages.schedulers.all() {
            // An unreadable queue must not block the checkpoints of the others.
            if let Err(error) = self.checkpoint_owned(&scheduler).await {
                failed = failed.or(self.messages.failure(error));
            }
            drop(scheduler);
            messages.schedulers.close_if_idle(id);
        }
        failed.map_or(Ok(false), Err)
    }

    async fn checkpoint_owned(&self, scheduler: &Arc<Scheduler>) -> Result<(), AttemptError> {
        // A consumer that waits in this process would not receive messages that are sent through another owner.
        self.messages.schedulers.check(scheduler.fence(None)).await?;
        self.messages.checkpoint(scheduler).await
    }
}
