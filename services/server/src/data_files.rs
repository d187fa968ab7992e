//! Small files of a data directory.

use std::{fs::Metadata, io, time::UNIX_EPOCH};

use trestle_model::time::Ticks;

/// When a file was written, to the second.
///
/// # Errors
/// A file system that has no such times, or a time that is out of range.
pub(crate) fn modified(file: &Metadata) -> io::Result<Ticks> {
    let since = file.modified()?.duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    let seconds = i64::try_from(since.as_secs()).map_err(io::Error::other)?;
    Ticks::from_unix(seconds, 0).ok_or_else(|| io::Error::other("a time is out of range"))
}
