//! Small files beside a data file: progress notes, and files that take their name when they are
//! complete.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::errors::CliError;

/// Most links that are followed to a file. As many as the system follows.
const LINKS_MAX: usize = 40;

/// Where lines go that a command writes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    Standard,
    /// A pipe or a device: written to as it is, for a file in its place would be another thing.
    Stream,
    /// A file, or where one can be made; no link.
    File(PathBuf),
}

/// What there is at a path.
pub(crate) fn target(path: &Path) -> Result<Target, CliError> {
    if path == Path::new("-") {
        return Ok(Target::Standard);
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(CliError::Usage(format!("is a folder, not a file: `{}`", path.display())))
        }
        Ok(found) if !found.is_file() => Ok(Target::Stream),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CliError::input(format!("cannot write `{}`", path.display()))(error))
        }
        // A link may lead to a file that is not there yet.
        _ => Ok(Target::File(without_links(path))),
    }
}

/// The failure of a write where a quiet end will not do, unlike where output is only shown: something is missing of
/// what was to go there.
pub(crate) fn unread(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::other("nobody reads it any more"),
        _ => error,
    }
}

/// The file that a link leads to, over others where need be.
fn without_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = fs::read_link(&path) else { break };
        path = path.parent().map(|folder| folder.join(&to)).unwrap_or(to);
    }
    path
}

/// The path with a suffix after its whole name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Reads notes; `None` when there are none.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, CliError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(CliError::file(format!("cannot read `{}`", path.display()))(error));
        }
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        CliError::Usage(format!(
            "progress notes are damaged, remove them to start again: `{}`: {error}",
            path.display()
        ))
    })
}

/// Replaces notes; after a crash either the old or the new ones are there.
pub(crate) fn save<T: Serialize>(path: &Path, notes: &T) -> Result<(), CliError> {
    let part = beside(path, "~");
    let write = || -> io::Result<()> {
        let mut file = File::create(&part)?;
        file.write_all(&serde_json::to_vec(notes)?)?;
        file.sync_data()?;
        fs::rename(&part, path)
    };
    write().map_err(CliError::file(format!("cannot write `{}`", path.display())))
}

/// Removes a file that may be there.
pub(crate) fn remove(path: &Path) -> Result<(), CliError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CliError::file(format!("cannot remove `{}`", path.display()))(error))
        }
        _ => Ok(()),
    }
}

/// Gives a complete file its name, on stable storage.
pub(crate) fn publish(part: &Path, file: &File, path: &Path) -> Result<(), CliError> {
    let publish = || -> io::Result<()> {
        file.sync_all()?;
        fs::rename(part, path)?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder)?.sync_all()
    };
    publish().map_err(CliError::file(format!("cannot complete `{}`", path.display())))
}
