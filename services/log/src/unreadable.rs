//! The segments that the object store could not read, which it may read later.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use trestle_model::time::Ticks;

use crate::stream::SegmentRecord;

/// How long a segment that the store could not read is left out of merges.
pub(crate) const LEFT_OUT: Duration = Duration::from_secs(3600);
/// Most of them. One more, and all are read again.
const UNREADABLE_MAX: usize = 10_000;

/// When each of these segments could not be read, by the path of its object. They can be found again.
#[derive(Debug, Default)]
pub(crate) struct UnreadableSegments(Mutex<HashMap<String, Ticks>>);

impl UnreadableSegments {
    /// Removes those of some segments that could not be read a short while ago.
    pub(crate) fn leave_out(&self, segments: &mut Vec<SegmentRecord>, now: Ticks) {
        let mut unreadable = self.lock();
        unreadable.retain(|_, at| now.since(*at) < LEFT_OUT);
        segments.retain(|segment| !unreadable.contains_key(&segment.path));
    }

    /// Notes one that could not be read.
    pub(crate) fn add(&self, path: String, now: Ticks) {
        let mut segments = self.lock();
        if segments.len() >= UNREADABLE_MAX {
            segments.clear();
        }
        segments.insert(path, now);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Ticks>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
