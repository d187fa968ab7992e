//! Checkpoints: the cursor of a queue, stored, so that reading after a restart starts there and does not scan the
//! tombstones of consumed messages.
//!
//! The sweeper stores it every few seconds, and consumers store it whenever they removed many messages. A checkpoint
//! may be old, but never ahead of a message; so it is fenced like every other change of the queue.

use std::sync::Arc;

use trestle_kv::{Writes, transact};

use crate::{
    delivery::{AttemptError, Scheduler},
    keys,
    messages::MessageOperations,
    slot::Cursor,
};

impl MessageOperations {
    /// Stores the cursor of a queue in the background, if many messages were removed since the last checkpoint.
    pub(crate) fn checkpoint_if_due(&self, scheduler: &Arc<Scheduler>) {
        let Some(guard) = scheduler.begin_checkpoint() else { return };
        let (messages, scheduler) = (self.clone(), Arc::clone(scheduler));
        tokio::spawn(async move {
            if let Err(error) = messages.checkpoint(&scheduler).await {
                // The sweeper tries again soon.
                tracing::warn!(%error, "a checkpoint cannot be stored");
            }
            drop(guard);
        });
    }

    /// Stores the cursor of a queue, if a message was removed since the last checkpoint. While disk space is short, it
    /// waits: the store would refuse it, and a restart without it only costs a scan.
    ///
    /// # Errors
    /// [`AttemptError::Fenced`], or a failed read or commit.
    pub(crate) async fn checkpoint(&self, scheduler: &Arc<Scheduler>) -> Result<(), AttemptError> {
        self.find_oldest(scheduler).await?;
        if self.engine.status().is_space_short() {
            return Ok(());
        }
        match scheduler.take_checkpoint() {
            Some(cursor) => self.write_cursor(scheduler, cursor).await,
            None => Ok(()),
        }
    }

    async fn write_cursor(
        &self,
        scheduler: &Scheduler,
        cursor: Cursor,
    ) -> Result<(), AttemptError> {
        let (spec, head) = scheduler.fence(None).begin();
        let key = keys::cursor(scheduler.id());
        transact(&*self.engine, spec, move |reads, _version| {
            head.check(reads)?;
            let mut writes = Writes::new();
            writes.put(key.clone(), cursor.encode());
            Ok::<_, AttemptError>((writes, ()))
        })
        .await?
    }
}

#[cfg(test)]
mod tests;
