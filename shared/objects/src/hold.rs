//! Deletes of objects wait while a backup reads them. The records of a backup are those of one instant, and its objects
//! are copied after it: an object that the records of that instant name must exist until it is copied.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// Keeps the objects of a data directory from being deleted by background work. Clones share it.
///
/// Objects that were never published are deleted in any case: no record names them.
#[derive(Debug, Clone, Default)]
pub struct ObjectHold(Arc<Mutex<HoldState>>);

#[derive(Debug, Default)]
struct HoldState {
    is_held: bool,
    /// No delete begins after it.
    deadline: Option<Instant>,
    /// Deletes in progress.
    deletes: usize,
}

/// Permission to delete objects, and then the records that name them. A hold that begins meanwhile is not effective
/// before this is dropped.
#[derive(Debug)]
#[must_use = "objects may be deleted while this exists"]
pub struct ObjectDeletes(ObjectHold);

impl ObjectHold {
    /// Begins or ends the hold. One that begins is effective once [`is_effective`](Self::is_effective) returns true.
    pub fn set(&self, is_held: bool) {
        self.state().is_held = is_held;
    }

    /// Sets until when deletes may begin, if nothing else holds objects: none is no bound. Who sends changes to a
    /// backup moves it ahead as they arrive there.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.state().deadline = deadline;
    }

    /// Whether objects are held, so that no delete begins.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.state().is_held()
    }

    /// Whether objects are held and the deletes that began before have ended.
    #[must_use]
    pub fn is_effective(&self) -> bool {
        let state = self.state();
        state.is_held && state.deletes == 0
    }

    /// Begins a delete of objects; none while objects are held.
    pub fn begin_delete(&self) -> Option<ObjectDeletes> {
        let mut state = self.state();
        if state.is_held() {
            return None;
        }
        state.deletes += 1;
        Some(ObjectDeletes(self.clone()))
    }

    fn state(&self) -> MutexGuard<'_, HoldState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HoldState {
    fn is_held(&self) -> bool {
        self.is_held || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Drop for ObjectDeletes {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.deletes = state.deletes.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_delete_begins_while_objects_are_held() {
        let hold = ObjectHold::default();
        assert!(hold.begin_delete().is_some());
        assert!(!hold.is_held());

        hold.clone().set(true);
        assert!(hold.is_held());
        assert!(hold.begin_delete().is_none());

        hold.set(false);
        assert!(!hold.is_effective());
        assert!(hold.begin_delete().is_some());
    }

    #[test]
    fn no_delete_begins_after_the_deadline() {
        let hold = ObjectHold::default();
        hold.set_deadline(Some(Instant::now() + Duration::from_secs(3600)));
        assert!(!hold.is_held() && hold.begin_delete().is_some());
        hold.set_deadline(Some(Instant::now()));
        assert!(hold.is_held() && hold.begin_delete().is_none());
        assert!(!hold.is_effective(), "no backup is to begin");
        hold.set_deadline(None);
        assert!(hold.begin_delete().is_some());
    }

    #[test]
    fn a_hold_is_effective_once_the_deletes_before_it_have_ended() {
        let hold = ObjectHold::default();
        let (first, second) = (hold.begin_delete(), hold.begin_delete());
        hold.set(true);
        assert!(hold.is_held());
        assert!(!hold.is_effective());
        drop(first);
        assert!(!hold.is_effective());
        drop(second);
        assert!(hold.is_effective());
    }
}
