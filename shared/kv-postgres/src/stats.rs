//! Counters of the engine, for the export of metrics.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// What the engine did since it was opened, and what it has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresStats {
    /// Changes that wait for a worker now.
    pub queue_depth: u64,
    /// Changes that were rejected because too many waited.
    pub shed: u64,
    /// Bytes of keys and values in groups that were committed, after repeated writes of a key were merged.
    pub bytes: u64,
    /// Groups that were tried again, by the reason, in the order of [`RetryReason::ALL`].
    pub retries: [u64; RetryReason::ALL.len()],
    /// Changes of groups whose commit was not answered, and so unknown to their callers: they may be stored.
    pub unknown: u64,
    /// How long the oldest open snapshot has been open; zero without one. The database keeps every row that was
    /// changed or deleted since.
    pub oldest_snapshot: Duration,
    /// The connections of groups, of single reads, and of snapshots.
    pub connections: [ConnectionPool; 3],
}

/// Connections for one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionPool {
    /// What they are for.
    pub name: &'static str,
    /// Connections in use now, or waited for by a worker with a group. One of single reads is, once it is open: all
    /// reads share those.
    pub used: u64,
    /// Open connections that wait to be used.
    pub idle: u64,
    /// Most connections.
    pub max: u64,
}

/// Why a group is tried again; nothing of it was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryReason {
    /// It met another transaction.
    Serialization,
    /// It and another transaction waited for each other.
    Deadlock,
    /// It waited too long for a lock of another transaction.
    LockTimeout,
    /// The server has too little memory for its locks.
    LockTable,
    /// A row has a greater version, of a clock that was ahead.
    Version,
    /// The server became a standby.
    ReadOnly,
    /// The connection was lost before the commit, or cannot be made.
    Lost,
}

impl RetryReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Serialization,
        Self::Deadlock,
        Self::LockTimeout,
        Self::LockTable,
        Self::Version,
        Self::ReadOnly,
        Self::Lost,
    ];

    /// Its name, for metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serialization => "serialization",
            Self::Deadlock => "deadlock",
            Self::LockTimeout => "lock_timeout",
            Self::LockTable => "lock_table",
            Self::Version => "version",
            Self::ReadOnly => "read_only",
            Self::Lost => "connection",
        }
    }
}

/// What workers count.
#[derive(Default)]
pub(crate) struct WorkerCounters {
    pub(crate) shed: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) unknown: AtomicU64,
    /// Workers that commit a group.
    pub(crate) busy: AtomicU64,
    /// Workers that have a connection and wait for a group.
    pub(crate) idle: AtomicU64,
    retries: [AtomicU64; RetryReason::ALL.len()],
}

impl WorkerCounters {
    pub(crate) fn retried(&self, reason: RetryReason) {
        // The number of a reason is its place in `ALL`.
        if let Some(retries) = self.retries.get(reason as usize) {
            retries.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn retries(&self) -> [u64; RetryReason::ALL.len()] {
        self.retries.each_ref().map(|retries| retries.load(Relaxed))
    }
}

/// Counts what is under way, until it is dropped.
pub(crate) struct CountedWhile<'a>(&'a AtomicU64);

impl<'a> CountedWhile<'a> {
    pub(crate) fn new(counter: &'a AtomicU64) -> Self {
        counter.fetch_add(1, Relaxed);
        Self(counter)
    }
}

impl Drop for CountedWhile<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
