//! The directory in which the command `backup create` requests checkpoints: a directory for each request.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tracing::warn;
use trestle_backup::{CHECKPOINT, FAILED, LOCK, READY, REQUEST};
use trestle_kv::replace_file;
use trestle_model::time::Ticks;

use crate::data_files;

/// How long a request is kept after the command touched it the last time: a command that was killed can be resumed
/// within it.
pub(super) const KEPT: Duration = Duration::from_secs(3600);
/// Longest name of a request.
const ID_CHARS_MAX: usize = 64;

/// What the directory of a request has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestState {
    pub(super) is_requested: bool,
    pub(super) is_ready: bool,
    pub(super) is_failed: bool,
    /// Whether it has a checkpoint, or a part of one.
    pub(super) has_checkpoint: bool,
    /// Whether the command has not touched it for so long that it is not resumed.
    pub(super) is_old: bool,
}

/// What the server does about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestAction {
    /// Nothing.
    Leave,
    /// Keeps the checkpoint, and the objects that its records name.
    Keep,
    /// Makes the checkpoint.
    Make,
    /// Ends the request, because the checkpoint keeps space from being freed.
    End,
    /// Removes the checkpoint of a request that has failed.
    Discard,
}

impl RequestState {
    /// What is due, unless the request is removed.
    pub(super) fn action(self, is_space_short: bool) -> RequestAction {
        match self {
            Self { is_failed: true, is_ready, has_checkpoint, .. } => {
                let is_discarded = !is_ready && !has_checkpoint;
                if is_discarded { RequestAction::Leave } else { RequestAction::Discard }
            }
            Self { is_ready: false, is_requested: false, .. } => RequestAction::Leave,
            _ if is_space_short => RequestAction::End,
            Self { is_ready: true, .. } => RequestAction::Keep,
            _ => RequestAction::Make,
        }
    }

    /// Whether the directory is removed once no command has it locked.
    pub(super) fn is_over(self) -> bool {
        self.is_failed || self.is_old
    }
}

/// A request.
#[derive(Debug)]
pub(super) struct SpooledRequest {
    pub(super) id: String,
    pub(super) state: RequestState,
    directory: PathBuf,
}

impl SpooledRequest {
    /// The requests in a directory, in the order of their names; none where it does not exist. What has another name
    /// than a request is not one.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub(super) fn every(spool: &Path, now: Ticks) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(spool) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut requests = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(id) = name.to_str().filter(|name| is_id(name)) else { continue };
            if entry.file_type()?.is_dir() {
                let (directory, id) = (entry.path(), id.to_owned());
                match RequestState::read(&directory, now) {
                    Ok(state) => requests.push(Self { id, state, directory }),
                    // The command has removed it, or another user made it, for whom the command refuses to work.
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                        ) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        requests.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Ok(requests)
    }

    /// Where its checkpoint is.
    pub(super) fn checkpoint(&self) -> PathBuf {
        self.directory.join(CHECKPOINT)
    }

    /// Removes it, unless a command has it locked; whether it was removed.
    ///
    /// # Errors
    /// A directory that cannot be removed.
    pub(super) fn remove(&self) -> io::Result<bool> {
        // The lock is held until the directory is removed, so that no command resumes what is being removed.
        let lock = File::options().write(true).open(self.directory.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => fs::remove_dir_all(&self.directory).map(|()| true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Reports to the command that the checkpoint is complete.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub(super) fn succeed(&self, report: &str) -> io::Result<()> {
        // The name of the checkpoint must not be lost where that of the response is not.
        File::open(&self.directory)?.sync_all()?;
        replace_file(&self.directory, READY, report.as_bytes())
    }

    /// Reports to the command why there is no checkpoint, and removes what there is of one.
    ///
    /// # Errors
    /// A directory that cannot be written; the checkpoint is removed if possible.
    pub(super) fn fail(&self, reason: &str) -> io::Result<()> {
        warn!(id = self.id, reason, "a backup is not possible");
        let reason = reason.replace(['\n', '\r'], " ");
        let reported = replace_file(&self.directory, FAILED, format!("{reason}\n").as_bytes());
        self.discard().and(reported)
    }

    /// Removes the checkpoint.
    ///
    /// # Errors
    /// Files that cannot be removed.
    pub(super) fn discard(&self) -> io::Result<()> {
        let ready = unless_absent(fs::remove_file(self.directory.join(READY)));
        unless_absent(fs::remove_dir_all(self.checkpoint())).and(ready)
    }
}

impl RequestState {
    fn read(directory: &Path, now: Ticks) -> io::Result<Self> {
        let has = |name: &str| directory.join(name).try_exists();
        // A directory without a lock is none of a command, or of one that was killed as it began.
        let touched = fs::metadata(directory.join(LOCK))?;
        Ok(Self {
            is_requested: has(REQUEST)?,
            is_ready: has(READY)?,
            is_failed: has(FAILED)?,
            has_checkpoint: has(CHECKPOINT)?,
            is_old: now.since(data_files::modified(&touched)?) > KEPT,
        })
    }
}

fn is_id(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=ID_CHARS_MAX).contains(&name.len()) && name.chars().all(is_allowed)
}

fn unless_absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
