//! What a database that was finished must have, whatever happened to the process since.
//!
//! The database itself makes anew what it does not find: without its first keyspace, which names the
//! others, it even deletes those. So this is looked at before it is opened.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::journal;

/// The folder of the database, in the directory of the engine.
pub(super) const DATABASE: &str = "db";
/// Holds the version of the format of the database.
pub(super) const VERSION: &str = "version";
/// Locked by the database while it is open.
pub(super) const DATABASE_LOCK: &str = "lock";
/// Holds a folder for each keyspace, by number.
pub(super) const KEYSPACES: &str = "keyspaces";
/// The number of the keyspace that names the others.
pub(super) const NAMES: u64 = 0;
/// Names the version of a keyspace; in the folder of every one that was finished.
pub(super) const CURRENT: &str = "current";

/// Bytes that the journals of a store in this directory hold, which its next start reads.
///
/// # Errors
/// The journals cannot be read.
pub fn journal_bytes(directory: &Path) -> io::Result<u64> {
    let database = directory.join(DATABASE);
    let written =
        |number| journal::written(&File::open(database.join(journal::file_name(number)))?);
    journal::list(&database)?.into_iter().map(written).sum()
}

/// What is missing of a database with so many keyspaces; nothing, if it has all parts.
pub(super) fn missing(database: &Path, keyspaces: usize) -> io::Result<Option<String>> {
    let folders = database.join(KEYSPACES);
    let names = Path::new(KEYSPACES).join(NAMES.to_string()).join(CURRENT);
    for part in [Path::new(VERSION), &names] {
        if !database.join(part).try_exists()? {
            return Ok(Some(format!("a file is missing: file=`{DATABASE}/{}`", part.display())));
        }
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(&folders)? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
        if let Some(number) = number
            && number != NAMES
            && entry.path().join(CURRENT).try_exists()?
        {
            found.push(number);
        }
    }
    // A crash while keyspaces were added may have left more.
    if found.len() >= keyspaces {
        return Ok(None);
    }
    found.sort_unstable();
    let gap = (1..).find(|number| !found.contains(number)).unwrap_or_default();
    let found = found.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    Ok(Some(format!(
        "folders of keyspaces are missing, such as `{DATABASE}/{KEYSPACES}/{gap}`: \
         needed=`{keyspaces}`, found=`{found}`"
    )))
}

/// Whether there is a journal. The one that is written is never removed.
pub(super) fn has_journals(database: &Path) -> io::Result<bool> {
    Ok(!journal::list(database)?.is_empty())
}
