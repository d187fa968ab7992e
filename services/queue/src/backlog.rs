//! The backlog of every queue in the store: how many messages, and the age of the oldest. For metrics, so it opens no
//! queue: that would take it over from another process.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    time::Duration,
};

use trestle_kv::{Entry, ScanLimit, Span, scan_in_steps};
use trestle_model::time::Ticks;

use crate::{
    error::QueueError,
    head::QueueHead,
    keys::{self, QueueId},
    messages::MessageOperations,
    record::QueueRecord,
    slot::Cursor,
    stored::Body,
};

/// Most queues that are examined; the rest is not measured.
const MEASURED_QUEUES_MAX: usize = 100_000;
/// Most queues whose oldest message is looked for: the deepest ones.
const DATED_MAX: usize = 1000;
/// What one step reads at most.
const STEP: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// A queue with messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueBacklog {
    /// Its account.
    pub account: String,
    /// Its name.
    pub queue: String,
    /// How many messages it has, invisible ones included.
    pub messages: u64,
    /// Time since the oldest of them was sent; none where it was not looked for.
    pub oldest_age: Option<Duration>,
    /// Whether it is the dead-letter queue of another queue.
    pub is_dead_letter_queue: bool,
}

impl QueueBacklog {
    fn new(account: String, queue: String, messages: u64) -> Self {
        Self { account, queue, messages, oldest_age: None, is_dead_letter_queue: false }
    }
}

/// The queues of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backlogs {
    /// How many queues exist.
    pub queues: usize,
    /// Those with messages, the deepest first.
    pub with_messages: Vec<QueueBacklog>,
}

impl MessageOperations {
    /// The backlogs of all queues. `each` is called with the account and the name of every queue.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn backlogs(
        &self,
        mut each: impl FnMut(&str, &str) + Send,
    ) -> Result<Backlogs, QueueError> {
        let counts = self.message_counts().await?;
        let (mut queues, mut found, mut dead_letter_queues) = (0, Vec::new(), HashSet::new());
        for entry in self.all(keys::all_queues()).await? {
            queues += 1;
            let QueueRecord { id, settings, .. } = QueueRecord::decode(&entry.value)?;
            let (account, queue) = keys::queue_of(&entry.key)?;
            each(&account, &queue);
            if let Some(policy) = settings.dead_letter {
                dead_letter_queues.insert((account.clone(), policy.queue.as_str().to_owned()));
            }
            if let Some(messages) = counts.get(&id).copied() {
                found.push((id, QueueBacklog::new(account, queue, messages)));
            }
        }
        for (_, backlog) in &mut found {
            let name = (backlog.account.clone(), backlog.queue.clone());
            backlog.is_dead_letter_queue = dead_letter_queues.contains(&name);
        }
        found.sort_by_key(|(_, backlog)| Reverse(backlog.messages));
        let now = self.engine.now();
        for (id, backlog) in found.iter_mut().take(DATED_MAX) {
            let oldest = self.oldest(*id).await?;
            backlog.oldest_age = oldest.map(|oldest| now.since(oldest));
        }
        let with_messages = found.into_iter().map(|(_, backlog)| backlog).collect();
        Ok(Backlogs { queues, with_messages })
    }

    /// The queues that have messages, with their counts.
    async fn message_counts(&self) -> Result<HashMap<QueueId, u64>, QueueError> {
        let heads = self.all(keys::all_heads()).await?;
        let counts = heads.iter().map(|entry| {
            let (id, head) = (keys::head_of(&entry.key)?, QueueHead::decode(&entry.value)?);
            Ok((id, head.count))
        });
        counts.filter(|count| !matches!(count, Ok((_, 0)))).collect()
    }

    /// When the oldest message of a queue was sent. Searches from the cursor on: what is before it was consumed.
    async fn oldest(&self, id: QueueId) -> Result<Option<Ticks>, QueueError> {
        if let Some(scheduler) = self.schedulers.find(id) {
            return self.find_oldest(&scheduler).await;
        }
        let cursor = self.engine.get(&keys::cursor(id)).await?;
        let cursor = cursor.map(|value| Cursor::decode(&value)).transpose()?;
        let span = keys::bodies_from(id, cursor.unwrap_or(Cursor::START).sequence);
        let scan = self.engine.scan(&span, ScanLimit { rows: 1, bytes: 1 }).await?;
        let body = scan.entries.first().map(|entry| Body::decode(&entry.value)).transpose()?;
        Ok(body.map(|body| body.inserted_at))
    }

    async fn all(&self, span: Span) -> Result<Vec<Entry>, QueueError> {
        Ok(scan_in_steps(&*self.engine, span, STEP, MEASURED_QUEUES_MAX).await?)
    }
}

#[cfg(test)]
mod tests;
