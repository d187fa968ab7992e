//! Counters of the committer, for whoever exports metrics. They only ever grow, except the
//! depth of the queue.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What the committer did since the engine was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineStats {
    /// Groups that were written.
    pub groups: u64,
    /// Changes that wrote something in those groups.
    pub changes: u64,
    /// Most changes that wrote something in one group.
    pub group_changes_max: u64,
    /// Bytes of keys and values in those groups, after repeated writes of a key were merged.
    pub bytes: u64,
    /// Time that writing and syncing those groups took.
    pub write_time: Duration,
    /// Longest time that one group took.
    pub write_time_max: Duration,
    /// Changes that were turned away because of back-pressure or a full queue.
    pub shed: u64,
    /// Changes that wait for the committer now.
    pub queue_depth: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    groups: AtomicU64,
    changes: AtomicU64,
    group_changes_max: AtomicU64,
    bytes: AtomicU64,
    write_nanos: AtomicU64,
    write_nanos_max: AtomicU64,
    shed: AtomicU64,
}

impl Counters {
    pub(super) fn group(&self, changes: u64, bytes: u64, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.groups.fetch_add(1, Relaxed);
        self.changes.fetch_add(changes, Relaxed);
        self.group_changes_max.fetch_max(changes, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.write_nanos.fetch_add(nanos, Relaxed);
        self.write_nanos_max.fetch_max(nanos, Relaxed);
    }

    pub(super) fn shed(&self) {
        self.shed.fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self, queue_depth: u64) -> EngineStats {
        EngineStats {
            groups: self.groups.load(Relaxed),
            changes: self.changes.load(Relaxed),
            group_changes_max: self.group_changes_max.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            write_time: Duration::from_nanos(self.write_nanos.load(Relaxed)),
            write_time_max: Duration::from_nanos(self.write_nanos_max.load(Relaxed)),
            shed: self.shed.load(Relaxed),
            queue_depth,
        }
    }
}
