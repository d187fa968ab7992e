//! The part of a source file that is completed. Its hash shows on resumption whether the file is still the same: a
//! position in another file would lose lines or double them.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use xxhash_rust::xxh3::Xxh3;

use crate::errors::CliError;

/// See the module. Each byte is read once, however often the hash is computed.
pub(super) struct Prefix {
    file: File,
    name: String,
    hasher: Xxh3,
    bytes: u64,
}

impl Prefix {
    /// Of a file that can be read again.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(CliError::input(format!("cannot read `{name}`")))?;
        Ok(Self { file, name, hasher: Xxh3::new(), bytes: 0 })
    }

    /// The hash of the first `end` bytes, which are no fewer than in the call before.
    pub(super) fn hash(&mut self, end: u64) -> Result<String, CliError> {
        let hash = self.read(end);
        hash.map_err(CliError::file(format!("cannot read `{}` again", self.name)))
    }

    fn read(&mut self, end: u64) -> io::Result<String> {
        let expected = end.saturating_sub(self.bytes);
        let read = io::copy(&mut (&self.file).take(expected), &mut self.hasher)?;
        self.bytes += read;
        if read < expected {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(format!("{:032x}", self.hasher.digest128()))
    }

    /// Rejects a file whose first `end` bytes have another hash; `restart` is the hint.
    pub(super) fn verify(&mut self, end: u64, hash: &str, restart: &str) -> Result<(), CliError> {
        match self.read(end) {
            Ok(found) if found == hash => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(CliError::file(format!("cannot read `{}`", self.name))(error))
            }
            _ => Err(CliError::Usage(format!(
                "`{}` has changed before the position where it was interrupted: {restart}",
                self.name
            ))),
        }
    }
}
