//! The change log of an open store: its journals, linked into another directory, and how far everything is committed.
//!
//! A journal has every group as it was committed, in order, and is deleted once tables have what it holds. A link keeps
//! it. Nothing is copied and nothing is written on the way of a commit but a row for each group, see `marks`. What is
//! linked is read in another process, by [`crate::ChangeReader`].

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::inventory::DATABASE;
use super::journal::{self, GroupReader};
use super::links;
use super::log_position::LogPosition;
use super::shared::EngineState;
use trestle_model::time::Ticks;

/// How often it is begun anew where the database rotates its journals meanwhile, which takes 64 MB each.
const ATTEMPTS: usize = 100;

/// The change log of an engine. Clones share it. It does not keep the store open.
#[derive(Clone)]
pub struct ChangeLog(pub(super) Weak<EngineState>);

/// How far a change log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// Everything that was committed is before it, and no part of anything else.
    pub position: LogPosition,
    /// The newest version before it. Every group with rows after it has a greater one.
    pub newest: Ticks,
    /// The engine's time when nothing was after it. Every change that was acknowledged by then is before the position;
    /// one that was being decided may get a version up to this time and come after it.
    pub now: Ticks,
}

/// A change log that cannot be linked or read.
#[derive(Debug, thiserror::Error)]
pub enum ChangeLogError {
    /// The engine ended.
    #[error("the change log needs an open store: the store is closed")]
    Closed,
    /// A write of the engine failed, so where its journal ends is unclear.
    #[error("the change log needs a store that takes writes: {reason}")]
    Stopped {
        /// The first failure.
        reason: Arc<str>,
    },
    /// The directory is on another file system, or on one without hard links, or a journal has too many of them.
    #[error(
        "the change log needs hard links from its directory to the journals of the store, on one file system that \
         has them: path=`{}`",
        path.display()
    )]
    Links {
        /// The directory of the links.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file system rejected.
    #[error("the change log cannot be accessed: path=`{}`", path.display())]
    Io {
        /// The directory of the links, or a journal.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// There is no such journal.
    #[error("a journal of the change log is missing: path=`{}`", path.display())]
    Missing {
        /// The journal.
        path: PathBuf,
    },
    /// The bytes before the position are not of the group that it was made after: it is of another store, or what was
    /// there was lost and written anew.
    #[error("the change log has another group before the position: position=`{position}`, {found}")]
    WrongCheck {
        /// The position.
        position: LogPosition,
        /// What is there, for people.
        found: String,
    },
    /// What is read up to is before what was read.
    #[error("the change log was read to a later position: position=`{position}`, end=`{end}`")]
    PastEnd {
        /// Where reading is.
        position: LogPosition,
        /// Where it was to end.
        end: LogPosition,
    },
    /// There is no whole group at the position, although one was committed there, or it contradicts the one before it.
    #[error("the change log is damaged: position=`{position}`, {reason}")]
    Damaged {
        /// Before the damage.
        position: LogPosition,
        /// What is damaged, for people.
        reason: String,
    },
    /// A group has rows of a service and no version: the engine did not mark its groups.
    #[error("a group of the change log has no version: position=`{position}`")]
    Unmarked {
        /// Before the group.
        position: LogPosition,
    },
    /// A group has an item that an engine of this release does not write.
    #[error(
        "the change log has what this release does not support: position=`{position}`, {reason}"
    )]
    Unsupported {
        /// Before the group.
        position: LogPosition,
        /// The item, for people.
        reason: String,
    },
}

impl ChangeLog {
    /// Links every journal of the store into a directory, which is made if it does not exist, on the file system of the
    /// store; and returns how far everything is committed. Call it right after the engine was opened, as a recovery may
    /// have written journals anew, and from then on about twice a second, before the database deletes one that it
    /// began since the last call.
    ///
    /// Blocks; call it where a thread may. Commits wait only while the end of the newest journal is found, some tens of
    /// microseconds.
    ///
    /// What is before the position is as durable as the engine is configured. Where it does not sync each group, a
    /// crash of the machine may lose some of it, and [`ChangeLogError::WrongCheck`] or [`ChangeLogError::Damaged`]
    /// reports that.
    ///
    /// # Errors
    /// [`ChangeLogError::Closed`], [`ChangeLogError::Stopped`], [`ChangeLogError::Links`], [`ChangeLogError::Io`] and
    /// [`ChangeLogError::Damaged`].
    pub fn link(&self, into: &Path) -> Result<LogEnd, ChangeLogError> {
        let store = self.0.upgrade().ok_or(ChangeLogError::Closed)?;
        let failed = |source| ChangeLogError::Io { path: into.to_owned(), source };
        fs::create_dir_all(into).map_err(failed)?;
        for _ in 0..ATTEMPTS {
            let linked = links::link(&store.path.join(DATABASE), into);
            let linked = linked.map_err(|source| link_failed(into, source))?;
            let newest = linked.last().copied().ok_or(io::ErrorKind::NotFound);
            if let Some(end) = end(&store, into, newest.map_err(|kind| failed(kind.into()))?)? {
                return Ok(end);
            }
        }
        let reason = "the database rotates its journals all the time";
        Err(failed(io::Error::new(io::ErrorKind::ResourceBusy, reason)))
    }
}

/// The end of the log, if it is in this journal and stays there until it is found.
fn end(store: &EngineState, into: &Path, number: u64) -> Result<Option<LogEnd>, ChangeLogError> {
    let path = into.join(journal::file_name(number));
    let failed = |source| ChangeLogError::Io { path: path.clone(), source };
    let file = File::open(&path).map_err(failed)?;
    let is_newest = || {
        let numbers = journal::list(&store.path.join(DATABASE)).map_err(failed)?;
        Ok::<_, ChangeLogError>(numbers.last() == Some(&number))
    };
    let written = store.written.lock();
    let since = Instant::now();
    if let Some(reason) = store.stopped() {
        return Err(ChangeLogError::Stopped { reason });
    }
    let offset = journal::written(&file).map_err(failed)?;
    // A rotation needs no group: it may have come before the lock and after it.
    if !is_newest()? {
        return Ok(None);
    }
    let (newest, now) = (written.newest(), store.clock.now());
    drop(written);
    tracing::trace!(held_us = since.elapsed().as_micros(), "writes waited for the change log");
    if offset == 0 {
        let position = LogPosition::at_start_of(number);
        return Ok(Some(LogEnd { position, newest, now }));
    }
    let check = GroupReader::new(file, offset).check_before(offset).map_err(failed)?;
    let position = LogPosition::new(number, offset, check.unwrap_or_default());
    match check {
        Some(_) => Ok(Some(LogEnd { position, newest, now })),
        None => {
            let reason = "it does not end with a whole group".to_owned();
            Err(ChangeLogError::Damaged { position, reason })
        }
    }
}

fn link_failed(into: &Path, source: io::Error) -> ChangeLogError {
    let path = into.to_owned();
    match source.kind() {
        io::ErrorKind::CrossesDevices
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::TooManyLinks
        | io::ErrorKind::Unsupported => ChangeLogError::Links { path, source },
        _ => ChangeLogError::Io { path, source },
    }
}
