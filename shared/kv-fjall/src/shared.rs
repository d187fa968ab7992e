//! What the parts of one open engine share: the database, its keyspaces, and whether it stopped.
//!
//! Snapshots hold it too, so the directory stays locked until the last of them is dropped.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use fjall::{Database, LsmError, PersistMode, SeqNo};

use super::backpressure;
use super::clean_shutdown::CleanShutdown;
use super::compactions;
use super::guard::{Room, SpaceGuard};
use super::hot_rows::HotKeys;
use super::open_views::OpenViews;
use super::options::{SpaceProbe, SyncObserver, SyncPolicy};
use super::read_epochs::ReadEpochs;
use super::stats::Counters;
use super::tombstones::TombstoneEstimate;
use super::written::Written;
use trestle_kv::GroupObserver;
use trestle_kv::keyspace::{Keyspaces, unknown_keyspace};
use trestle_kv::limits::Limits;
use trestle_kv::point::{CommitPoint, PointHook};
use trestle_kv::service_clock::ServiceClock;
use trestle_kv::turns::Turns;
use trestle_kv::{CommitError, EngineError, Write};
use trestle_model::time::Ticks;

/// Long scans that run at a time. One owner has at most all but one: a scan over what was deleted may take seconds.
const LONG_SCANS_MAX: usize = 4;

/// A keyspace that is open.
pub(super) struct Tree {
    pub(super) handle: fjall::Keyspace,
    /// Deletes that were written to it and may be in memory still.
    pub(super) deletes: AtomicU64,
    /// Size of the files that compactions write.
    pub(super) file_bytes: u64,
}

pub(super) struct EngineState {
    pub(super) keyspaces: Keyspaces,
    pub(super) limits: Limits,
    pub(super) clock: ServiceClock,
    /// The newest version that may have been given before this engine was opened.
    pub(super) version_floor: Ticks,
    /// One for each keyspace. Dropped before the database, and the database before the lock.
    pub(super) trees: Vec<Tree>,
    pub(super) database: Database,
    pub(super) path: PathBuf,
    pub(super) durability: SyncPolicy,
    /// Whether groups record their versions.
    pub(super) marks_groups: bool,
    pub(super) space: SpaceGuard,
    pub(super) probe: SpaceProbe,
    /// Whether the last probe failed, to log it once and not once a tick.
    is_blind: AtomicBool,
    /// Most bytes in memtables, over all keyspaces.
    pub(super) write_buffer_bytes: u64,
    /// Bytes of a memtable from which on it is flushed.
    pub(super) memtable_bytes: u64,
    /// Bytes in memtables when a group was last formed, with those that are flushed and not released yet.
    pub(super) buffered_bytes: AtomicU64,
    pub(super) written: Written,
    pub(super) reads: ReadEpochs,
    pub(super) views: OpenViews,
    pub(super) long_scans: Turns,
    pub(super) counters: Counters,
    pub(super) on_group: GroupObserver,
    pub(super) on_sync: SyncObserver,
    pub(super) on_point: Option<PointHook>,
    pub(super) tombstones: TombstoneEstimate,
    /// Set by the committer, read by requests.
    pub(super) hot_keys: HotKeys,
    /// Set by the housekeeper, reset by the committer.
    pub(super) heartbeat_due: AtomicBool,
    /// Number of the last group whose writes can be read.
    visible_group: AtomicU64,
    stopped: OnceLock<Arc<str>>,
    /// Dropped after the database and before the lock.
    closing: CleanShutdown,
    _lock: File,
}

/// What [`EngineState`] is made of.
pub(super) struct EngineParts {
    pub(super) keyspaces: Keyspaces,
    pub(super) clock: ServiceClock,
    pub(super) version_floor: Ticks,
    pub(super) trees: Vec<Tree>,
    pub(super) database: Database,
    pub(super) path: PathBuf,
    pub(super) durability: SyncPolicy,
    pub(super) marks_groups: bool,
    pub(super) space: SpaceGuard,
    pub(super) probe: SpaceProbe,
    pub(super) write_buffer_bytes: u64,
    pub(super) memtable_bytes: u64,
    pub(super) on_group: GroupObserver,
    pub(super) on_sync: SyncObserver,
    pub(super) on_point: Option<PointHook>,
    pub(super) lock: File,
}

impl EngineState {
    pub(super) fn new(parts: EngineParts) -> Self {
        let closing = CleanShutdown::of(&parts.path);
        Self {
            tombstones: TombstoneEstimate::of(&parts.trees),
            keyspaces: parts.keyspaces,
            limits: Limits::default(),
            clock: parts.clock,
            version_floor: parts.version_floor,
            trees: parts.trees,
            database: parts.database,
            path: parts.path,
            durability: parts.durability,
            marks_groups: parts.marks_groups,
            space: parts.space,
            probe: parts.probe,
            is_blind: AtomicBool::new(false),
            write_buffer_bytes: parts.write_buffer_bytes,
            memtable_bytes: parts.memtable_bytes,
            buffered_bytes: AtomicU64::new(0),
            written: Written::after(parts.version_floor),
            reads: ReadEpochs::default(),
            views: OpenViews::default(),
            long_scans: Turns::new(LONG_SCANS_MAX, LONG_SCANS_MAX - 1),
            counters: Counters::default(),
            on_group: parts.on_group,
            on_sync: parts.on_sync,
            on_point: parts.on_point,
            hot_keys: HotKeys::default(),
            heartbeat_due: AtomicBool::new(true),
            visible_group: AtomicU64::new(0),
            stopped: OnceLock::new(),
            closing,
            _lock: parts.lock,
        }
    }

    /// The tree that holds a key.
    pub(super) fn tree(&self, key: &[u8]) -> Option<&Tree> {
        self.trees.get(self.keyspaces.index_of(key)?)
    }

    /// How a group is synced.
    pub(super) fn persist_mode(&self) -> PersistMode {
        match self.durability {
            SyncPolicy::Always => PersistMode::SyncData,
            SyncPolicy::Interval(_) | SyncPolicy::Os => PersistMode::Buffer,
        }
    }

    /// A point in the path of a commit is reached.
    ///
    /// # Errors
    /// The failure of a hook there.
    pub(super) fn reach(&self, point: CommitPoint) -> Result<(), Arc<str>> {
        self.on_point.as_ref().map_or(Ok(()), |hook| hook(point))
    }

    /// The newest value of a key.
    pub(super) fn newest(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let tree = self.tree(key).ok_or_else(|| unknown_keyspace(key))?;
        let value = tree.handle.get(key).map_err(|error| read_failed(&error))?;
        Ok(value.map(Bytes::from))
    }

    /// Bytes in memtables now, with those that are flushed and not released yet.
    pub(super) fn measure_buffered(&self) -> u64 {
        self.trees.iter().map(backpressure::buffered_bytes).sum()
    }

    /// Measures free space, and what is in flight to it. Returns the bytes in memtables.
    pub(super) fn measure_space(&self) -> u64 {
        let buffered_bytes = self.measure_buffered();
        match self.space.measure(buffered_bytes, || (self.probe)(&self.path)) {
            Ok(()) => self.is_blind.store(false, Ordering::Relaxed),
            Err(error) => {
                if !self.is_blind.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "free disk space cannot be measured");
                }
            }
        }
        let outputs = self.trees.iter().map(compactions::outputs);
        let (next, due) =
            outputs.fold((0, 0), |(next, due), of_tree| (of_tree.0.max(next), of_tree.1.max(due)));
        self.space.measured_compaction(next, due);
        buffered_bytes
    }

    /// Whether memtables may be flushed: a compaction of the database that follows fits into what is free.
    pub(super) fn may_flush(&self) -> bool {
        let buffered_bytes = self.measure_space();
        self.space.has_flush_room(buffered_bytes)
    }

    /// Whether free space could not be measured.
    pub(super) fn is_blind(&self) -> bool {
        self.is_blind.load(Ordering::Relaxed)
    }

    /// Whether there is room for writes beside those of the group that is formed, in bytes.
    ///
    /// # Errors
    /// [`CommitError::Full`] where space is short.
    pub(super) fn admit(
        &self,
        writes: &[Write],
        gives_back: bool,
        in_group: u64,
    ) -> Result<Room, CommitError> {
        let mut buffered_bytes = self.buffered_bytes.load(Ordering::Relaxed);
        if self.space.is_stale(buffered_bytes) {
            buffered_bytes = self.measure_space();
        }
        self.space.admit(writes, gives_back, buffered_bytes.saturating_add(in_group))
    }

    /// The sequence number that every open snapshot has passed, once those of before this call are closed; none if one
    /// is still open after `within`.
    pub(super) fn watermark(&self, within: Duration) -> Option<SeqNo> {
        let visible = self.database.visible_seqno();
        self.reads.pass(within).then_some(visible)
    }

    /// Removes files and memtables that were replaced and that no snapshot needs any more. Those of snapshots that stay
    /// open for `within` are left to the next call; false if there are any.
    pub(super) fn release_files(&self, within: Duration) -> bool {
        if self.trees.iter().all(|tree| !compactions::has_replaced(tree)) {
            return true;
        }
        let Some(watermark) = self.watermark(within) else { return false };
        for tree in &self.trees {
            if let Err(error) = compactions::release_files(tree, watermark) {
                not_now(&error, "replaced files cannot be removed now");
            }
        }
        true
    }

    /// The number of a group that was committed; everything it wrote can be read from here on.
    pub(super) fn visible_group(&self) -> u64 {
        self.visible_group.load(Ordering::Acquire)
    }

    /// Notes that the writes of a group can be read.
    pub(super) fn show_group(&self, number: u64) {
        self.visible_group.store(number, Ordering::Release);
    }

    /// Why no write is accepted any more, if so.
    pub(super) fn stopped(&self) -> Option<Arc<str>> {
        self.stopped.get().cloned()
    }

    /// Accepts no write any more. The first reason stays.
    pub(super) fn stop(&self, reason: Arc<str>) {
        if self.stopped.set(reason).is_err() {
            return;
        }
        if let Some(reason) = self.stopped.get() {
            tracing::error!(%reason, path = %self.path.display(), "storage stops taking writes");
        }
    }

    pub(super) fn check_running(&self) -> Result<(), CommitError> {
        self.stopped().map_or(Ok(()), |reason| Err(CommitError::Stopped { reason }))
    }
}

impl Drop for EngineState {
    fn drop(&mut self) {
        // The database swallows the error of its last sync.
        let synced = || self.database.persist(PersistMode::SyncAll).is_ok();
        self.closing.is_sound = self.stopped.get().is_none() && synced();
    }
}

/// Logs that work in the background has to wait. A database that rejects every write is not logged here, once for each
/// keyspace: the next commit or sync stops the engine, which logs why.
pub(super) fn not_now(error: &fjall::Error, what: &'static str) {
    if !matches!(error, fjall::Error::Poisoned) {
        let error = error_text(error);
        tracing::warn!(%error, "{what}");
    }
}

/// The text of an error of the database, for people: its own is its structure in Rust.
pub(super) fn error_text(error: &fjall::Error) -> String {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => error.to_string(),
        fjall::Error::Storage(error) => match error {
            LsmError::ChecksumMismatch { .. } => "checksum mismatch of a block".to_owned(),
            LsmError::Decompress(_) => "a block cannot be decompressed".to_owned(),
            LsmError::Unrecoverable => "a file is missing or malformed".to_owned(),
            LsmError::InvalidVersion(version) => {
                format!("unknown version of the format: version=`{version}`")
            }
            LsmError::InvalidTag((name, value)) => {
                format!("invalid value: field=`{name}`, value=`{value}`")
            }
            LsmError::InvalidHeader(name) => format!("invalid header of a block: field=`{name}`"),
            _ => "malformed block".to_owned(),
        },
        other => match other.to_string().strip_prefix("FjallError: ") {
            Some(text) => text.to_owned(),
            None => other.to_string(),
        },
    }
}

/// An error of the file system may be temporary; a block that does not check out will not.
pub(super) fn read_failed(error: &fjall::Error) -> EngineError {
    let reason: Arc<str> = error_text(error).into();
    match error {
        fjall::Error::Io(_) | fjall::Error::Storage(LsmError::Io(_)) => {
            EngineError::Unavailable { reason }
        }
        _ => EngineError::Corrupt { reason },
    }
}
