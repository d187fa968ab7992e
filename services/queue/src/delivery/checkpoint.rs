//! How far a queue has come, noted in the store: whoever opens it after a restart begins there, and does not pass what
//! was consumed before.
//!
//! It is noted by the sweeper every few seconds, and by consumers whenever so many messages went away that passing them
//! would be felt. A note is a hint that may be old; never may it be ahead.

use std::sync::Arc;

use trestle_kv::{Write, transact};

use crate::{
    delivery::Scheduler,
    error::QueueError,
    keys::{self, Cursor, QueueId},
    messages::Messages,
};

impl Messages {
    /// Notes how far a queue has come, in the background, if many messages went away since that was last done.
    pub(crate) fn checkpoint_if_due(&self, scheduler: &Arc<Scheduler>) {
        let Some(noting) = scheduler.begin_checkpoint() else { return };
        let (messages, scheduler) = (self.clone(), Arc::clone(scheduler));
        tokio::spawn(async move {
            if let Err(error) = messages.checkpoint(&scheduler).await {
                // The sweeper tries again soon.
                tracing::warn!(%error, "how far a queue has come cannot be noted");
            }
            drop(noting);
        });
    }

    /// Notes how far a queue has come, if a message went away since that was last done.
    ///
    /// # Errors
    /// A failed read or commit.
    pub(crate) async fn checkpoint(&self, scheduler: &Arc<Scheduler>) -> Result<(), QueueError> {
        self.find_oldest(scheduler).await?;
        match scheduler.take_checkpoint() {
            Some(cursor) => self.write_cursor(scheduler.id(), cursor).await,
            None => Ok(()),
        }
    }

    async fn write_cursor(&self, id: QueueId, cursor: Cursor) -> Result<(), QueueError> {
        // A cursor goes with its queue: none is left for a number that is no more.
        let (count, key) = (keys::count(id), keys::cursor(id));
        transact(&*self.engine, vec![count], move |current| {
            let is_there = matches!(current, [Some(_)]);
            let put = Write::Put { key: key.clone(), value: cursor.encode() };
            Ok::<_, QueueError>((Vec::from_iter(is_there.then_some(put)), ()))
        })
        .await?
    }
}

#[cfg(test)]
mod tests;
