//! The history of writes: for each item, the state of the last acknowledged write and the states of
//! the writes after it whose outcome is unknown.

use std::collections::BTreeMap;

use crate::contents::Contents;

/// The unit of a write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// The row of a partition.
    Row(String, String),
    /// The rows of a partition, all of one value, written by batches.
    Group(String),
    /// The only row of a partition, which batches move.
    Token(String),
    /// A table.
    Table(String),
    /// The contents of a table.
    Inside(String),
}

/// The state of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// It does not exist.
    #[default]
    Absent,
    /// It has a value.
    Value(i64),
}

/// The version of a row: its time as seconds and nanoseconds, and its etag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    pub(crate) time: (i64, i32),
    pub(crate) etag: String,
}

#[derive(Debug, Default)]
struct Entry {
    sure: State,
    maybe: Vec<State>,
    stamp: Option<Stamp>,
}

/// The acknowledged and pending writes of one writer.
#[derive(Debug, Default)]
pub(crate) struct WriteHistory {
    entries: BTreeMap<Item, Entry>,
}

impl WriteHistory {
    /// The state that an item must have.
    pub(crate) fn state(&self, item: &Item) -> State {
        let entry = self.entries.get(item);
        assert!(entry.is_none_or(|entry| entry.maybe.is_empty()), "{item:?} is not resolved");
        entry.map_or(State::Absent, |entry| entry.sure)
    }

    /// A write is pending.
    pub(crate) fn attempt(&mut self, item: &Item, state: State) {
        self.entries.entry(item.clone()).or_default().maybe.push(state);
    }

    /// The pending write was acknowledged.
    pub(crate) fn acknowledge(&mut self, item: &Item, state: State, stamp: Option<Stamp>) {
        let entry = self.entries.get_mut(item).expect("it was attempted");
        assert_eq!(entry.maybe.pop(), Some(state), "one write at a time");
        if let (Some(old), Some(new)) = (&entry.stamp, &stamp) {
            assert!(new.time > old.time && new.etag != old.etag, "{item:?}: {new:?} after {old:?}");
        }
        (entry.sure, entry.stamp) = (state, stamp);
    }

    /// The pending write was rejected and not executed.
    pub(crate) fn retract(&mut self, item: &Item) {
        self.entries.get_mut(item).expect("it was attempted").maybe.pop();
    }

    /// Compares the history with the stored contents.
    ///
    /// # Panics
    /// If an acknowledged write is missing or changed.
    pub(crate) fn check(&self, contents: &Contents) {
        for (item, entry) in &self.entries {
            let (state, stamp) = contents.of(item);
            let is_kept = state == entry.sure;
            let possible = is_kept || entry.maybe.contains(&state);
            assert!(possible, "{item:?} is {state:?}, acknowledged: {entry:?}");
            if let (Some(acknowledged), Some(found)) = (&entry.stamp, &stamp) {
                // The same write has the same version, a later one a later version.
                let possible = match is_kept {
                    true => found == acknowledged,
                    false => found.time > acknowledged.time,
                };
                assert!(possible, "{item:?}: {found:?}, acknowledged: {entry:?}");
            }
        }
    }

    /// Replaces the history by the stored contents, after a check.
    pub(crate) fn resolve(&mut self, contents: &Contents) {
        self.check(contents);
        for (item, entry) in &mut self.entries {
            (entry.sure, entry.stamp) = contents.of(item);
            entry.maybe.clear();
        }
    }

    /// The items.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.entries.keys()
    }
}
