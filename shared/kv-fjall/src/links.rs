//! Hard links to journals, in a directory that is not the database's: a journal that the database deletes stays there.
//!
//! A link has the name of its journal. While a link is replaced there is a second one with the suffix `.new`.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::log_position::LogPosition;
use super::{directory, journal};

/// Bytes of a block in the counts of the file system.
const BLOCK_BYTES: u64 = 512;

/// Links every journal of a database that is not linked in `into`, and replaces links to what is no longer the journal
/// of the number: a recovery writes a journal again, to a new file. Returns the numbers of the journals.
pub(super) fn link(database: &Path, into: &Path) -> io::Result<Vec<u64>> {
    let numbers = journal::list(database)?;
    let mut is_changed = false;
    for &number in &numbers {
        let name = journal::file_name(number);
        is_changed |= link_one(&database.join(&name), &into.join(&name))?;
    }
    if is_changed {
        directory::sync(into)?;
    }
    Ok(numbers)
}

/// Returns whether there is a new link.
fn link_one(from: &Path, to: &Path) -> io::Result<bool> {
    let Some(journal) = metadata(from)? else { return Ok(false) };
    let id = |file: &Metadata| (file.dev(), file.ino());
    if metadata(to)?.is_some_and(|link| id(&link) == id(&journal)) {
        return Ok(false);
    }
    let draft = draft(to);
    directory::remove_if_there(&draft)?;
    match fs::hard_link(from, &draft) {
        // Flushed since it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound && metadata(from)?.is_none() => {
            return Ok(false);
        }
        linked => linked?,
    }
    fs::rename(&draft, to)?;
    Ok(true)
}

fn draft(link: &Path) -> PathBuf {
    let mut draft = link.as_os_str().to_owned();
    draft.push(".new");
    draft.into()
}

fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Removes the links of journals that have nothing after a position: those with lower numbers. A directory that does
/// not exist has none.
///
/// # Errors
/// The directory cannot be read, or a link cannot be removed.
pub fn drop_links(links: &Path, before: LogPosition) -> io::Result<()> {
    if metadata(links)?.is_none() {
        return Ok(());
    }
    let numbers = journal::list(links)?.into_iter().filter(|number| *number < before.journal());
    for number in numbers {
        directory::remove_if_there(&links.join(journal::file_name(number)))?;
    }
    Ok(())
}

/// Bytes on disk of the journals that only links keep, because the database deleted its own. A directory that does not
/// exist has none.
///
/// # Errors
/// The directory cannot be read.
pub fn linked_bytes(links: &Path) -> io::Result<u64> {
    if metadata(links)?.is_none() {
        return Ok(0);
    }
    let mut bytes = 0;
    for number in journal::list(links)? {
        let link = metadata(&links.join(journal::file_name(number)))?;
        bytes +=
            link.filter(|link| link.nlink() == 1).map_or(0, |link| link.blocks() * BLOCK_BYTES);
    }
    Ok(bytes)
}
