//! The views of open snapshots, so that one that stays open does not stop the writes.
//!
//! What was flushed stays in memory for as long as a snapshot from before is open, and counts in the write buffer. The
//! pace of a client may so decide how long: a reader that stalls would have every writer wait. So while writes wait,
//! the snapshots that are open for long are ended; their next read fails, and is repeated in a new one.
//!
//! Nearly every snapshot is closed after microseconds, so opening one costs little: the place of a closed view is used
//! again while it is in the caches of the processor, each thread has a list of its own, and only the housekeeper reads
//! the clock, when it first notes a view.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::per_thread::PerThread;
use super::read_epochs::EpochGuard;
use super::shared::EngineState;
use trestle_kv::EngineError;

/// Places that a list keeps while none of its views is open.
const PLACES_KEPT: usize = 64;
/// The time of a view that was not noted yet.
const NEVER: u64 = u64::MAX;

/// The view of an open snapshot. Dropping it closes the view.
pub(super) struct OpenView {
    place: Arc<ViewPlace>,
    // The view is closed before the database.
    shared: Arc<EngineState>,
}

/// Whether the view of a long scan is still open.
pub(super) struct ViewCheck {
    place: Arc<ViewPlace>,
    generation: u64,
}

/// A slot for one view after another.
struct ViewPlace {
    /// Its list, and its index there.
    list: usize,
    index: usize,
    view: RwLock<Option<ViewContent>>,
    /// How many views were closed or ended here.
    generation: AtomicU64,
    /// Microseconds since [`OpenViews::since`] at which the view was first noted, or [`NEVER`].
    noted_us: AtomicU64,
}

/// Dropped in this order: what the snapshot shows is kept until then.
struct ViewContent {
    snapshot: fjall::Snapshot,
    reading: EpochGuard,
}

impl OpenView {
    /// Opens a view of the newest state.
    pub(super) fn open(shared: Arc<EngineState>) -> Self {
        let reading = shared.reads.enter();
        let view = ViewContent { snapshot: shared.database.snapshot(), reading };
        Self { place: shared.views.add(view), shared }
    }

    /// The engine that is read.
    pub(super) fn engine(&self) -> &Arc<EngineState> {
        &self.shared
    }

    /// Reads in the view. It stays open for as long as that takes.
    ///
    /// # Errors
    /// [`EngineError::SnapshotEnded`], or that of the read.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&fjall::Snapshot, &EpochGuard) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let view = self.place.view.read().unwrap_or_else(PoisonError::into_inner);
        let ViewContent { snapshot, reading } = view.as_ref().ok_or_else(ended)?;
        read(snapshot, reading)
    }

    /// A check that fails once the view is closed or ended.
    pub(super) fn new_check(&self) -> ViewCheck {
        let generation = self.place.generation.load(Relaxed);
        ViewCheck { place: Arc::clone(&self.place), generation }
    }
}

impl Drop for OpenView {
    fn drop(&mut self) {
        self.place.close_if(|| true);
        self.shared.views.remove(&self.place);
    }
}

impl ViewCheck {
    /// Fails once the view was closed or ended. A long read calls it while it goes on.
    ///
    /// # Errors
    /// [`EngineError::SnapshotEnded`].
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let is_open = self.place.generation.load(Relaxed) == self.generation;
        if is_open { Ok(()) } else { Err(ended()) }
    }
}

impl ViewPlace {
    fn new(list: usize, index: usize) -> Self {
        Self {
            list,
            index,
            view: RwLock::new(None),
            generation: AtomicU64::new(0),
            noted_us: AtomicU64::new(NEVER),
        }
    }

    fn set(&self, view: ViewContent) {
        let mut open = self.view.write().unwrap_or_else(PoisonError::into_inner);
        self.noted_us.store(NEVER, Relaxed);
        *open = Some(view);
    }

    /// Closes the view that is here, if `may` is true of it. Whether there was one.
    fn close_if(&self, may: impl FnOnce() -> bool) -> bool {
        let mut open = self.view.write().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() || !may() {
            return false;
        }
        self.generation.fetch_add(1, Relaxed);
        let view = open.take();
        drop(open);
        drop(view);
        true
    }

    /// Notes the time, unless the view was noted before.
    fn note(&self, now_us: u64) {
        let _ = self.noted_us.compare_exchange(NEVER, now_us, Relaxed, Relaxed);
    }

    fn is_noted_before(&self, time_us: u64) -> bool {
        let noted_us = self.noted_us.load(Relaxed);
        noted_us != NEVER && noted_us <= time_us
    }
}

fn ended() -> EngineError {
    EngineError::SnapshotEnded { reason: "it was open for long while writes waited".into() }
}

/// The views of all open snapshots.
pub(super) struct OpenViews {
    lists: PerThread<PlaceList>,
    since: Instant,
}

/// The places of some threads.
#[derive(Default)]
struct PlaceList(Mutex<ViewPlaces>);

#[derive(Default)]
struct ViewPlaces {
    all: Vec<Arc<ViewPlace>>,
    /// Those without a view, by index; the last one was used last.
    free: Vec<usize>,
}

impl Default for OpenViews {
    fn default() -> Self {
        Self { lists: PerThread::default(), since: Instant::now() }
    }
}

impl OpenViews {
    fn add(&self, view: ViewContent) -> Arc<ViewPlace> {
        let (number, list) = self.lists.own();
        let place = list.lock().claim(number);
        place.set(view);
        place
    }

    /// Frees a place whose view was closed.
    fn remove(&self, place: &ViewPlace) {
        if let Some(list) = self.lists.get(place.list) {
            list.lock().free(place.index);
        }
    }

    /// Notes the views that are open. The age of a view counts from the first call while it is open.
    pub(super) fn note(&self) {
        self.note_at(self.now_us());
    }

    fn note_at(&self, now_us: u64) {
        for list in self.lists.iter() {
            list.lock().all.iter().for_each(|place| place.note(now_us));
        }
    }

    /// Ends the views that were first noted at least `age` ago. Returns their number.
    pub(super) fn end_older_than(&self, age: Duration) -> usize {
        self.end_at(self.now_us(), u64::try_from(age.as_micros()).unwrap_or(u64::MAX))
    }

    fn end_at(&self, now_us: u64, age_us: u64) -> usize {
        self.note_at(now_us);
        let Some(time_us) = now_us.checked_sub(age_us) else { return 0 };
        let mut ended = 0;
        for list in self.lists.iter() {
            let mut old = list.lock().all.clone();
            old.retain(|place| place.is_noted_before(time_us));
            // Another view may be there by now, which was not noted.
            ended += old.iter().filter(|it| it.close_if(|| it.is_noted_before(time_us))).count();
        }
        ended
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros()).unwrap_or(NEVER - 1)
    }
}

impl PlaceList {
    fn lock(&self) -> MutexGuard<'_, ViewPlaces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ViewPlaces {
    /// A place without a view.
    fn claim(&mut self, list: usize) -> Arc<ViewPlace> {
        if let Some(place) = self.free.pop().and_then(|index| self.all.get(index)) {
            return Arc::clone(place);
        }
        let place = Arc::new(ViewPlace::new(list, self.all.len()));
        self.all.push(Arc::clone(&place));
        place
    }

    fn free(&mut self, index: usize) {
        self.free.push(index);
        // What many open snapshots at a time needed is freed after them.
        if self.free.len() == self.all.len() && self.all.len() > PLACES_KEPT {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests;
