//! The note of a clean end, in the file `CLOSED`: what the journals were.
//!
//! ```text
//! trestle-kv-closed 1
//! journal 3 4711 00f3a9d2c4b57e61
//! ```
//!
//! A line is the number of a journal, the bytes that were written, and their hash. The database drops
//! what it cannot read of a journal, and everything behind it, since the last write before a crash
//! may be torn. After a clean end there is no such write: what is missing then was lost or damaged,
//! and opening must say so instead of going on without it.
//!
//! The note is written when nothing writes any more and the journals are synced, and it is removed
//! before the database is opened, so that a crash is never taken for damage. A release that does not
//! know it leaves it where it is; what that has written since shows that the note is out of date. One
//! that wrote nothing and only flushed an older journal away cannot be told from a loss.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::inventory::DATABASE;
use super::journals;

/// The name of the file, in the directory of the engine.
pub(super) const FILE: &str = "CLOSED";
const HEADER: &str = "trestle-kv-closed 1";

/// A journal as it was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Journal {
    number: u64,
    written: u64,
    hash: u64,
}

/// A journal as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    number: u64,
    written: u64,
    /// Of as many bytes as were noted, if there are as many.
    hash: Option<u64>,
}

/// What a note says about the journals that are there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is none: the store was not closed, or by a release that writes none.
    Absent,
    /// They are as they were left.
    Whole,
    /// They were written since, by a release that does not know the note.
    Outdated,
    /// Something is missing or damaged.
    Damaged(String),
}

/// Compares the journals with the note.
pub(super) fn check(directory: &Path, database: &Path) -> io::Result<Verdict> {
    let text = match fs::read_to_string(directory.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Verdict::Absent),
        // Not of us, or not any more.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(error),
    };
    let Some(noted) = parse(&text) else {
        return Ok(Verdict::Damaged(format!("the note cannot be read: file=`{FILE}`")));
    };
    let mut found = Vec::new();
    for number in journals::list(database)? {
        let file = File::open(database.join(journals::file_name(number)))?;
        let known = noted.iter().find(|journal| journal.number == number);
        let hash = match known {
            Some(journal) => journals::hash(&file, journal.written)?,
            None => None,
        };
        found.push(Found { number, written: journals::written(&file)?, hash });
    }
    Ok(judge(&noted, &found))
}

/// Removes the note, for good; what it error_text, if there was one.
pub(super) fn take(directory: &Path) -> io::Result<Option<Vec<u8>>> {
    let path = directory.join(FILE);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    fs::remove_file(path)?;
    File::open(directory)?.sync_all()?;
    Ok(Some(text))
}

/// Writes a note, whole or not at all.
pub(super) fn put(directory: &Path, text: &[u8]) -> io::Result<()> {
    let draft = directory.join("CLOSED.new");
    let mut file = File::create(&draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&draft, directory.join(FILE))?;
    File::open(directory)?.sync_all()
}

/// Numbers of journals never come back, and the newest is never removed, so a newer one, or more in
/// the newest, was written after the note.
fn judge(noted: &[Journal], found: &[Found]) -> Verdict {
    let newest = noted.iter().map(|journal| journal.number).max();
    let is_newer = |found: &Found| {
        let known = noted.iter().find(|journal| journal.number == found.number);
        let grew =
            |journal: &Journal| found.hash == Some(journal.hash) && found.written > journal.written;
        Some(found.number) > newest || (Some(found.number) == newest && known.is_some_and(grew))
    };
    if found.iter().any(is_newer) {
        return Verdict::Outdated;
    }
    for journal in noted {
        let name = journals::file_name(journal.number);
        let Some(found) = found.iter().find(|found| found.number == journal.number) else {
            return Verdict::Damaged(format!("a journal is missing: file=`{DATABASE}/{name}`"));
        };
        let (left, is) = (journal.written, found.written);
        if is < left {
            return Verdict::Damaged(format!(
                "a journal is shorter than it was left: file=`{DATABASE}/{name}`, bytes=`{is}`, \
                 left=`{left}`"
            ));
        }
        if found.hash != Some(journal.hash) || is > left {
            return Verdict::Damaged(format!(
                "a journal is not as it was left: file=`{DATABASE}/{name}`"
            ));
        }
    }
    // An older one whose removal was lost with the power holds what was flushed, and is read again.
    Verdict::Whole
}

fn parse(text: &str) -> Option<Vec<Journal>> {
    let mut lines = text.lines();
    if lines.next()? != HEADER {
        return None;
    }
    let journal = |line: &str| {
        let mut words = line.strip_prefix("journal ")?.split(' ');
        let number = words.next()?.parse().ok()?;
        let written = words.next()?.parse().ok()?;
        let hash = u64::from_str_radix(words.next()?, 16).ok()?;
        words.next().is_none().then_some(Journal { number, written, hash })
    };
    let journals = lines.map(journal).collect::<Option<Vec<_>>>()?;
    (!journals.is_empty()).then_some(journals)
}

fn render(journals: &[Journal]) -> String {
    let mut text = format!("{HEADER}\n");
    for Journal { number, written, hash } in journals {
        text.push_str(&format!("journal {number} {written} {hash:016x}\n"));
    }
    text
}

/// Writes the note when it is dropped, which must be after the database and before the lock.
pub(super) struct Closing {
    directory: PathBuf,
    /// Whether what the journals hold is known: not after a write that failed.
    pub(super) is_sound: bool,
}

impl Closing {
    pub(super) fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), is_sound: false }
    }

    fn write(&self) -> io::Result<()> {
        let database = self.directory.join(DATABASE);
        let mut journals = Vec::new();
        for number in journals::list(&database)? {
            let file = File::open(database.join(journals::file_name(number)))?;
            // With durability `interval` or `os` the last writes are on their way.
            file.sync_all()?;
            let written = journals::written(&file)?;
            let hash = journals::hash(&file, written)?.unwrap_or_default();
            journals.push(Journal { number, written, hash });
        }
        if journals.is_empty() {
            return Ok(());
        }
        // What was removed stays removed from here on.
        File::open(&database)?.sync_all()?;
        put(&self.directory, render(&journals).as_bytes())
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if !self.is_sound {
            return;
        }
        if let Err(error) = self.write() {
            let path = self.directory.display();
            tracing::warn!(%error, %path, "clean end not noted; the next start is as after a crash");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(number: u64) -> Journal {
        Journal { number, written: 100, hash: number * 7 }
    }

    fn as_left(number: u64) -> Found {
        Found { number, written: 100, hash: Some(number * 7) }
    }

    #[test]
    fn a_note_reads_back_and_anything_else_is_no_note() {
        let journals = [noted(3), Journal { number: 4, written: 0, hash: u64::MAX }];
        assert_eq!(parse(&render(&journals)), Some(journals.to_vec()));

        for text in ["", HEADER, "trestle-kv-closed 2\njournal 1 2 3\n", "hello\njournal 1 2 3\n"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        for line in ["journal 1 2", "journal 1 2 3 4", "journal x 2 3", "table 1 2 3"] {
            assert_eq!(parse(&format!("{HEADER}\n{line}\n")), None, "{line}");
        }
    }

    #[test]
    fn journals_as_they_were_left_are_whole_and_anything_less_is_damage() {
        let (notes, left) = ([noted(3), noted(4)], [as_left(3), as_left(4)]);
        assert_eq!(judge(&notes, &left), Verdict::Whole);
        assert_eq!(judge(&notes, &[as_left(2), as_left(3), as_left(4)]), Verdict::Whole);

        let shorter = Found { written: 99, ..as_left(4) };
        let changed = Found { hash: Some(1), ..as_left(3) };
        let grown = Found { written: 101, ..as_left(3) };
        for (found, named) in [
            (vec![as_left(4)], "3.jnl"),
            (vec![as_left(3)], "4.jnl"),
            (vec![], "3.jnl"),
            (vec![as_left(3), shorter], "4.jnl"),
            (vec![changed, as_left(4)], "3.jnl"),
            (vec![grown, as_left(4)], "3.jnl"),
        ] {
            let Verdict::Damaged(reason) = judge(&notes, &found) else { panic!("{found:?}") };
            assert!(reason.contains(named), "{reason}");
        }
    }

    #[test]
    fn what_was_written_after_the_note_puts_it_out_of_date() {
        let notes = [noted(3), noted(4)];
        let grown = Found { written: 101, ..as_left(4) };
        for found in [vec![as_left(3), grown], vec![grown], vec![as_left(4), as_left(5)]] {
            assert_eq!(judge(&notes, &found), Verdict::Outdated, "{found:?}");
        }
        let damaged = Found { written: 200, hash: Some(1), ..as_left(4) };
        assert!(matches!(judge(&notes, &[as_left(3), damaged]), Verdict::Damaged(_)));
    }
}
