//! The file that an export writes before it has its name.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek as _},
    path::Path,
};

/// Opens it behind its first bytes; what follows them is removed.
pub(super) fn open(path: &Path, byte: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(byte == 0).open(path)?;
    if file.metadata()?.len() < byte {
        let rule = "is shorter than its checkpoint records, start again without --resume";
        return Err(io::Error::new(io::ErrorKind::InvalidData, rule));
    }
    file.set_len(byte)?;
    file.seek(io::SeekFrom::Start(byte))?;
    Ok(file)
}
