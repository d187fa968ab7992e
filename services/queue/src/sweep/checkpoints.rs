//! Storing the cursors of the queues in use and the time, and closing unused schedulers.

use std::sync::Arc;

use trestle_kv::{ChangeSpec, Writes, transact};

use super::Sweeper;
use crate::{
    delivery::{AttemptError, Scheduler},
    error::QueueError,
    keys,
};

impl Sweeper {
    /// Stores the cursors of the queues in use and the time; closes the schedulers of queues that are not used or not
    /// owned any more.
    pub(super) async fn checkpoint_all(&self) -> Result<bool, QueueError> {
        let messages = &self.messages;
        let schedulers = messages.schedulers.all();
        if !schedulers.is_empty() {
            self.checkpoint_time().await?;
        }
        let mut failed = None;
        for (id, scheduler) in schedulers {
            // An unreadable queue must not block the checkpoints of the others.
            if let Err(error) = self.checkpoint_owned(&scheduler).await {
                failed = failed.or(self.failure(error));
            }
            drop(scheduler);
            messages.schedulers.close_if_idle(id);
        }
        failed.map_or(Ok(false), Err)
    }

    async fn checkpoint_owned(&self, scheduler: &Arc<Scheduler>) -> Result<(), AttemptError> {
        // A consumer that waits here would not receive messages that are sent through another owner.
        self.messages.schedulers.check(scheduler.fence(None)).await?;
        self.messages.checkpoint(scheduler).await
    }

    /// Stores the time, unless a later one is stored.
    async fn checkpoint_time(&self) -> Result<(), QueueError> {
        let (key, now) = (keys::time(), self.messages.clock.now().get());
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        let stored = spec.read(key.clone());
        transact(&*self.messages.engine, spec, move |reads, _version| {
            let stored = reads.get(stored);
            let stored = stored.map(|value| keys::decode_number(value, "checkpointed time"));
            let mut writes = Writes::new();
            if stored.transpose()?.is_none_or(|stored| stored < now) {
                writes.put(key.clone(), keys::encode_number(now));
            }
            Ok::<_, QueueError>((writes, ()))
        })
        .await?
    }
}
