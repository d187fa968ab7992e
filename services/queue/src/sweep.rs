//! What happens in the background, a bounded step at a time: removing what deleted and cleared queues leave, messages
//! that expired, and ids that need no longer be remembered; and noting how far each queue has come.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use trestle_kv::{Entry, Scan, ScanLimit, Span, Write, after_key, transact};
use trestle_service::clock::Ticks;

use crate::{
    delivery::{BUCKET_MESSAGES, SharedExpiryBuckets},
    error::QueueError,
    keys::{self, Cursor, DeletedRange, QueueId, QueuePart, Slot},
    messages::Messages,
    record::QueueRecord,
    stored::MessageState,
};

/// What one step removes at most: small beside what foreground writes put into a group.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };
/// Most ranges of dead queues looked at in one tick.
const DELETED_MAX: usize = 10_000;
/// Most queues looked at in one tick.
const QUEUES_MAX: usize = 10_000;
/// Messages examined at once for their expiration.
const EXAMINE: ScanLimit = ScanLimit { rows: 8 * BUCKET_MESSAGES, bytes: 1024 * 1024 };
/// Messages of one queue examined in one tick.
const EXAMINED_MAX: usize = 100_000;
/// How long a dead queue is watched for writes that were under way when it died; longer than any call may take.
pub(crate) const GRACE: Duration = Duration::from_secs(120);

/// The background work.
pub(crate) struct Sweeper {
    messages: Messages,
    state: Mutex<SweepState>,
}

/// What the sweeper knows from one tick to the next. All of it can be found out again.
#[derive(Default)]
struct SweepState {
    /// The last key of the listing of queues.
    listed_to: Bytes,
    /// What was forgotten already.
    forgotten_to: Bytes,
}

impl Sweeper {
    /// Works for `messages`.
    pub(crate) fn new(messages: Messages) -> Self {
        Self { messages, state: Mutex::default() }
    }

    fn with<T>(&self, use_memory: impl FnOnce(&mut SweepState) -> T) -> T {
        use_memory(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes one step of everything. True when another step should follow at once.
    ///
    /// # Errors
    /// The first failure; the others were tried too, and the next tick tries again.
    pub(crate) async fn tick(&self) -> Result<bool, QueueError> {
        let steps = [
            self.sweep_deleted().await,
            self.sweep_expired().await,
            self.forget().await,
            self.checkpoint_all().await,
        ];
        let mut more = false;
        for step in steps {
            more |= step?;
        }
        Ok(more)
    }

    /// How many dead queues are still being worked on, up to a bound.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn pending(&self) -> Result<usize, QueueError> {
        let ids = self.dead().await?;
        let ids = ids.iter().map(|entry| keys::deleted_range_of(&entry.key).map(|(id, _)| id));
        let ids = ids.collect::<Result<std::collections::HashSet<_>, _>>()?;
        Ok(ids.len())
    }

    async fn dead(&self) -> Result<Vec<Entry>, QueueError> {
        let limit = ScanLimit { rows: DELETED_MAX, bytes: usize::MAX };
        let snapshot = self.messages.engine.snapshot().await?;
        Ok(snapshot.scan(&keys::all_deleted(), limit).await?.entries)
    }

    async fn sweep_deleted(&self) -> Result<bool, QueueError> {
        let (mut more, mut failed) = (false, None);
        for entry in self.dead().await? {
            // One queue that cannot be swept must not keep the others.
            match self.sweep_range(&entry).await {
                Ok(found) => more |= found,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(more), Err)
    }

    async fn sweep_range(&self, entry: &Entry) -> Result<bool, QueueError> {
        let (id, part) = keys::deleted_range_of(&entry.key)?;
        let dead = DeletedRange::decode(&entry.value)?;
        let over = self.messages.clock.now().since(dead.deleted_at) >= GRACE;
        let whole = keys::part_span(id, part);
        let rest = Span::new(dead.resume.clone(), whole.end.clone());
        let snapshot = self.messages.engine.snapshot().await?;
        let mut scan = snapshot.scan(&rest, STEP).await?;
        if scan.entries.is_empty() && over && dead.resume != whole.start {
            // The second look: what writes under way left before the slot where sweeping was.
            scan = snapshot.scan(&whole, STEP).await?;
        }
        drop(snapshot);
        let more = !scan.entries.is_empty();
        self.write(decide_sweep(id, part, &dead, &scan, over)).await?;
        self.messages.schedulers.forget_expiry_buckets(id);
        Ok(more)
    }

    async fn write(&self, writes: Vec<Write>) -> Result<(), QueueError> {
        if writes.is_empty() {
            return Ok(());
        }
        let write = move |_: &[Option<Bytes>]| Ok::<_, QueueError>((writes.clone(), ()));
        transact(&*self.messages.engine, Vec::new(), write).await?
    }

    /// Removes ids whose time is over.
    async fn forget(&self) -> Result<bool, QueueError> {
        let now = self.messages.clock.now();
        let start = self.with(|state| state.forgotten_to.clone());
        // Some time after it is due: no mark is written any more where this has been.
        let span = keys::expired_deduplications(&start, now.before(GRACE));
        let snapshot = self.messages.engine.snapshot().await?;
        let scan = snapshot.scan(&span, STEP).await?;
        drop(snapshot);
        let Some(last) = scan.entries.last() else { return Ok(false) };
        let forgotten_to: Bytes = after_key(&last.key).into();
        let marks: Vec<Bytes> = scan.entries.iter().map(|entry| entry.key.clone()).collect();
        let reads = marks.iter().map(|mark| keys::deduplication_of(mark));
        let reads = reads.collect::<Result<Vec<_>, _>>()?;
        let keys = reads.clone();
        let forgotten = transact(&*self.messages.engine, reads, move |current| {
            Ok::<_, QueueError>(decide_forget(now, &marks, &keys, current))
        });
        let unreadable = forgotten.await??;
        if unreadable > 0 {
            tracing::error!(unreadable, "what queues remember cannot be read");
        }
        self.with(|state| state.forgotten_to = forgotten_to);
        Ok(scan.more)
    }

    /// Notes how far the queues in use have come, and the time, and lets go of those that are not used any more.
    async fn checkpoint_all(&self) -> Result<bool, QueueError> {
        let messages = &self.messages;
        let schedulers = messages.schedulers.all();
        if !schedulers.is_empty() {
            let value = keys::encode_number(messages.clock.now().get());
            self.write(vec![Write::Put { key: keys::time(), value }]).await?;
        }
        let mut failed = None;
        for (id, scheduler) in schedulers {
            // One queue that cannot be read must not keep the others.
            if let Err(error) = messages.checkpoint(&scheduler).await {
                failed = failed.or(Some(error));
            }
            drop(scheduler);
            messages.schedulers.forget_if_idle(id);
        }
        failed.map_or(Ok(false), Err)
    }

    /// Removes messages that expired, of the next queues of the listing.
    async fn sweep_expired(&self) -> Result<bool, QueueError> {
        let mut span = keys::all_queues();
        span.start = span.start.max(self.with(|state| state.listed_to.clone()));
        let snapshot = self.messages.engine.snapshot().await?;
        let limit = ScanLimit { rows: QUEUES_MAX, bytes: 16 * 1024 * 1024 };
        let scan = snapshot.scan(&span, limit).await?;
        drop(snapshot);
        let mut failed = None;
        for entry in &scan.entries {
            let examined = match QueueRecord::decode(&entry.value) {
                Ok(record) => self.examine(record.id).await,
                Err(error) => Err(error),
            };
            if let Err(error) = examined {
                failed = failed.or(Some(error));
            }
        }
        let last = scan.entries.last().filter(|_| scan.more);
        let listed_to = last.map(|last| after_key(&last.key).into()).unwrap_or_default();
        self.with(|state| state.listed_to = listed_to);
        failed.map_or(Ok(false), Err)
    }

    /// Looks for expired messages of a queue, where there may be any.
    async fn examine(&self, id: QueueId) -> Result<(), QueueError> {
        let expiries = self.messages.schedulers.expiries(id);
        let now = self.messages.clock.now();
        if expiries.with(|known| known.due(now).is_empty()) {
            return Ok(());
        }
        let begin = self.first_slot(id).await?;
        let due = expiries.with(|known| {
            known.begin_at(begin);
            known.due(now)
        });
        let mut examined = 0;
        for (first, end) in due {
            if examined >= EXAMINED_MAX {
                break;
            }
            let (expiries, from) = (&*expiries, first.max(begin));
            let look = BucketScan { id, expiries, first, from, end, is_over: false };
            examined += self.look(look, now, EXAMINED_MAX - examined).await?;
        }
        Ok(())
    }

    /// Looks at a bucket, at about `max` messages of it; at how many it did.
    async fn look(
        &self,
        mut look: BucketScan<'_>,
        now: Ticks,
        max: usize,
    ) -> Result<usize, QueueError> {
        look.expiries.with(|known| known.look(look.first));
        let mut examined = 0;
        while examined < max {
            let scan = self.scan(&look.span()).await?;
            examined += scan.entries.len();
            let mut parts = scan.entries.chunks(BUCKET_MESSAGES).peekable();
            while let Some(part) = parts.next() {
                let earliest = self.remove(look.id, part, now).await?;
                let is_last = parts.peek().is_none() && !scan.more;
                if let Some(last) = part.last().filter(|_| !is_last) {
                    look.cut(keys::slot_of(&last.key)?.next(), earliest);
                } else {
                    look.expiries.with(|known| known.finish(look.first, earliest));
                }
            }
            if scan.entries.is_empty() {
                look.expiries.with(|known| known.join(look.first));
            }
            if !scan.more {
                look.is_over = true;
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(examined)
    }

    async fn scan(&self, span: &Span) -> Result<Scan, QueueError> {
        let snapshot = self.messages.engine.snapshot().await?;
        Ok(snapshot.scan(span, EXAMINE).await?)
    }

    /// Removes what is over; when the next of the others will be, [`Ticks::MAX`] if never.
    async fn remove(
        &self,
        id: QueueId,
        entries: &[Entry],
        now: Ticks,
    ) -> Result<Ticks, QueueError> {
        let Sorted { expired, next, unreadable } = sort_out(entries, now)?;
        if unreadable > 0 {
            tracing::error!(unreadable, "messages cannot be read");
        }
        for part in expired.chunks(STEP.rows) {
            self.messages.remove_expired(id, part.to_vec()).await?;
        }
        Ok(next.unwrap_or(Ticks::MAX))
    }

    async fn first_slot(&self, id: QueueId) -> Result<Slot, QueueError> {
        if let Some(scheduler) = self.messages.schedulers.find(id) {
            return Ok(scheduler.cursor().slot);
        }
        let snapshot = self.messages.engine.snapshot().await?;
        let stored = snapshot.get(&keys::cursor(id)).await?;
        let cursor = stored.map(|value| Cursor::decode(&value)).transpose()?;
        Ok(cursor.unwrap_or(Cursor::START).slot)
    }
}

/// A look at a bucket of a queue. What it has not come to when it is dropped is due.
struct BucketScan<'a> {
    id: QueueId,
    expiries: &'a SharedExpiryBuckets,
    /// Where the bucket begins.
    first: Slot,
    /// Where the look goes on.
    from: Slot,
    /// Where the bucket ends, if it does.
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

    /// What was looked at is a bucket of its own.
    fn cut(&mut self, next: Slot, earliest: Ticks) {
        self.expiries.with(|known| known.cut(self.first, next, earliest));
        (self.first, self.from) = (next, next);
    }
}

impl Drop for BucketScan<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.expiries.with(|known| known.leave(self.first));
        }
    }
}

/// Messages, by whether they are over.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sorted {
    /// The slots of what is over.
    expired: Vec<Slot>,
    /// When the next of the others will be.
    next: Option<Ticks>,
    /// How many nobody can tell this of. They stay.
    unreadable: usize,
}

/// What is over at `now`, and what is not.
fn sort_out(entries: &[Entry], now: Ticks) -> Result<Sorted, QueueError> {
    let mut sorted = Sorted::default();
    for entry in entries {
        match MessageState::decode(&entry.value) {
            Ok(state) if state.is_expired(now) => {
                sorted.expired.push(keys::slot_of(&entry.key)?);
            }
            Ok(state) => sorted.next = sorted.next.into_iter().chain(state.expires_at).min(),
            Err(_) => sorted.unreadable += 1,
        }
    }
    Ok(sorted)
}

/// The marks that are due go; so does what they are about, unless it was remembered anew since. What cannot be read
/// stays, without a mark, and is counted: it must not keep the others.
fn decide_forget(
    now: Ticks,
    marks: &[Bytes],
    memories: &[Bytes],
    current: &[Option<Bytes>],
) -> (Vec<Write>, usize) {
    let (mut writes, mut unreadable) = (Vec::with_capacity(marks.len() * 2), 0);
    for ((mark, key), stored) in marks.iter().zip(memories).zip(current) {
        writes.push(Write::Delete { key: mark.clone() });
        match crate::deduplication::DeduplicationRecord::of(stored.as_ref(), now) {
            Ok(None) if stored.is_some() => writes.push(Write::Delete { key: key.clone() }),
            Ok(_) => {}
            Err(_) => unreadable += 1,
        }
    }
    (writes, unreadable)
}

/// What one step writes: removes what the scan found and notes how far it came. A range in which nothing is left is
/// forgotten once the grace is over. No step puts more than it removes, so that a full disk does not stop it.
fn decide_sweep(
    id: QueueId,
    part: QueuePart,
    dead: &DeletedRange,
    scan: &Scan,
    grace_is_over: bool,
) -> Vec<Write> {
    let key = keys::deleted(id, part);
    let Some(last) = scan.entries.last() else {
        return Vec::from_iter(grace_is_over.then_some(Write::Delete { key }));
    };
    let removed = scan.entries.iter().map(|entry| Write::Delete { key: entry.key.clone() });
    let progress =
        DeletedRange { deleted_at: dead.deleted_at, resume: after_key(&last.key).into() };
    removed.chain([Write::Put { key, value: progress.encode() }]).collect()
}

#[cfg(test)]
mod tests;
