//! One write of the database at a time, and how far they have come: what a checkpoint needs to be of one instant.

use std::sync::{Mutex, MutexGuard, PoisonError};

use trestle_model::time::Ticks;

/// Held over every write that goes to the journal.
#[derive(Debug)]
pub(super) struct Written {
    newest: Mutex<Ticks>,
}

/// No write of another thread comes before it is dropped.
pub(super) struct WriteOrder<'a> {
    newest: MutexGuard<'a, Ticks>,
}

impl Written {
    /// Of a store that was opened with this version floor.
    pub(super) fn after(floor: Ticks) -> Self {
        Self { newest: Mutex::new(floor) }
    }

    /// Whether a write would wait.
    #[cfg(test)]
    pub(super) fn is_locked(&self) -> bool {
        self.newest.try_lock().is_err()
    }

    /// Waits for the write of another thread, and has the next ones wait.
    pub(super) fn lock(&self) -> WriteOrder<'_> {
        WriteOrder { newest: self.newest.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

impl WriteOrder<'_> {
    /// The newest version that a change which was written has.
    pub(super) fn newest(&self) -> Ticks {
        *self.newest
    }

    /// Notes the newest version of what was just written.
    pub(super) fn note(&mut self, newest: Ticks) {
        *self.newest = newest;
    }
}
