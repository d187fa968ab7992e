//! The directory of an engine: its lock, and how it is made.
//!
//! Layout: `LOCK` (held while open), `MANIFEST`, `CREATING` (only while it is made), `CLOSED` (only
//! while it is closed, after a clean shutdown), `RESTORING` (only while it is filled in bulk),
//! `WRITTEN_BY` (the version that opened it last), `DURABILITY` (only where groups are not synced in order), `db`
//! (fjall), `damaged-1` and so on (what repairs replaced). Journals in `db` may have a second hard link in another
//! directory, for the change log; so a journal is never written over in place but with the bytes it has.
//! A directory is made in an order that distinguishes a crash at any instant from a loss of files:
//! `CREATING` first, then the database, then the manifest, then `CREATING` is removed. A
//! database without a manifest is removed if there is `CREATING`, as nothing in it was ever
//! acknowledged, and rejected otherwise.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use super::clean_shutdown;
use super::inventory::DATABASE;
use super::options::OpenError;

const LOCK: &str = "LOCK";
const CREATING: &str = "CREATING";
const RESTORING: &str = "RESTORING";

/// Our own lock, as the one of the database does not cover the manifest, and waits before it
/// gives up.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let io_failed = |source| OpenError::Io { path: path.to_owned(), source };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK))
        .map_err(io_failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io_failed(source)),
    }
}

/// Begins to make a directory that has no manifest.
pub(super) fn start_creating(path: &Path) -> Result<(), OpenError> {
    let io_failed = |source| OpenError::Io { path: path.to_owned(), source };
    let mark = path.join(CREATING);
    if mark.try_exists().map_err(io_failed)? {
        sync_ancestors(path).map_err(io_failed)?;
        match fs::remove_dir_all(path.join(DATABASE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_failed(error)),
            _ => return clean_shutdown::take(path).map(drop).map_err(io_failed),
        }
    }
    if path.join(RESTORING).try_exists().map_err(io_failed)? {
        let reason = format!(
            "a restore into it was not finished: found=`{RESTORING}`; delete the directory and restore again"
        );
        return Err(OpenError::Manifest { path: path.to_owned(), reason });
    }
    for entry in fs::read_dir(path).map_err(io_failed)? {
        let name = entry.map_err(io_failed)?.file_name();
        if name != LOCK {
            let found = name.display();
            let reason = format!("the directory holds something, but no manifest: found=`{found}`");
            return Err(OpenError::Manifest { path: path.to_owned(), reason });
        }
    }
    let synced = File::create(mark).and_then(|file| file.sync_all());
    synced.and_then(|()| sync(path)).and_then(|()| sync_ancestors(path)).map_err(io_failed)
}

/// Begins to fill an empty directory, which is to have a manifest when that is done. Unlike one that is being made, it
/// is never begun anew.
pub(super) fn start_restoring(path: &Path) -> io::Result<()> {
    File::create_new(path.join(RESTORING))?.sync_all()?;
    sync(path)?;
    sync_ancestors(path)
}

/// The directory is filled, and its manifest comes next.
pub(super) fn end_restoring(path: &Path) -> io::Result<()> {
    fs::remove_file(path.join(RESTORING))?;
    sync(path)
}

/// Makes the names of a directory and of those above it durable: any of them may be new, and what is in a directory
/// whose name is lost is lost with it.
fn sync_ancestors(path: &Path) -> io::Result<()> {
    for ancestor in path.canonicalize()?.ancestors().skip(1) {
        match sync(ancestor) {
            // One that may not be read was not made by this process.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            other => other?,
        }
    }
    Ok(())
}

/// The directory is made; whether it was before.
pub(super) fn end_creating(path: &Path) -> io::Result<()> {
    remove_if_there(&path.join(CREATING))
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
