//! Small files of a data directory: written whole or not at all, and durable once written.

use std::{
    fs::{self, File, Metadata},
    io::{self, Write as _},
    path::Path,
    time::UNIX_EPOCH,
};

use trestle_service::clock::Ticks;

/// Writes a file of a directory in place of the one with its name. A crash leaves the old one, or the new one.
///
/// # Errors
/// A directory that cannot be written, or synced.
pub(crate) fn replace(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    let draft = directory.join(format!("{name}.part"));
    let mut file = File::create(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, directory.join(name))?;
    File::open(directory)?.sync_all()
}

/// When a file was written, to the second.
///
/// # Errors
/// A file system that has no such times, or a time that is out of range.
pub(crate) fn modified(file: &Metadata) -> io::Result<Ticks> {
    let since = file.modified()?.duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    let seconds = i64::try_from(since.as_secs()).map_err(io::Error::other)?;
    Ticks::from_unix(seconds, 0).ok_or_else(|| io::Error::other("a time is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_its_draft_is_not_left() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["first", "second"] {
            replace(folder.path(), "name", text).unwrap();
            assert_eq!(fs::read_to_string(folder.path().join("name")).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
