//! Writes a journal again, so that it is durable by our own writing.
//!
//! After a sync that failed the system counts the pages as written although they are not on the disk,
//! and a later sync of them does nothing. They are read from memory until they are not. So the bytes
//! must be written again, to a new file, before anything is acknowledged behind them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::examine::examine;
use super::files::{file_name, written};
use super::whole_run::WholeRun;

/// Follows the name of a journal that is not finished. The database does not read such a file.
const DRAFT: &str = "new";

/// Bytes that are copied at a time.
const PIECE: usize = 256 * 1024;

/// Whether a file is what a crash left of a rewrite.
pub(crate) fn is_draft(path: &Path) -> bool {
    let is_journal = |stem: &OsStr| Path::new(stem).extension().is_some_and(|end| end == "jnl");
    path.extension().is_some_and(|end| end == DRAFT) && path.file_stem().is_some_and(is_journal)
}

/// Replaces a journal by its first groups, written and synced anew.
///
/// Where there is no room for a new file they are written over themselves, which leaves the same bytes
/// at every instant.
///
/// # Errors
/// The file system failed; the journal is as it was, or has the same groups.
pub(crate) fn rewrite(database: &Path, number: u64, whole: WholeRun) -> io::Result<()> {
    let path = database.join(file_name(number));
    match copy_runs(&path, &[whole]) {
        Ok(draft) => {
            fs::rename(draft, path)?;
            File::open(database)?.sync_all()
        }
        Err(error) if is_full(&error) => rewrite_in_place(&path, whole.end),
        Err(error) => Err(error),
    }
}

/// Copies runs of groups into a new file beside a journal, checks and syncs it; its path.
pub(crate) fn copy_runs(path: &Path, runs: &[WholeRun]) -> io::Result<PathBuf> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".");
    draft.push(DRAFT);
    let draft = PathBuf::from(draft);
    let copied = copy_into(path, &draft, runs);
    if copied.is_err() {
        // It is removed at the next start otherwise.
        let _ = fs::remove_file(&draft);
    }
    copied.map(|()| draft)
}

fn copy_into(path: &Path, draft: &Path, runs: &[WholeRun]) -> io::Result<()> {
    let source = File::open(path)?;
    let target = File::options().create(true).truncate(true).read(true).write(true).open(draft)?;
    for run in runs {
        copy(&source, &target, run.start, run.end)?;
    }
    target.sync_all()?;
    check(&target, runs)
}

fn rewrite_in_place(path: &Path, end: u64) -> io::Result<()> {
    let source = File::open(path)?;
    let target = File::options().read(true).write(true).open(path)?;
    copy(&source, &target, 0, end)?;
    target.set_len(end)?;
    target.sync_all()
}

fn copy(source: &File, mut target: &File, from: u64, to: u64) -> io::Result<()> {
    let mut source = source;
    source.seek(SeekFrom::Start(from))?;
    let mut left = source.take(to - from);
    let mut piece = vec![0; PIECE];
    let mut copied = 0;
    loop {
        let read = left.read(&mut piece)?;
        if read == 0 {
            let is_all = copied == to - from;
            return if is_all { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        target.write_all(piece.get(..read).unwrap_or_default())?;
        copied += read as u64;
    }
}

/// What was copied need not be what was examined, if the system dropped the pages in between.
fn check(target: &File, runs: &[WholeRun]) -> io::Result<()> {
    let length: u64 = runs.iter().map(|run| run.end - run.start).sum();
    let groups: u64 = runs.iter().map(|run| run.groups).sum();
    let exam = examine(target, written(target)?, None)?;
    if (exam.whole.end, exam.whole.groups, exam.damage.is_none()) == (length, groups, true) {
        return Ok(());
    }
    Err(io::Error::other("a journal changed while it was read; start again"))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
