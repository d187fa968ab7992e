//! What happens in the background, a bounded step at a time: removing what deleted and cleared queues leave, messages
//! that expired, and ids that need no longer be remembered; and noting how far each queue has come.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use trestle_kv::{Entry, Scan, ScanLimit, Span, Write, after_key, transact};
use trestle_service::clock::Ticks;

use crate::{
    error::QueueError,
    keys::{self, Cursor, DeadRange, Place, QueueId, Remains},
    messages::Messages,
    record::QueueRecord,
    stored::MessageState,
};

/// What one step removes at most: small beside what foreground writes put into a group.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };
/// Most ranges of dead queues looked at in one tick.
const DEAD_MAX: usize = 10_000;
/// Most queues looked at in one tick.
const QUEUES_MAX: usize = 10_000;
/// Messages examined at once for their expiration.
const EXAMINE: ScanLimit = ScanLimit { rows: 2000, bytes: 1024 * 1024 };
/// Messages of one queue examined in one tick.
const EXAMINED_MAX: usize = 100_000;
/// How long a dead queue is watched for writes that were under way when it died; longer than any call may take.
pub(crate) const GRACE: Duration = Duration::from_secs(120);

/// The background work.
pub(crate) struct Sweeper {
    messages: Messages,
    memory: Mutex<Memory>,
}

/// What the sweeper knows from one tick to the next. All of it can be found out again.
#[derive(Default)]
struct Memory {
    /// When the first message of a queue expires, at the earliest.
    expires_at: HashMap<QueueId, Ticks>,
    /// How far the examination of a queue has come.
    examined_to: HashMap<QueueId, (Place, Option<Ticks>)>,
    /// The last key of the listing of queues.
    listed_to: Bytes,
    /// What was forgotten already.
    forgotten_to: Bytes,
}

impl Sweeper {
    /// Works for `messages`.
    pub(crate) fn new(messages: Messages) -> Self {
        Self { messages, memory: Mutex::default() }
    }

    fn with<T>(&self, use_memory: impl FnOnce(&mut Memory) -> T) -> T {
        use_memory(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes one step of everything. True when another step should follow at once.
    ///
    /// # Errors
    /// The first failure; the others were tried too, and the next tick tries again.
    pub(crate) async fn tick(&self) -> Result<bool, QueueError> {
        let steps = [
            self.sweep_dead().await,
            self.sweep_expired().await,
            self.forget().await,
            self.note_cursors().await,
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
        let ids = ids.iter().map(|entry| keys::dead_range_of(&entry.key).map(|(id, _)| id));
        let ids = ids.collect::<Result<std::collections::HashSet<_>, _>>()?;
        Ok(ids.len())
    }

    async fn dead(&self) -> Result<Vec<Entry>, QueueError> {
        let limit = ScanLimit { rows: DEAD_MAX, bytes: usize::MAX };
        let snapshot = self.messages.engine.snapshot().await?;
        Ok(snapshot.scan(&keys::all_dead(), limit).await?.entries)
    }

    async fn sweep_dead(&self) -> Result<bool, QueueError> {
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
        let (id, part) = keys::dead_range_of(&entry.key)?;
        let dead = DeadRange::decode(&entry.value)?;
        let over = self.messages.clock.now().since(dead.died_at) >= GRACE;
        let whole = keys::remains(id, part);
        let rest = Span::new(dead.resume.clone(), whole.end.clone());
        let snapshot = self.messages.engine.snapshot().await?;
        let mut scan = snapshot.scan(&rest, STEP).await?;
        if scan.entries.is_empty() && over && dead.resume != whole.start {
            // The second look: what writes under way left before the place where sweeping was.
            scan = snapshot.scan(&whole, STEP).await?;
        }
        drop(snapshot);
        let more = !scan.entries.is_empty();
        self.write(decide_sweep(id, part, &dead, &scan, over)).await?;
        self.with(|memory| memory.expires_at.remove(&id));
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
        let start = self.with(|memory| memory.forgotten_to.clone());
        // Some time after it is due: no mark is written any more where this has been.
        let span = keys::due_to_forget(&start, now.before(GRACE));
        let snapshot = self.messages.engine.snapshot().await?;
        let scan = snapshot.scan(&span, STEP).await?;
        drop(snapshot);
        let Some(last) = scan.entries.last() else { return Ok(false) };
        let forgotten_to: Bytes = after_key(&last.key).into();
        let marks: Vec<Bytes> = scan.entries.iter().map(|entry| entry.key.clone()).collect();
        let reads = marks.iter().map(|mark| keys::memory_of(mark));
        let reads = reads.collect::<Result<Vec<_>, _>>()?;
        let keys = reads.clone();
        transact(&*self.messages.engine, reads, move |current| {
            decide_forget(now, &marks, &keys, current)
        })
        .await??;
        self.with(|memory| memory.forgotten_to = forgotten_to);
        Ok(scan.more)
    }

    /// Notes how far the queues in use have come, and the time, and lets go of those that are not used any more.
    async fn note_cursors(&self) -> Result<bool, QueueError> {
        let messages = &self.messages;
        let shelves = messages.shelves.all();
        if !shelves.is_empty() {
            let value = keys::encode_number(messages.clock.now().get());
            self.write(vec![Write::Put { key: keys::time(), value }]).await?;
        }
        for (id, shelf) in shelves {
            messages.find_oldest(&shelf).await?;
            if let Some(cursor) = shelf.take_progress() {
                self.note_cursor(id, cursor).await?;
            }
            drop(shelf);
            messages.shelves.forget_if_idle(id);
        }
        Ok(false)
    }

    async fn note_cursor(&self, id: QueueId, cursor: Cursor) -> Result<(), QueueError> {
        // A cursor goes with its queue: none is left for a number that is no more.
        let (count, key) = (keys::count(id), keys::cursor(id));
        transact(&*self.messages.engine, vec![count], move |current| {
            let is_there = matches!(current, [Some(_)]);
            let put = Write::Put { key: key.clone(), value: cursor.encode() };
            Ok::<_, QueueError>((Vec::from_iter(is_there.then_some(put)), ()))
        })
        .await?
    }

    /// Removes messages that expired, of the next queues of the listing.
    async fn sweep_expired(&self) -> Result<bool, QueueError> {
        let mut span = keys::all_queues();
        span.start = span.start.max(self.with(|memory| memory.listed_to.clone()));
        let snapshot = self.messages.engine.snapshot().await?;
        let limit = ScanLimit { rows: QUEUES_MAX, bytes: 16 * 1024 * 1024 };
        let scan = snapshot.scan(&span, limit).await?;
        drop(snapshot);
        let (mut more, mut failed) = (false, None);
        for entry in &scan.entries {
            let id = QueueRecord::decode(&entry.value)?.id;
            match self.examine(id).await {
                Ok(found) => more |= found,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let last = scan.entries.last().filter(|_| scan.more);
        let listed_to = last.map(|last| after_key(&last.key).into()).unwrap_or_default();
        self.with(|memory| memory.listed_to = listed_to);
        failed.map_or(Ok(more), Err)
    }

    /// Looks for expired messages of a queue, if there may be any. True when it is not through yet.
    async fn examine(&self, id: QueueId) -> Result<bool, QueueError> {
        let messages = &self.messages;
        if let Some(noted) = messages.shelves.find(id).and_then(|shelf| shelf.take_expiry()) {
            self.with(|memory| memory.note(id, noted));
        }
        let now = messages.clock.now();
        let known = self.with(|memory| memory.expires_at.get(&id).copied());
        if known.is_some_and(|expires_at| expires_at > now) {
            return Ok(false);
        }
        let begun = self.with(|memory| memory.examined_to.remove(&id));
        let (mut from, mut earliest) = match begun {
            Some(begun) => begun,
            None => (self.first_place(id).await?, None),
        };
        let mut examined = 0;
        while examined < EXAMINED_MAX {
            let snapshot = messages.engine.snapshot().await?;
            let scan = snapshot.scan(&keys::states_from(id, from), EXAMINE).await?;
            drop(snapshot);
            let (expired, next) = sort_out(&scan, now)?;
            earliest = earliest.into_iter().chain(next).min();
            for part in expired.chunks(STEP.rows) {
                messages.remove_expired(id, part.to_vec()).await?;
            }
            examined += scan.entries.len();
            let (Some(last), true) = (scan.entries.last(), scan.more) else {
                let next = earliest.unwrap_or(Ticks::MAX);
                self.with(|memory| memory.expires_at.insert(id, next));
                return Ok(false);
            };
            from = keys::place_of(&last.key)?.next();
            tokio::task::yield_now().await;
        }
        self.with(|memory| memory.examined_to.insert(id, (from, earliest)));
        Ok(false)
    }

    async fn first_place(&self, id: QueueId) -> Result<Place, QueueError> {
        if let Some(shelf) = self.messages.shelves.find(id) {
            return Ok(shelf.cursor().place);
        }
        let snapshot = self.messages.engine.snapshot().await?;
        let stored = snapshot.get(&keys::cursor(id)).await?;
        let cursor = stored.map(|value| Cursor::decode(&value)).transpose()?;
        Ok(cursor.unwrap_or(Cursor::START).place)
    }
}

impl Memory {
    fn note(&mut self, id: QueueId, expires_at: Ticks) {
        // A queue that nothing is known of is examined anyway.
        if let Some(known) = self.expires_at.get_mut(&id) {
            *known = (*known).min(expires_at);
        }
        if let Some((_, earliest)) = self.examined_to.get_mut(&id) {
            *earliest = Some(earliest.map_or(expires_at, |known| known.min(expires_at)));
        }
    }
}

/// The places of what is over at `now`, and when the next of the others will be.
fn sort_out(scan: &Scan, now: Ticks) -> Result<(Vec<Place>, Option<Ticks>), QueueError> {
    let (mut expired, mut next) = (Vec::new(), None);
    for entry in &scan.entries {
        let state = MessageState::decode(&entry.value)?;
        if state.is_expired(now) {
            expired.push(keys::place_of(&entry.key)?);
        } else {
            next = next.into_iter().chain(state.expires_at).min();
        }
    }
    Ok((expired, next))
}

/// The marks that are due go; so does what they are about, unless it was remembered anew since.
fn decide_forget(
    now: Ticks,
    marks: &[Bytes],
    memories: &[Bytes],
    current: &[Option<Bytes>],
) -> Result<(Vec<Write>, ()), QueueError> {
    let mut writes = Vec::with_capacity(marks.len() * 2);
    for ((mark, key), stored) in marks.iter().zip(memories).zip(current) {
        writes.push(Write::Delete { key: mark.clone() });
        if stored.is_some() && crate::memory::Memory::of(stored.as_ref(), now)?.is_none() {
            writes.push(Write::Delete { key: key.clone() });
        }
    }
    Ok((writes, ()))
}

/// What one step writes: removes what the scan found and notes how far it came. A range in which nothing is left is
/// forgotten once the grace is over. No step puts more than it removes, so that a full disk does not stop it.
fn decide_sweep(
    id: QueueId,
    part: Remains,
    dead: &DeadRange,
    scan: &Scan,
    grace_is_over: bool,
) -> Vec<Write> {
    let key = keys::dead(id, part);
    let Some(last) = scan.entries.last() else {
        return Vec::from_iter(grace_is_over.then_some(Write::Delete { key }));
    };
    let removed = scan.entries.iter().map(|entry| Write::Delete { key: entry.key.clone() });
    let progress = DeadRange { died_at: dead.died_at, resume: after_key(&last.key).into() };
    removed.chain([Write::Put { key, value: progress.encode() }]).collect()
}

#[cfg(test)]
mod tests;
