//! What the parts of one open engine share: the database, its keyspaces, and whether it stopped.
//!
//! Snapshots hold it too, so the directory stays locked until the last of them is gone.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use fjall::{Database, LsmError};

use super::clean_shutdown::CleanShutdown;
use super::guard::SpaceGuard;
use super::options::{GroupObserver, SyncObserver, SyncPolicy};
use super::point::{CommitPoint, PointHook};
use super::stats::Counters;
use super::tombstones::TombstoneEstimate;
use crate::keyspace::{Keyspaces, unknown_keyspace};
use crate::limits::Limits;
use crate::time::{Clock, Ticks};
use crate::{CommitError, EngineError};

/// A keyspace that is open.
pub(super) struct Tree {
    pub(super) handle: fjall::Keyspace,
}

pub(super) struct EngineState {
    pub(super) keyspaces: Keyspaces,
    pub(super) limits: Limits,
    pub(super) clock: Arc<dyn Clock>,
    /// The newest version that may have been given before this engine was opened.
    pub(super) version_floor: Ticks,
    /// One for each keyspace. Dropped before the database, and the database before the lock.
    pub(super) trees: Vec<Tree>,
    pub(super) database: Database,
    pub(super) path: PathBuf,
    pub(super) durability: SyncPolicy,
    pub(super) space: SpaceGuard,
    pub(super) counters: Counters,
    pub(super) on_group: GroupObserver,
    pub(super) on_sync: SyncObserver,
    pub(super) on_point: Option<PointHook>,
    pub(super) tombstones: TombstoneEstimate,
    /// Set by the housekeeper, taken by the committer.
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
    pub(super) clock: Arc<dyn Clock>,
    pub(super) version_floor: Ticks,
    pub(super) trees: Vec<Tree>,
    pub(super) database: Database,
    pub(super) path: PathBuf,
    pub(super) durability: SyncPolicy,
    pub(super) space: SpaceGuard,
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
            space: parts.space,
            counters: Counters::default(),
            on_group: parts.on_group,
            on_sync: parts.on_sync,
            on_point: parts.on_point,
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

    /// The number of a group that was committed; everything it wrote can be read from here on.
    pub(super) fn visible_group(&self) -> u64 {
        self.visible_group.load(Ordering::Acquire)
    }

    /// Notes that the writes of a group can be read.
    pub(super) fn show_group(&self, number: u64) {
        self.visible_group.store(number, Ordering::Release);
    }

    /// Why no write is taken any more, if so.
    pub(super) fn stopped(&self) -> Option<Arc<str>> {
        self.stopped.get().cloned()
    }

    /// Takes no write any more. The first reason stays.
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
        self.closing.is_sound = self.stopped.get().is_none();
    }
}

/// The text of an error of the database, for people: its own is its structure in Rust.
pub(super) fn error_text(error: &fjall::Error) -> String {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => error.to_string(),
        other => match other.to_string().strip_prefix("FjallError: ") {
            Some(text) => text.to_owned(),
            None => other.to_string(),
        },
    }
}

/// A refusal of the file system may pass; a block that does not check out will not.
pub(super) fn read_failed(error: &fjall::Error) -> EngineError {
    let reason: Arc<str> = error_text(error).into();
    match error {
        fjall::Error::Io(_) | fjall::Error::Storage(LsmError::Io(_)) => {
            EngineError::Unavailable { reason }
        }
        _ => EngineError::Corrupt { reason },
    }
}
