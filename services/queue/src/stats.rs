//! How a queue is: how much it holds, and since when.

use std::sync::Arc;

use trestle_kv::ScanLimit;
use trestle_service::clock::Ticks;

use crate::{
    delivery::Scheduler,
    error::QueueError,
    keys::{self, QueueId},
    messages::Messages,
    stored::Body,
};

/// How a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stats {
    /// How many messages it holds, hidden and not yet removed ones included.
    pub(crate) messages: u64,
    /// When the oldest of them was sent.
    pub(crate) oldest_inserted_at: Option<Ticks>,
    /// The time of the answer.
    pub(crate) now: Ticks,
}

impl Messages {
    /// How a queue is.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn stats(&self, id: QueueId) -> Result<Stats, QueueError> {
        let scheduler = self.schedulers.open(id).await?;
        let oldest_inserted_at = self.find_oldest(&scheduler).await?;
        let snapshot = self.engine.snapshot().await?;
        let count = snapshot.get(&keys::count(id)).await?;
        let count = count.map(|value| keys::decode_number(&value, "count of a queue"));
        let messages = count.transpose()?.unwrap_or(0);
        Ok(Stats { messages, oldest_inserted_at, now: self.clock.now() })
    }

    /// When the oldest message of a queue was sent. The search goes on where the last one ended, so that it does not
    /// pass what was consumed.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn find_oldest(
        &self,
        scheduler: &Arc<Scheduler>,
    ) -> Result<Option<Ticks>, QueueError> {
        let counter = self.sequences.counter().await?;
        let (lowest, safe) = scheduler.oldest_range(|| counter.peek());
        let snapshot = self.engine.snapshot().await?;
        let limit = ScanLimit { rows: 1, bytes: 1 };
        let scan = snapshot.scan(&keys::bodies_from(scheduler.id(), lowest), limit).await?;
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
