//! How a command requests a checkpoint of a data directory: by a directory in it.
//!
//! The command makes `backup/ID` and locks `LOCK` in it for as long as it runs. Then it creates `REQUEST`. The server
//! answers by `kv`, the checkpoint, and `READY`, or by `FAILED` with a reason. Who may write in the data directory
//! may back it up, and no client may: no listener is involved. Without a server the command answers itself, under the
//! lock of the store.
//!
//! A checkpoint whose command was killed stays for an hour, and the next command to the same target continues with it.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use trestle_command::errors::CliError;
use trestle_kv::{Engine as _, replace_file};
use trestle_kv_fjall::{FjallEngine, FjallOptions, OpenError};
use trestle_model::time::Ticks;

use crate::{args::ServerArgs, manifest, rules::DataDirectory};

/// The directory of all requests in a data directory.
pub const SPOOL: &str = "backup";
/// The file that a command locks.
pub const LOCK: &str = "LOCK";
/// The file of the request.
pub const REQUEST: &str = "REQUEST";
/// The file of an answer, a [`CheckpointAnswer`] as JSON.
pub const READY: &str = "READY";
/// The file of a reason why there is no answer.
pub const FAILED: &str = "FAILED";
/// The directory of a checkpoint.
pub const CHECKPOINT: &str = "kv";
/// The target that a checkpoint is for.
const TARGET: &str = "TARGET";

/// How often a command looks for the answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a server may take to answer: it waits for flushes.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointAnswer {
    /// 1.
    pub format: u32,
    /// The instant, in ticks.
    pub at: u64,
    /// The newest version in the checkpoint; absent from the answers of earlier versions.
    #[serde(default)]
    pub newest: Option<u64>,
    /// The random id of the data directory.
    pub store_id: String,
}

/// A request.
pub(crate) struct Spool {
    directory: PathBuf,
    lock: File,
    /// Whether an earlier command made it.
    pub(crate) is_resumed: bool,
    /// Who runs the command.
    server: ServerArgs,
}

impl Spool {
    /// Requests a checkpoint, or continues with one that a killed command got for the same target.
    ///
    /// # Errors
    /// A data directory that cannot be written.
    pub(crate) fn begin(data_dir: &Path, id: &str, target: &str) -> Result<Self, CliError> {
        let spool = data_dir.join(SPOOL);
        let failed =
            CliError::file(format!("cannot request a checkpoint in `{}`", spool.display()));
        let begun = || match unfinished(&spool, target)? {
            Some(found) => Ok(found),
            None => {
                match fs::create_dir(&spool) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => {}
                }
                let directory = spool.join(id);
                fs::create_dir(&directory)?;
                let lock = File::create_new(directory.join(LOCK))?;
                lock.try_lock().map_err(io::Error::from)?;
                fs::write(directory.join(TARGET), target)?;
                File::create_new(directory.join(REQUEST))?;
                Ok(Self { directory, lock, is_resumed: false, server: ServerArgs::default() })
            }
        };
        begun().map_err(failed)
    }

    /// The same for a command that a server runs: it ends with that, and leaves the store to the next one.
    pub(crate) fn run_by(self, server: ServerArgs) -> Self {
        Self { server, ..self }
    }

    /// Waits for the answer. Without a server, this process gives it.
    ///
    /// # Errors
    /// A reason why there is no checkpoint.
    pub(crate) async fn answer(&self, store: &DataDirectory) -> Result<CheckpointAnswer, CliError> {
        let since = tokio::time::Instant::now();
        loop {
            if let Some(answer) = self.found()? {
                return Ok(answer);
            }
            match self.server.is_given() {
                true => self.check_server()?,
                false if self.answer_alone(store).await? => continue,
                // A server has the store.
                false => {}
            }
            if since.elapsed() > ANSWERS_WITHIN {
                return Err(failed(
                    "the server that has the data directory does not answer: is it of an earlier version?",
                ));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Answers in the place of a server; whether there was none.
    async fn answer_alone(&self, store: &DataDirectory) -> Result<bool, CliError> {
        let (store, directory) = (store.clone(), self.directory.clone());
        let own = tokio::task::spawn_blocking(move || answer_alone(&store, &directory)).await;
        match own.map_err(|error| failed(&error.to_string()))? {
            Err(OpenError::Locked { .. }) => Ok(false),
            Err(error) => Err(failed(&error.to_string())),
            Ok(Err(reason)) => Err(failed(&reason)),
            Ok(Ok(())) => Ok(true),
        }
    }

    fn check_server(&self) -> Result<(), CliError> {
        match self.server.has_ended() {
            true => Err(failed("the server that runs this command has ended")),
            false => Ok(()),
        }
    }

    fn found(&self) -> Result<Option<CheckpointAnswer>, CliError> {
        let read = |name| match fs::read_to_string(self.directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => text.map(Some).map_err(CliError::file("cannot read the answer of the server")),
        };
        if let Some(reason) = read(FAILED)? {
            return Err(failed(reason.trim()));
        }
        let Some(text) = read(READY)? else { return Ok(None) };
        let answer: Result<CheckpointAnswer, _> = serde_json::from_str(&text);
        answer.map(Some).map_err(|error| failed(&format!("the answer is malformed: {error}")))
    }

    /// Whether the checkpoint is still there: the server gives it up where space is short.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        self.check_server()?;
        let touched = touch(&self.lock);
        touched.map_err(CliError::file("cannot keep the checkpoint"))?;
        match self.found()? {
            Some(_) => Ok(()),
            None => Err(failed("the server gave the checkpoint up")),
        }
    }

    /// The id of the request, also of one that is continued.
    pub(crate) fn id(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// How long ago the request was made, by the clock of the file system.
    ///
    /// # Errors
    /// It was removed.
    pub(crate) fn age(&self) -> Result<Duration, CliError> {
        let age = || {
            let made = fs::metadata(self.directory.join(TARGET))?.modified()?;
            Ok(self.lock.metadata()?.modified()?.duration_since(made).unwrap_or_default())
        };
        age().map_err(CliError::file("cannot keep the checkpoint"))
    }

    /// The rows of the checkpoint.
    pub(crate) fn rows(&self) -> PathBuf {
        self.directory.join(CHECKPOINT)
    }

    /// Gives the checkpoint back.
    ///
    /// # Errors
    /// A directory that cannot be removed.
    pub(crate) fn end(self) -> Result<(), CliError> {
        // First, so that a server does not see a request without an answer.
        let removed = fs::remove_file(self.directory.join(REQUEST));
        let removed = removed.and_then(|()| fs::remove_dir_all(&self.directory));
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(CliError::file(format!(
                "cannot remove the checkpoint `{}`",
                self.directory.display()
            ))(error)),
            _ => Ok(()),
        }
    }
}

/// Sets the time of a file to now, by the clock of the file system.
fn touch(file: &File) -> io::Result<()> {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
    Ok(rustix::fs::futimens(file, &times)?)
}

fn failed(reason: &str) -> CliError {
    CliError::Source { text: format!("no checkpoint of the data directory: {reason}"), busy: false }
}

/// A checkpoint for this target that no command uses.
fn unfinished(spool: &Path, target: &str) -> io::Result<Option<Spool>> {
    let entries = match fs::read_dir(spool) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let directory = entry?.path();
        let is_ours = fs::read_to_string(directory.join(TARGET)).is_ok_and(|it| it == target);
        if !is_ours || !directory.join(READY).is_file() || directory.join(FAILED).exists() {
            continue;
        }
        let Ok(lock) = File::options().write(true).open(directory.join(LOCK)) else { continue };
        // The server may have removed the directory before the lock was there.
        let is_there = || {
            let path = fs::metadata(directory.join(LOCK))?;
            Ok::<_, io::Error>(path.ino() == lock.metadata()?.ino())
        };
        if lock.try_lock().is_ok() && is_there().unwrap_or(false) {
            touch(&lock)?;
            let server = ServerArgs::default();
            return Ok(Some(Spool { directory, lock, is_resumed: true, server }));
        }
    }
    Ok(None)
}

/// Makes the checkpoint under the lock of the store.
fn answer_alone(store: &DataDirectory, directory: &Path) -> Result<Result<(), String>, OpenError> {
    let rows = store.path.join(store.rules.engine_dir);
    let engine = FjallEngine::open(FjallOptions::new(&rows, store.rules.keyspaces.clone()))?;
    // All that was acknowledged by now is in it; the newest change may be long ago.
    let now = engine.now();
    let made = engine.checkpointer().make(&directory.join(CHECKPOINT));
    Ok(made.map_err(|error| error.to_string()).and_then(|made| {
        let store_id = (store.rules.store_id)(&store.path).map_err(|error| error.to_string())?;
        let answer = CheckpointAnswer::new(made.at.max(now), made.at, store_id);
        answer.write(directory).map_err(|error| error.to_string())
    }))
}

impl CheckpointAnswer {
    /// An answer with all changes up to an instant, and the version of the newest of them.
    #[must_use]
    pub fn new(at: Ticks, newest: Ticks, store_id: String) -> Self {
        Self { format: 1, at: at.get(), newest: Some(newest.get()), store_id }
    }

    /// What [`READY`] contains.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// Writes it, whole or not at all, and for good.
    fn write(&self, directory: &Path) -> io::Result<()> {
        replace_file(directory, READY, self.text().as_bytes())
    }

    /// The instant for people.
    pub(crate) fn instant(&self) -> String {
        Ticks::new(self.at).map_or_else(String::new, manifest::time_text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> CheckpointAnswer {
        let at = Ticks::new(133_000_000_000_000_000).unwrap();
        CheckpointAnswer::new(at, Ticks::new(7).unwrap(), "a".to_owned())
    }

    #[test]
    fn a_checkpoint_of_a_killed_command_is_found_by_the_next_to_the_same_target() {
        let data_dir = tempfile::tempdir().unwrap();
        let begin = |id: &str, target: &str| Spool::begin(data_dir.path(), id, target).unwrap();
        let first = begin("a", "s3://x");
        answer().write(&first.directory).unwrap();
        let beside = begin("b", "s3://x");
        assert!(!beside.is_resumed, "the first is still at work");
        drop(first);

        assert!(!begin("c", "s3://y").is_resumed, "another target");
        let resumed = begin("d", "s3://x");
        assert!(resumed.is_resumed && resumed.directory.ends_with("a"));
        resumed.check().unwrap();
        let path = resumed.directory.clone();
        resumed.end().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_command_of_a_server_ends_with_it() {
        let data_dir = tempfile::tempdir().unwrap();
        let server = |pid: &str| {
            use clap::Parser as _;
            #[derive(clap::Parser)]
            struct Line {
                #[command(flatten)]
                server: ServerArgs,
            }
            Line::try_parse_from(["create", "--server-pid", pid]).unwrap().server
        };
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        let spool = Spool::begin(data_dir.path(), "a", "s3://x").unwrap();
        answer().write(&spool.directory).unwrap();
        let spool = spool.run_by(server(&parent.to_string()));
        spool.check().unwrap();
        // No process has this number.
        let error = spool.run_by(server("2147483647")).check().unwrap_err().to_string();
        assert!(error.ends_with("the server that runs this command has ended"), "{error}");
    }

    #[test]
    fn a_checkpoint_that_the_server_gave_up_is_an_error() {
        let data_dir = tempfile::tempdir().unwrap();
        let spool = Spool::begin(data_dir.path(), "a", "s3://x").unwrap();
        assert!(spool.check().is_err(), "no answer yet");
        answer().write(&spool.directory).unwrap();
        assert_eq!(spool.found().unwrap(), Some(answer()));
        fs::write(spool.directory.join(FAILED), "space is short\n").unwrap();
        let error = spool.check().unwrap_err().to_string();
        assert!(error.ends_with("directory: space is short"), "{error}");
        drop(spool);
        assert!(!Spool::begin(data_dir.path(), "b", "s3://x").unwrap().is_resumed);
    }
}
