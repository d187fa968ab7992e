//! Counters of the engine, for the export of metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use trestle_kv::GroupWrite;

/// What the engine did since it was opened, and what it has to do.
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
    /// Changes that were rejected because of back-pressure or a full queue.
    pub shed: u64,
    /// Changes that wait for the committer now.
    pub queue_depth: u64,
    /// Times that the committer waited for compaction.
    pub stalls: u64,
    /// How long it waited.
    pub stall_time: Duration,
    /// Bytes of blocks in the cache now.
    pub cache_bytes: u64,
    /// Blocks that reads found in the cache.
    pub cache_hits: u64,
    /// Blocks that reads had to fetch from disk.
    pub cache_misses: u64,
    /// Bytes in memtables now.
    pub write_buffer_bytes: u64,
    /// Memtables that wait to be written as files now.
    pub flushes_waiting: u64,
    /// Compactions under way now.
    pub compactions_active: u64,
    /// Time spent compacting.
    pub compaction_time: Duration,
    /// Journal files now.
    pub journals: u64,
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
    stalls: AtomicU64,
    stall_nanos: AtomicU64,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Counters {
    pub(super) fn group(&self, GroupWrite { changes, took }: GroupWrite, bytes: u64) {
        let nanos = nanos(took);
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

    pub(super) fn stalled(&self, time: Duration) {
        self.stalls.fetch_add(1, Relaxed);
        self.stall_nanos.fetch_add(nanos(time), Relaxed);
    }

    /// What was counted here; the rest is zero.
    pub(super) fn read(&self) -> EngineStats {
        EngineStats {
            groups: self.groups.load(Relaxed),
            changes: self.changes.load(Relaxed),
            group_changes_max: self.group_changes_max.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            write_time: Duration::from_nanos(self.write_nanos.load(Relaxed)),
            write_time_max: Duration::from_nanos(self.write_nanos_max.load(Relaxed)),
            shed: self.shed.load(Relaxed),
            stalls: self.stalls.load(Relaxed),
            stall_time: Duration::from_nanos(self.stall_nanos.load(Relaxed)),
            ..EngineStats::default()
        }
    }
}
