//! Searches for small segments of past days, which a merge makes a part at a time.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::stream::StreamId;

/// Most streams whose searches are kept. One more, and all begin again.
const SEARCHES_MAX: usize = 10_000;

/// The searches of the streams. They can be reconstructed.
#[derive(Debug, Default)]
pub(crate) struct LateSearches(Mutex<HashMap<StreamId, LateSearch>>);

/// A search for small segments of past days.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LateSearch {
    /// The time from which on it continues.
    pub(crate) from: u64,
    /// The snapshot of the manifest when it began.
    pub(crate) snapshot: u64,
    /// Whether it is at its end.
    pub(crate) is_done: bool,
}

impl LateSearches {
    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, LateSearch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The search of a stream: a new one where that is at its end and the manifest has changed since.
    pub(crate) fn of(&self, id: StreamId, snapshot: u64) -> LateSearch {
        let begun =
            self.lock().get(&id).copied().filter(|it| !it.is_done || it.snapshot == snapshot);
        begun.unwrap_or(LateSearch { snapshot, ..LateSearch::default() })
    }

    /// Keeps the search of a stream.
    pub(crate) fn put(&self, id: StreamId, search: LateSearch) {
        let mut searches = self.lock();
        if searches.len() >= SEARCHES_MAX {
            searches.clear();
        }
        searches.insert(id, search);
    }
}
