//! A queue as the process knows it: the index of its messages, and who waits for one.
//!
//! A slot is given to one consumer at a time, and to those who wait before those who come. Nothing here is awaited
//! under the lock. A claim that is dropped, by whatever cancellation, frees its slots again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use trestle_kv::{Engine, ScanLimit};
use trestle_service::clock::Ticks;

use crate::{
    delivery::expiry_buckets::{IndexEntry, SharedExpiryBuckets},
    delivery::index::Index,
    delivery::monotonic_clock::MonotonicClock,
    error::QueueError,
    keys::{self, Cursor, QueueId, Slot},
};

/// How much of the store is read at once: some milliseconds.
pub(crate) const LOAD: ScanLimit = ScanLimit { rows: 4096, bytes: 1024 * 1024 };
/// How often one look reads on in the store.
const LOOKS_MAX: usize = 32;
/// How long the timer sleeps at most: the clock may step forward meanwhile.
const TIMER_MAX: Duration = Duration::from_secs(1);
/// After so many messages it is noted how far the queue has come: a restart passes them in a millisecond.
pub(crate) const CHECKPOINT_AFTER: usize = 2048;

/// See the module.
pub(crate) struct Scheduler {
    id: QueueId,
    engine: Arc<dyn Engine>,
    clock: Arc<MonotonicClock>,
    expiries: Arc<SharedExpiryBuckets>,
    inner: Mutex<Inner>,
    /// One reader of the store at a time.
    loading: tokio::sync::Mutex<()>,
    /// Wakes the timer.
    timer: Notify,
}

struct Inner {
    index: Index,
    /// Who waits, in the order of arrival.
    line: BTreeMap<u64, Waiter>,
    next_waiter: u64,
    /// The queue was deleted or cleared.
    is_closed: bool,
    /// When the timer looks next; none where none runs.
    timer_at: Option<Instant>,
    /// Somebody is about to note how far it has come.
    is_checkpointing: bool,
    used_at: Instant,
}

struct Waiter {
    max: usize,
    hand: oneshot::Sender<Claim>,
}

/// Places that one consumer has alone. Those that are not settled are free again when it is dropped.
pub(crate) struct Claim {
    scheduler: Arc<Scheduler>,
    slots: Vec<Slot>,
}

/// A write under way; over when dropped.
pub(crate) struct Writing {
    scheduler: Arc<Scheduler>,
    number: u64,
}

/// A note of how far the queue has come under way; over when dropped.
pub(crate) struct CheckpointGuard(Arc<Scheduler>);

/// What became of asking for messages.
pub(crate) enum ClaimOutcome {
    /// There are some.
    Claimed(Claim),
    /// There were none in time.
    Empty,
    /// The queue was deleted or cleared: whoever wants its messages must look it up again.
    Closed,
}

/// A slot in the line; left when dropped.
struct WaiterGuard {
    scheduler: Arc<Scheduler>,
    number: u64,
    hand: oneshot::Receiver<Claim>,
}

enum Step {
    Done(ClaimOutcome),
    Wait(WaiterGuard),
    Load,
}

impl Scheduler {
    /// A queue that has come as far as `cursor`.
    pub(crate) fn new(
        id: QueueId,
        engine: Arc<dyn Engine>,
        clock: Arc<MonotonicClock>,
        expiries: Arc<SharedExpiryBuckets>,
        cursor: Cursor,
    ) -> Self {
        let inner = Inner {
            index: Index::new(cursor),
            line: BTreeMap::new(),
            next_waiter: 0,
            is_closed: false,
            timer_at: None,
            is_checkpointing: false,
            used_at: Instant::now(),
        };
        let (loading, timer) = (tokio::sync::Mutex::default(), Notify::new());
        Self { id, engine, clock, expiries, inner: Mutex::new(inner), loading, timer }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims up to `max` messages that are due; waits until `deadline` for the first.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        max: usize,
        deadline: Instant,
    ) -> Result<ClaimOutcome, QueueError> {
        loop {
            match self.step(max, deadline) {
                Step::Done(turn) => return Ok(turn),
                Step::Load => self.load().await?,
                Step::Wait(mut ticket) => {
                    let handed = tokio::time::timeout_at(deadline, &mut ticket.hand).await;
                    match handed {
                        Ok(Ok(claim)) => return Ok(ClaimOutcome::Claimed(claim)),
                        // Closed: the hand is gone without a claim.
                        Ok(Err(_)) => return Ok(ClaimOutcome::Closed),
                        Err(_elapsed) => return Ok(ClaimOutcome::Empty),
                    }
                }
            }
        }
    }

    fn step(self: &Arc<Self>, max: usize, deadline: Instant) -> Step {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.used_at = Instant::now();
        if inner.is_closed {
            return Step::Done(ClaimOutcome::Closed);
        }
        self.dispatch(&mut inner, now);
        let slots = inner.index.take(max, now);
        if !slots.is_empty() {
            return Step::Done(ClaimOutcome::Claimed(Claim { scheduler: Arc::clone(self), slots }));
        }
        if inner.index.ends_before(now) {
            return Step::Load;
        }
        if deadline <= Instant::now() {
            return Step::Done(ClaimOutcome::Empty);
        }
        inner.next_waiter += 1;
        let number = inner.next_waiter;
        let (hand, receiver) = oneshot::channel();
        inner.line.insert(number, Waiter { max, hand });
        self.set_timer(&mut inner, now);
        Step::Wait(WaiterGuard { scheduler: Arc::clone(self), number, hand: receiver })
    }

    /// Gives what is due to those who wait.
    fn dispatch(self: &Arc<Self>, inner: &mut Inner, now: Ticks) {
        while inner.index.has_due(now) {
            let Some((_, waiter)) = inner.line.pop_first() else { break };
            let slots = inner.index.take(waiter.max, now);
            let claim = Claim { scheduler: Arc::clone(self), slots };
            if let Err(mut refused) = waiter.hand.send(claim) {
                // Taken out, as dropping them in the claim would ask for the lock again.
                let slots = std::mem::take(&mut refused.slots);
                inner.index.give_back(&slots);
            }
        }
    }

    /// Makes sure that somebody looks when the next message becomes due, if anybody waits for it.
    fn set_timer(self: &Arc<Self>, inner: &mut Inner, now: Ticks) {
        if inner.line.is_empty() {
            return;
        }
        let next = Instant::now() + until_next(inner, now);
        match inner.timer_at {
            Some(at) if at <= next => {}
            Some(_) => {
                inner.timer_at = Some(next);
                self.timer.notify_one();
            }
            None => {
                inner.timer_at = Some(next);
                tokio::spawn(Arc::clone(self).run_timer());
            }
        }
    }

    /// Runs as long as anybody waits.
    async fn run_timer(self: Arc<Self>) {
        loop {
            let must_load = {
                let now = self.clock.now();
                let mut inner = self.lock();
                self.dispatch(&mut inner, now);
                if inner.line.is_empty() || inner.is_closed {
                    inner.timer_at = None;
                    return;
                }
                inner.timer_at = Some(Instant::now() + until_next(&inner, now));
                inner.index.ends_before(now)
            };
            if must_load && let Err(error) = self.load().await {
                tracing::warn!(%error, "messages that are due cannot be read");
                tokio::time::sleep(TIMER_MAX).await;
            } else if !must_load {
                let at = self.lock().timer_at;
                let Some(at) = at else { continue };
                tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.timer.notified() => {}
                }
            }
        }
    }

    /// Reads on in the store, if a message that is due may lie there.
    ///
    /// # Errors
    /// A failed read.
    async fn load(self: &Arc<Self>) -> Result<(), QueueError> {
        let is_needed = |index: &Index, now| index.ends_before(now) && !index.has_due(now);
        self.load_if(is_needed).await
    }

    async fn load_if(
        self: &Arc<Self>,
        is_needed: impl Fn(&Index, Ticks) -> bool,
    ) -> Result<(), QueueError> {
        let _alone = self.loading.lock().await;
        let now = self.clock.now();
        let start = {
            let mut inner = self.lock();
            if !is_needed(&inner.index, now) {
                return Ok(());
            }
            inner.index.begin_load()
        };
        let Some(start) = start else { return Ok(()) };
        // Whoever stops asking half-way leaves an index that can be read again.
        let _abort = AbortLoad(self);
        let snapshot = self.engine.snapshot().await?;
        let scan = snapshot.scan(&keys::states_from(self.id, start), LOAD).await?;
        let slots = scan.entries.iter().map(|entry| keys::slot_of(&entry.key));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let mut inner = self.lock();
        inner.index.end_load(&slots, scan.more);
        let now = self.clock.now();
        self.dispatch(&mut inner, now);
        self.set_timer(&mut inner, now);
        Ok(())
    }

    /// Begins a write that leaves messages at `now` or later; `sequence` is asked for the lowest one.
    pub(crate) fn write<T>(
        self: &Arc<Self>,
        sequence: impl FnOnce() -> (u64, T),
    ) -> (Writing, Ticks, T) {
        let mut inner = self.lock();
        inner.used_at = Instant::now();
        // Both under the lock: the cursor must not pass what is about to be written.
        let now = self.clock.now();
        let (sequence, value) = sequence();
        let number = inner.index.begin_write(Slot { visible_at: now, sequence });
        (Writing { scheduler: Arc::clone(self), number }, now, value)
    }

    /// Notes what a write removed and what it left, once the store has it.
    pub(crate) fn change(self: &Arc<Self>, removed: &[Slot], inserted: &[IndexEntry]) {
        self.note_expirations(inserted);
        let now = self.clock.now();
        let mut inner = self.lock();
        for slot in removed {
            inner.index.remove(*slot);
        }
        for entry in inserted {
            inner.index.insert(entry.slot);
        }
        self.dispatch(&mut inner, now);
        self.set_timer(&mut inner, now);
    }

    fn note_expirations(&self, entries: &[IndexEntry]) {
        if !entries.is_empty() {
            self.expiries.with(|known| entries.iter().for_each(|entry| known.note(entry)));
        }
    }

    /// Up to `max` slots that are due, after `after`; reads on in the store if there are none.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn look(
        self: &Arc<Self>,
        after: Option<Slot>,
        max: usize,
    ) -> Result<Vec<Slot>, QueueError> {
        let look = |index: &Index, now| index.look(after, max, now);
        let is_needed = |index: &Index, now| index.ends_before(now) && look(index, now).is_empty();
        // Bounded: what lies behind very many slots that nobody takes is not looked for.
        for _ in 0..LOOKS_MAX {
            let now = self.clock.now();
            {
                let mut inner = self.lock();
                inner.used_at = Instant::now();
                if !is_needed(&inner.index, now) {
                    return Ok(look(&inner.index, now));
                }
            }
            self.load_if(is_needed).await?;
        }
        Ok(Vec::new())
    }

    /// How far the queue has come.
    pub(crate) fn cursor(&self) -> Cursor {
        let now = self.clock.now();
        self.lock().index.cursor(now)
    }

    /// Whether it should be noted how far the queue has come, and nobody is about to; over when dropped.
    pub(crate) fn begin_checkpoint(self: &Arc<Self>) -> Option<CheckpointGuard> {
        let mut inner = self.lock();
        if inner.index.gone() < CHECKPOINT_AFTER || inner.is_checkpointing {
            return None;
        }
        inner.is_checkpointing = true;
        Some(CheckpointGuard(Arc::clone(self)))
    }

    /// See [`Index::take_checkpoint`].
    pub(crate) fn take_checkpoint(&self) -> Option<Cursor> {
        let now = self.clock.now();
        self.lock().index.take_checkpoint(now)
    }

    /// See [`Index::oldest_range`].
    pub(crate) fn oldest_range(&self, next_sequence: impl FnOnce() -> u64) -> (u64, u64) {
        let inner = self.lock();
        inner.index.oldest_range(next_sequence())
    }

    /// See [`Index::raise_lowest_sequence`].
    pub(crate) fn raise_lowest_sequence(&self, sequence: u64) {
        self.lock().index.raise_lowest_sequence(sequence);
    }

    /// The queue is no more: those who wait look it up again.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        inner.line.clear();
        self.timer.notify_one();
    }

    /// Whether nobody has asked for it for so long.
    pub(crate) fn is_idle(&self, idle_for: Duration) -> bool {
        let inner = self.lock();
        inner.used_at.elapsed() >= idle_for
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().line.len()
    }

    /// The number of the queue.
    pub(crate) fn id(&self) -> QueueId {
        self.id
    }
}

/// How long until somebody should look again.
fn until_next(inner: &Inner, now: Ticks) -> Duration {
    inner.index.next_event().map_or(TIMER_MAX, |next| next.since(now)).min(TIMER_MAX)
}

/// Frees the index when a load ends before its time.
struct AbortLoad<'a>(&'a Arc<Scheduler>);

impl Drop for AbortLoad<'_> {
    fn drop(&mut self) {
        self.0.lock().index.abort_load();
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        self.scheduler.lock().line.remove(&self.number);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.scheduler.lock().index.end_write(self.number);
    }
}

impl Drop for CheckpointGuard {
    fn drop(&mut self) {
        self.0.lock().is_checkpointing = false;
    }
}

impl Claim {
    /// The claimed slots, in order.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Where they are claimed.
    pub(crate) fn scheduler(&self) -> &Arc<Scheduler> {
        &self.scheduler
    }

    /// These slots were emptied, and those filled instead.
    pub(crate) fn settle(&mut self, emptied: &[Slot], filled: &[IndexEntry]) {
        self.scheduler.note_expirations(filled);
        self.slots.retain(|slot| !emptied.contains(slot));
        let now = self.scheduler.clock.now();
        let mut inner = self.scheduler.lock();
        for entry in filled {
            inner.index.insert(entry.slot);
        }
        inner.index.drop_taken(emptied);
        self.scheduler.dispatch(&mut inner, now);
        self.scheduler.set_timer(&mut inner, now);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        let now = self.scheduler.clock.now();
        let mut inner = self.scheduler.lock();
        inner.index.give_back(&self.slots);
        self.scheduler.dispatch(&mut inner, now);
    }
}
