//! Removing messages that have expired.

use std::sync::Arc;

use trestle_kv::{CommitError, Entry, Scan, ScanLimit, Span, after_key};
use trestle_model::fault::Violations;
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::Ticks;

use super::{STEP, Sweeper};
use crate::{
    delivery::{AttemptError, BUCKET_MESSAGES, SharedExpiryBuckets},
    error::QueueError,
    keys::{self, QueueId},
    queues::FoundQueue,
    record::QueueRecord,
    slot::{Cursor, Slot},
    stored::MessageState,
};

/// Most queues examined in one tick.
const QUEUES_MAX: usize = 10_000;
/// Messages examined at once for their expiration.
const EXAMINE: ScanLimit = ScanLimit { rows: 8 * BUCKET_MESSAGES, bytes: 1024 * 1024 };
/// Messages of one queue examined in one tick.
const EXAMINED_MAX: usize = 100_000;

impl Sweeper {
    /// Removes messages that have expired, of the next queues of the listing.
    pub(super) async fn sweep_expired(&self) -> Result<bool, QueueError> {
        let mut span = keys::all_queues();
        span.start = span.start.max(self.with(|state| state.listed_to.clone()));
        let limit = ScanLimit { rows: QUEUES_MAX, bytes: 16 * 1024 * 1024 };
        let scan = self.messages.engine.scan(&span, limit).await?;
        let mut failed = None;
        for entry in &scan.entries {
            let examined = match queue(entry) {
                Ok(queue) => self.examine(&queue).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = examined {
                failed = failed.or(self.messages.failure(error));
            }
        }
        let last = scan.entries.last().filter(|_| scan.more);
        let listed_to = last.map(|last| after_key(&last.key).into()).unwrap_or_default();
        self.with(|state| state.listed_to = listed_to);
        failed.map_or(Ok(false), Err)
    }

    /// Removes messages that have expired, of the queues that this process owns, without a listing: the next message of
    /// a group waits for it.
    ///
    /// # Errors
    /// The first error; the next call retries.
    pub(crate) async fn expire(&self) -> Result<(), QueueError> {
        let mut failed = None;
        for queue in self.messages.schedulers.expired(self.messages.engine.now()) {
            if let Err(error) = self.examine(&queue).await {
                failed = failed.or(self.messages.failure(error));
            }
        }
        match failed {
            // As in a tick.
            None | Some(QueueError::Commit(CommitError::Full { .. })) => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Scans the expiry buckets of a queue that may contain expired messages, if this process may own the queue.
    async fn examine(&self, queue: &FoundQueue) -> Result<(), AttemptError> {
        // Before anything is retained for it.
        if !self.messages.schedulers.may_own(queue) {
            return Ok(());
        }
        let id = queue.record.id;
        let buckets = self.messages.schedulers.expiry_buckets(id);
        let now = self.messages.engine.now();
        if !buckets.with(|buckets| buckets.is_due(now)) {
            return Ok(());
        }
        // A bucket belongs to one scan, from its beginning to its end.
        let _examining = self.examining.lock().await;
        let begin = self.first_slot(id).await?;
        let due = buckets.with(|buckets| {
            buckets.begin_at(begin);
            buckets.due(now)
        });
        let mut examined = 0;
        for (first, end) in due {
            if examined >= EXAMINED_MAX {
                break;
            }
            let (buckets, from) = (&*buckets, first.max(begin));
            let scan = BucketScan { id, buckets, first, from, end, is_over: false };
            examined += self.scan_bucket(queue, scan, now, EXAMINED_MAX - examined).await?;
        }
        Ok(())
    }

    /// Scans a bucket, about `max` messages of it; returns how many it read.
    async fn scan_bucket(
        &self,
        queue: &FoundQueue,
        mut bucket: BucketScan<'_>,
        now: Ticks,
        max: usize,
    ) -> Result<usize, AttemptError> {
        bucket.buckets.with(|buckets| buckets.begin_scan(bucket.first));
        let mut examined = 0;
        while examined < max {
            let scan = self.scan(&bucket.span()).await?;
            examined += scan.entries.len();
            let mut parts = scan.entries.chunks(BUCKET_MESSAGES).peekable();
            while let Some(part) = parts.next() {
                let earliest = self.remove(queue, part, now).await?;
                let is_last = parts.peek().is_none() && !scan.more;
                if let Some(last) = part.last().filter(|_| !is_last) {
                    bucket.cut(keys::slot_of(&last.key)?.next(), earliest);
                } else {
                    bucket.buckets.with(|buckets| buckets.end_scan(bucket.first, earliest));
                }
            }
            if scan.entries.is_empty() {
                bucket.buckets.with(|buckets| buckets.join(bucket.first));
            }
            if !scan.more {
                bucket.is_over = true;
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(examined)
    }

    async fn scan(&self, span: &Span) -> Result<Scan, QueueError> {
        Ok(self.messages.engine.scan(span, EXAMINE).await?)
    }

    /// Removes expired messages; returns when the next of the others expires, [`Ticks::MAX`] if never.
    async fn remove(
        &self,
        queue: &FoundQueue,
        entries: &[Entry],
        now: Ticks,
    ) -> Result<Ticks, AttemptError> {
        let Examined { expired, next, unreadable } = sort_out(entries, now)?;
        if unreadable > 0 {
            tracing::error!(unreadable, "messages cannot be read");
        }
        for part in expired.chunks(STEP.rows) {
            self.messages.remove_expired(queue, part.to_vec()).await?;
        }
        Ok(next.unwrap_or(Ticks::MAX))
    }

    async fn first_slot(&self, id: QueueId) -> Result<Slot, QueueError> {
        if let Some(scheduler) = self.messages.schedulers.find(id) {
            return Ok(scheduler.cursor().slot);
        }
        let stored = self.messages.engine.get(&keys::cursor(id)).await?;
        let cursor = stored.map(|value| Cursor::decode(&value)).transpose()?;
        Ok(cursor.unwrap_or(Cursor::START).slot)
    }
}

/// The queue of an entry of the listing.
fn queue(entry: &Entry) -> Result<FoundQueue, QueueError> {
    let record = Arc::new(QueueRecord::decode(&entry.value)?);
    let (account, name) = keys::queue_of(&entry.key)?;
    let corrupt = || QueueError::corrupt("key of a queue");
    let account = AccountName::parse(&account).ok_or_else(corrupt)?;
    let name = QueueName::parse(name, "queue", &mut Violations::default()).ok_or_else(corrupt)?;
    Ok(FoundQueue { account, name, record })
}

/// A scan of an expiry bucket of a queue. The rest of the bucket is due when the scan is dropped.
struct BucketScan<'a> {
    id: QueueId,
    buckets: &'a SharedExpiryBuckets,
    /// First slot of the bucket.
    first: Slot,
    /// Where the scan continues.
    from: Slot,
    /// End of the bucket, if it has one.
    end: Option<Slot>,
    is_over: bool,
}

impl BucketScan<'_> {
    fn span(&self) -> Span {
        match self.end {
            Some(end) => Span::new(keys::state(self.id, self.from), keys::state(self.id, end)),
            None => keys::states_from(self.id, self.from),
        }
    }

    /// The scanned part becomes a bucket of its own.
    fn cut(&mut self, next: Slot, earliest: Ticks) {
        self.buckets.with(|buckets| buckets.cut(self.first, next, earliest));
        (self.first, self.from) = (next, next);
    }
}

impl Drop for BucketScan<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.buckets.with(|buckets| buckets.abandon_scan(self.first));
        }
    }
}

/// Messages, by whether they have expired.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Examined {
    /// The slots of expired messages.
    pub(super) expired: Vec<Slot>,
    /// When the next of the others expires.
    pub(super) next: Option<Ticks>,
    /// How many have an unreadable state. They remain.
    pub(super) unreadable: usize,
}

/// Separates messages that have expired at `now` from the others.
pub(super) fn sort_out(entries: &[Entry], now: Ticks) -> Result<Examined, QueueError> {
    let mut examined = Examined::default();
    for entry in entries {
        match MessageState::decode(&entry.value) {
            Ok(state) if state.is_expired(now) => {
                examined.expired.push(keys::slot_of(&entry.key)?);
            }
            Ok(state) => examined.next = examined.next.into_iter().chain(state.expires_at).min(),
            Err(_) => examined.unreadable += 1,
        }
    }
    Ok(examined)
}
