//! The progress of a command of many calls, stored in a file so that an interrupted command can be
//! resumed.
//!
//! One format for every command: a version, the job that the progress belongs to (server, source, target, options),
//! the hash of what was read of a source file, and the state of the command.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::Instant;

use crate::{errors::CliError, files, output::report_line};

mod prefix;

use prefix::Prefix;

const VERSION: u32 = 1;
/// How often progress is written.
const SAVE_EVERY: Duration = Duration::from_millis(500);

/// The state from which a command resumes.
pub trait CheckpointState: Serialize + DeserializeOwned {
    /// The command, as messages name it.
    const COMMAND: &'static str;

    /// Bytes at the start of the source file that are completed.
    fn source_bytes(&self) -> u64 {
        0
    }
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Record<J, S> {
    version: u32,
    job: J,
    /// The hash of the completed bytes of the source file, if there is one.
    source_hash: Option<String>,
    state: S,
}

/// The state of a command and its file.
pub struct Checkpoint<S> {
    /// The state that is saved.
    pub state: S,
    job: Value,
    file: Option<CheckpointFile>,
    saved: Instant,
    /// Whether it was reported that the file cannot be written.
    is_unsaved: bool,
}

struct CheckpointFile {
    path: PathBuf,
    source: Option<Prefix>,
    /// Whether it is on disk.
    exists: bool,
}

impl<S: CheckpointState> Checkpoint<S> {
    /// The start of a job, which is a JSON object. It is not stored yet: a pipe cannot be read again.
    #[must_use]
    pub fn new(job: Value, state: S) -> Self {
        Self { state, job, file: None, saved: Instant::now(), is_unsaved: false }
    }

    /// Stored at a path, with a hash of what was read of the source file. Nothing is written yet.
    ///
    /// # Errors
    /// The source file cannot be read.
    pub fn keep(&mut self, path: PathBuf, source: Option<&Path>) -> Result<(), CliError> {
        let source = source.map(Prefix::open).transpose()?;
        self.file = Some(CheckpointFile { path, source, exists: false });
        Ok(())
    }

    /// Continues from the file, if there is one. One that is not to be resumed, belongs to another job or
    /// another source file, or cannot be read, is rejected.
    ///
    /// # Errors
    /// A rejected or unreadable file.
    pub fn load(&mut self, resume: bool) -> Result<(), CliError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let (command, path) = (S::COMMAND, file.path.display().to_string());
        let usage = |text: String| Err(CliError::Usage(text));
        let Some(text) = read(&file.path)? else {
            if resume {
                report_line(&format!(
                    "no interrupted {command} was found; starting from the beginning"
                ));
            }
            return Ok(());
        };
        if !resume {
            return usage(format!(
                "an interrupted {command} was found: `{path}`: continue with --resume, or remove it"
            ));
        }
        let restart = format!("to start again, remove `{path}`");
        let record: Record<Value, Value> = parse(&text, &restart)?;
        if record.version != VERSION {
            let found = record.version;
            return usage(format!(
                "the checkpoint has version {found}, this command reads {VERSION}: {restart}"
            ));
        }
        let other = differences(&record.job, &self.job);
        if !other.is_empty() {
            let other = other.join(", ");
            return usage(format!(
                "the interrupted {command} was another one ({other}): repeat it as it was, or {restart}"
            ));
        }
        let record: Record<Value, S> = parse(&text, &restart)?;
        if let (Some(source), Some(hash)) = (&mut file.source, &record.source_hash) {
            source.verify(record.state.source_bytes(), hash, &restart)?;
        }
        file.exists = true;
        self.state = record.state;
        Ok(())
    }

    /// Writes the file; after a crash either the old or the new one exists.
    ///
    /// # Errors
    /// The file cannot be written, or the source file cannot be read.
    pub fn save(&mut self) -> Result<(), CliError> {
        self.saved = Instant::now();
        let Some(file) = &mut self.file else { return Ok(()) };
        let completed = self.state.source_bytes();
        let source_hash = file.source.as_mut().map(|source| source.hash(completed)).transpose()?;
        let record = Record { version: VERSION, job: &self.job, source_hash, state: &self.state };
        replace(&file.path, &record)?;
        file.exists = true;
        Ok(())
    }

    /// Whether the file is old enough to be written again.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.file.is_some() && self.saved.elapsed() >= SAVE_EVERY
    }

    /// As [`Self::save`], for a command that continues where that fails, but cannot be resumed.
    pub fn save_or_warn(&mut self, progress: &ProgressBar) {
        if let Err(error) = self.save()
            && !std::mem::replace(&mut self.is_unsaved, true)
        {
            progress.suspend(|| report_line(&format!("warning: cannot be resumed: {error}")));
        }
    }

    /// Whether the command can be resumed, now or once it is saved.
    pub fn is_kept(&self) -> bool {
        self.file.is_some() && !self.is_unsaved
    }

    /// The path of the file, once it was written.
    pub fn written(&self) -> Option<&Path> {
        self.file.as_ref().filter(|file| file.exists).map(|file| file.path.as_path())
    }

    /// Removes the file: the command is complete, or nothing of it is worth resuming.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(&self) -> Result<(), CliError> {
        self.file.as_ref().map_or(Ok(()), |file| files::remove(&file.path))
    }
}

/// The parts of a job that differ.
fn differences(found: &Value, job: &Value) -> Vec<String> {
    let found_object = |name: &str| found.get(name).filter(|found| found.is_object());
    let is_nested = |it: &(&String, &Value)| it.1.is_object() && found_object(it.0).is_some();
    let (objects, parts): (Vec<_>, Vec<_>) =
        job.as_object().into_iter().flatten().partition(is_nested);
    let inner = objects.into_iter().flat_map(|(name, job)| {
        found_object(name).map(|found| differences(found, job)).unwrap_or_default()
    });
    let changed = parts.into_iter().filter(|(name, value)| found.get(name) != Some(value));
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let was = |(name, value): (&String, &Value)| {
        let (was, is) = (found.get(name).map_or_else(|| "none".to_owned(), text), text(value));
        format!("{} changed: was=`{was}`, is=`{is}`", name.replace('_', " "))
    };
    changed.map(was).chain(inner).collect()
}

fn parse<S: DeserializeOwned>(text: &[u8], restart: &str) -> Result<Record<Value, S>, CliError> {
    serde_json::from_slice(text)
        .map_err(|error| CliError::Usage(format!("the checkpoint is damaged: {error}: {restart}")))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, CliError> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::file(files::cannot("read", path))(error)),
    }
}

fn replace(path: &Path, record: &impl Serialize) -> Result<(), CliError> {
    let part = files::with_suffix(path, "~");
    let write = || -> io::Result<()> {
        let mut file = created(&part)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.sync_data()?;
        fs::rename(&part, path)
    };
    write().map_err(CliError::file(files::cannot("write", path)))
}

/// A new file, in place of what a command that was interrupted left. A link of this name is removed and not followed:
/// in a folder of others it may lead to any file of the user.
fn created(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)
}

#[cfg(test)]
mod tests;
