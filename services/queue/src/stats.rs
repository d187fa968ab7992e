//! Statistics of a queue: how many messages it holds, and the age of the oldest.

use std::sync::Arc;

use trestle_kv::ScanLimit;
use trestle_model::time::Ticks;

use crate::{
    delivery::{AttemptError, Scheduler},
    error::QueueError,
    keys,
    messages::MessageOperations,
    queues::FoundQueue,
    stored::Body,
};

/// Statistics of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueStats {
    /// How many messages it holds, including invisible ones, and expired ones that are not removed yet.
    pub(crate) messages: u64,
    /// When the oldest of them was sent.
    pub(crate) oldest_inserted_at: Option<Ticks>,
    /// The time of the response.
    pub(crate) now: Ticks,
}

impl MessageOperations {
    /// Statistics of a queue.
    ///
    /// # Errors
    /// [`AttemptError::Fenced`], or a failed read.
    pub(crate) async fn stats(&self, queue: &FoundQueue) -> Result<QueueStats, AttemptError> {
        let scheduler = self.schedulers.open(queue).await?;
        let oldest_inserted_at = self.find_oldest(&scheduler).await?;
        let head = self.schedulers.check(scheduler.fence(queue.record.version)).await?;
        Ok(QueueStats { messages: head.count, oldest_inserted_at, now: self.engine.now() })
    }

    /// When the oldest message of a queue was sent. The search continues where the last one ended, so that it does not
    /// scan the tombstones of consumed messages.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn find_oldest(
        &self,
        scheduler: &Arc<Scheduler>,
    ) -> Result<Option<Ticks>, QueueError> {
        let (lowest, safe) = scheduler.oldest_range();
        let limit = ScanLimit { rows: 1, bytes: 1 };
        let bodies = keys::bodies_from(scheduler.id(), lowest);
        let scan = self.engine.scan(&bodies, limit).await?;
        let oldest = match scan.entries.first() {
            None => None,
            Some(entry) => {
                Some((keys::sequence_of(&entry.key)?, Body::decode(&entry.value)?.inserted_at))
            }
        };
        scheduler.raise_lowest_sequence(oldest.map_or(safe, |(sequence, _)| sequence.min(safe)));
        Ok(oldest.map(|(_, inserted_at)| inserted_at))
    }
}
