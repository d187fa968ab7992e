//! The views of open snapshots, so that one that stays open does not stop the writes.
//!
//! What was flushed stays in memory for as long as a snapshot from before is open, and counts in the write buffer. The
//! pace of a client may so decide how long: a reader that stalls would have every writer wait. So while writes wait,
//! the snapshots that are open for long are ended; their next read fails, and is repeated in a new one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use super::read_epochs::EpochGuard;
use crate::EngineError;

/// Lists of views, so that threads seldom meet at one.
const LISTS: usize = 16;
/// A list is freed of the views that are closed when it is twice as long as what was open, and this long at least.
const LIST_MIN: usize = 64;

/// What an open snapshot reads.
pub(super) struct OpenView {
    since: Instant,
    /// Dropped in this order: what the view shows is kept until then.
    view: RwLock<Option<(fjall::Snapshot, EpochGuard)>>,
    is_ended: AtomicBool,
}

impl OpenView {
    /// Reads in the view. It stays open for as long as that takes.
    ///
    /// # Errors
    /// [`EngineError::SnapshotEnded`], or that of the read.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&fjall::Snapshot, &EpochGuard) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        let (view, reading) = view.as_ref().ok_or_else(ended)?;
        read(view, reading)
    }

    /// Fails once it was ended. A long read checks it while it goes on.
    ///
    /// # Errors
    /// [`EngineError::SnapshotEnded`].
    pub(super) fn check(&self) -> Result<(), EngineError> {
        if self.is_ended.load(Relaxed) { Err(ended()) } else { Ok(()) }
    }

    fn end(&self) {
        self.is_ended.store(true, Relaxed);
        let view = self.view.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(view);
    }
}

fn ended() -> EngineError {
    EngineError::SnapshotEnded { reason: "it was open for long while writes waited".into() }
}

/// See the module.
#[derive(Default)]
pub(super) struct OpenViews {
    lists: [Mutex<Vec<Weak<OpenView>>>; LISTS],
    next: AtomicUsize,
}

impl OpenViews {
    /// Adds a view that was just opened.
    pub(super) fn add(&self, view: fjall::Snapshot, reading: EpochGuard) -> Arc<OpenView> {
        let view = RwLock::new(Some((view, reading)));
        let view =
            Arc::new(OpenView { since: Instant::now(), view, is_ended: AtomicBool::new(false) });
        let number = self.next.fetch_add(1, Relaxed) % LISTS;
        if let Some(list) = self.lists.get(number) {
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            if list.len() >= LIST_MIN && list.len() == list.capacity() {
                list.retain(|view| view.strong_count() > 0);
                let open = list.len();
                list.shrink_to((2 * open).max(LIST_MIN));
                list.reserve((2 * open).max(LIST_MIN) - open);
            }
            list.push(Arc::downgrade(&view));
        }
        view
    }

    /// Ends the views that have been open for so long. How many there were.
    pub(super) fn end_older_than(&self, age: Duration) -> usize {
        let is_old = |view: &Arc<OpenView>| view.since.elapsed() >= age;
        let mut ended = 0;
        for list in &self.lists {
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            let old: Vec<_> = list.iter().filter_map(Weak::upgrade).filter(is_old).collect();
            list.retain(|view| view.upgrade().is_some_and(|view| !is_old(&view)));
            drop(list);
            ended += old.len();
            old.iter().for_each(|view| view.end());
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fjall::open::open;
    use crate::fjall::options::FjallOptions;
    use crate::fjall::shared::EngineState;
    use crate::{DomainRef, Keyspace};

    fn engine(directory: &tempfile::TempDir) -> EngineState {
        let domain = |_: &[u8]| DomainRef { group: 1, part: &[] };
        let keyspaces = vec![Keyspace { name: "a", kinds: 1..=1, domain }];
        open(&FjallOptions::new(directory.path(), keyspaces)).unwrap()
    }

    fn add(engine: &EngineState) -> Arc<OpenView> {
        let reading = engine.reads.enter();
        engine.views.add(engine.database.snapshot(), reading)
    }

    #[test]
    fn only_old_views_are_ended_and_an_ended_one_holds_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let engine = engine(&directory);
        let views = [add(&engine), add(&engine)];
        assert_eq!(engine.views.end_older_than(Duration::from_secs(3600)), 0);
        assert!(views.iter().all(|view| view.read(|_, _| Ok(())).is_ok() && view.check().is_ok()));
        assert!(!engine.reads.pass(Duration::ZERO));

        assert_eq!(engine.views.end_older_than(Duration::ZERO), 2);

        let is_ended = |result| matches!(result, Err(EngineError::SnapshotEnded { .. }));
        assert!(views.iter().all(|it| is_ended(it.read(|_, _| Ok(()))) && is_ended(it.check())));
        assert!(engine.reads.pass(Duration::ZERO), "nothing is kept for them");
        assert_eq!(engine.views.end_older_than(Duration::ZERO), 0, "each is ended once");
    }

    #[test]
    fn closed_views_do_not_add_up() {
        let directory = tempfile::tempdir().unwrap();
        let engine = engine(&directory);
        let held: Vec<_> = (0..10).map(|_| add(&engine)).collect();
        for _ in 0..LISTS * LIST_MIN * 10 {
            drop(add(&engine));
        }
        let listed: usize = engine.views.lists.iter().map(|list| list.lock().unwrap().len()).sum();
        assert!(listed <= LISTS * LIST_MIN * 2, "{listed}");
        assert_eq!(engine.views.end_older_than(Duration::ZERO), held.len());
    }
}
