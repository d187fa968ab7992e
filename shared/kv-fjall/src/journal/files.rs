//! The journals of the database as files: how far each is written, and a hash of that.
//!
//! The database makes a journal with 64 MiB of zeros to come, and writes from its beginning; every
//! batch ends with a byte that is not zero. So the written part ends with the last such byte.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// The numbers of the journals, from the oldest to the one that is written.
pub(crate) fn list(database: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(database)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".jnl"));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

pub(crate) fn file_name(number: u64) -> String {
    format!("{number}.jnl")
}

/// Where the written part of a file ends.
pub(crate) fn written(file: &File) -> io::Result<u64> {
    for (from, to) in extents(file)?.into_iter().rev() {
        if let Some(end) = last_written(file, from, to)? {
            return Ok(end);
        }
    }
    Ok(0)
}

/// The hash of the first bytes of a file; nothing, if it has fewer.
pub(crate) fn hash(file: &File, bytes: u64) -> io::Result<Option<u64>> {
    seek(file, SeekFrom::Start(0))?;
    let (mut left, mut hash) = (file.take(bytes), Xxh3::new());
    let mut piece = vec![0; PIECE];
    let mut count = 0;
    loop {
        let read = left.read(&mut piece)?;
        if read == 0 {
            return Ok((count == bytes).then(|| hash.digest()));
        }
        count += read as u64;
        hash.update(piece.get(..read).unwrap_or_default());
    }
}

/// The parts of a file that the file system keeps: what lies between is zeros, and need not be read.
fn extents(file: &File) -> io::Result<Vec<(u64, u64)>> {
    let mut extents = Vec::new();
    let mut at = 0;
    loop {
        let from = match seek(file, SeekFrom::Data(at)) {
            Ok(from) => from,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => return Ok(extents),
            Err(error) => return Err(error.into()),
        };
        at = seek(file, SeekFrom::Hole(from))?;
        extents.push((from, at));
    }
}

/// Behind the last byte from `from` to `to` that is not zero.
fn last_written(file: &File, from: u64, to: u64) -> io::Result<Option<u64>> {
    let (mut piece, zeros) = (vec![0; PIECE], vec![0; PIECE]);
    let mut end = to;
    while end > from {
        let start = end.saturating_sub(PIECE as u64).max(from);
        let length = usize::try_from(end - start).unwrap_or(PIECE);
        let (Some(bytes), Some(zeros)) = (piece.get_mut(..length), zeros.get(..length)) else {
            return Ok(None);
        };
        file.read_exact_at(bytes, start)?;
        // Compared as a whole first, which is many times faster.
        if bytes != zeros {
            let last = bytes.iter().rposition(|byte| *byte != 0);
            return Ok(last.map(|last| start + last as u64 + 1));
        }
        end = start;
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
