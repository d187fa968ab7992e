//! The decisions of a group: in order, each on what is stored and what those before it wrote.

use std::collections::BTreeMap;

use bytes::Bytes;
use foldhash::{HashMap, HashSet};
use trestle_kv::{
    CommitError, Keyspaces, Version, Write,
    decide::{ChangeRules, decide},
};
use trestle_model::time::Ticks;

use crate::{clock::ProcessVersions, place, scheduler::WaitingChange};

/// A group ends with the change that takes what it writes to so many bytes.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Rows by keyspace, each once: the arguments of statements.
pub(crate) type RowsByKeyspace = Vec<Vec<Bytes>>;

/// The rows that the changes of a group read.
pub(crate) fn rows_read(changes: &[WaitingChange], keyspaces: &Keyspaces) -> RowsByKeyspace {
    let mut rows = vec![HashSet::default(); keyspaces.list().len()];
    for key in changes.iter().flat_map(|pending| pending.change.spec.reads.keys()) {
        if let Some(rows) = keyspaces.index_of(key).and_then(|index| rows.get_mut(index)) {
            rows.insert(place::place(key).row);
        }
    }
    rows.into_iter().map(|rows| rows.into_iter().collect()).collect()
}

/// What a group writes: for each key the last value, none where it is removed, and the version of the change.
pub(crate) type GroupWrites = BTreeMap<Bytes, (Option<Bytes>, Version)>;

/// What the decisions of a group returned.
#[derive(Default)]
pub(crate) struct DecidedGroup {
    /// Of each change that was decided, from the first on.
    pub(crate) outcomes: Vec<Result<DecidedOne, CommitError>>,
    pub(crate) writes: GroupWrites,
}

impl DecidedGroup {
    /// How many of its changes write something, and the bytes of what they write, each key once.
    pub(crate) fn written(&self) -> (u64, u64) {
        let wrote = |outcome: &&Result<DecidedOne, CommitError>| {
            outcome.as_ref().is_ok_and(|one| one.has_written)
        };
        let bytes = self.writes.iter().map(|(key, (value, _))| {
            key.len() as u64 + value.as_ref().map_or(0, |value| value.len() as u64)
        });
        (self.outcomes.iter().filter(wrote).count() as u64, bytes.sum())
    }
}

/// One decided change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecidedOne {
    pub(crate) version: Version,
    pub(crate) has_written: bool,
}

/// Decides changes on the stored rows, until enough is to be written.
pub(crate) fn decide_group(
    changes: &mut [WaitingChange],
    stored: &HashMap<Bytes, Bytes>,
    rules: &ChangeRules<'_>,
    held: &mut ProcessVersions,
    now: Ticks,
) -> DecidedGroup {
    let mut group = DecidedGroup::default();
    let mut bytes = 0_usize;
    for WaitingChange { change, .. } in changes {
        let current = |key: &Bytes| match group.writes.get(key) {
            Some((value, _)) => value.clone(),
            None => stored.get(&place::place(key).row).cloned(),
        };
        let current: Vec<_> = change.spec.reads.keys().iter().map(current).collect();
        let decided = decide(change, &current, rules, &mut held.versions, now);
        let outcome = decided.map(|decided| {
            let has_written = !decided.writes.is_empty();
            for write in decided.writes {
                bytes = bytes.saturating_add(write.key().len());
                let (key, value) = match write {
                    Write::Put { key, value } => (key, Some(value)),
                    Write::Delete { key } => (key, None),
                };
                bytes = bytes.saturating_add(value.as_ref().map_or(0, Bytes::len));
                group.writes.insert(key, (value, decided.version));
            }
            DecidedOne { version: decided.version, has_written }
        });
        group.outcomes.push(outcome);
        if bytes >= GROUP_BYTES_MAX {
            break;
        }
    }
    group
}

/// The rows that a group writes.
pub(crate) fn rows_written(writes: &GroupWrites, keyspaces: &Keyspaces) -> RowsByKeyspace {
    let mut rows = vec![Vec::new(); keyspaces.list().len()];
    for key in writes.keys() {
        if let Some(rows) = keyspaces.index_of(key).and_then(|index| rows.get_mut(index)) {
            rows.push(place::place(key).row);
        }
    }
    rows
}
