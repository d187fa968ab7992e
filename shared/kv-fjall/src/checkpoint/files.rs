//! Copies of the small files of a store, and of its journals.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::super::journal;

/// Copies a file to a new one, and syncs it.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = File::create_new(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

/// The journals of a database, copied as far as they were written. They only grow, and are deleted when tables have
/// what they hold.
pub(super) struct CopiedJournals {
    source: PathBuf,
    target: PathBuf,
    /// By number, the copy and its length.
    copies: BTreeMap<u64, (File, u64)>,
}

impl CopiedJournals {
    pub(super) fn new(source: &Path, target: &Path) -> Self {
        Self { source: source.to_owned(), target: target.to_owned(), copies: BTreeMap::new() }
    }

    /// Copies what was added since the last call, and removes the copies of what was deleted.
    pub(super) fn copy(&mut self) -> io::Result<()> {
        let numbers = journal::list(&self.source)?;
        for &number in &numbers {
            let path = self.source.join(journal::file_name(number));
            match File::open(path) {
                Ok(file) => self.copy_one(number, file)?,
                // Flushed since it was listed. A copy of a part of it would look damaged.
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.remove(number)?,
                Err(error) => return Err(error),
            }
        }
        let deleted: Vec<u64> =
            self.copies.keys().copied().filter(|number| !numbers.contains(number)).collect();
        deleted.into_iter().try_for_each(|number| self.remove(number))
    }

    fn copy_one(&mut self, number: u64, mut file: File) -> io::Result<()> {
        let written = journal::written(&file)?;
        let (target, length) = match self.copies.entry(number) {
            std::collections::btree_map::Entry::Occupied(copy) => copy.into_mut(),
            std::collections::btree_map::Entry::Vacant(vacant) => {
                let path = self.target.join(journal::file_name(number));
                vacant.insert((File::create_new(path)?, 0))
            }
        };
        file.seek(SeekFrom::Start(*length))?;
        let added = written.saturating_sub(*length);
        if io::copy(&mut file.take(added), target)? != added {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *length += added;
        Ok(())
    }

    fn remove(&mut self, number: u64) -> io::Result<()> {
        if self.copies.remove(&number).is_some() {
            fs::remove_file(self.target.join(journal::file_name(number)))?;
        }
        Ok(())
    }

    /// Syncs the copies; how long they are together, in bytes.
    pub(super) fn finish(self) -> io::Result<u64> {
        let mut bytes = 0;
        for (file, length) in self.copies.values() {
            file.sync_all()?;
            bytes += length;
        }
        Ok(bytes)
    }
}
