//! Letting consumers go that wait for messages of a queue which another process owns, or should own: they wait there.

use std::sync::Arc;

use futures::{StreamExt as _, stream};

use crate::{delivery::Scheduler, error::QueueError, messages::MessageOperations};

/// Most heads that are read at a time.
const READS_MAX: usize = 16;

impl MessageOperations {
    /// Closes the schedulers of queues that are placed in another process, and of those with waiting consumers that
    /// another process took over: it had messages to move to them.
    ///
    /// # Errors
    /// A failed read. The other schedulers were looked at all the same.
    pub(crate) async fn follow_owners(&self) -> Result<(), QueueError> {
        self.schedulers.close_placed_elsewhere();
        let open = self.schedulers.all().into_iter().map(|(_, scheduler)| scheduler);
        let waited_for = open.filter(|scheduler| scheduler.waiting() > 0);
        let checks = waited_for.map(|scheduler| self.follow_owner(scheduler));
        let checked: Vec<_> = stream::iter(checks).buffer_unordered(READS_MAX).collect().await;
        checked.into_iter().collect()
    }

    async fn follow_owner(&self, scheduler: Arc<Scheduler>) -> Result<(), QueueError> {
        let failed = self.schedulers.check(scheduler.fence(None)).await.err();
        failed.and_then(|error| self.failure(error)).map_or(Ok(()), Err)
    }
}
