//! Why the store stopped: operation, file, and the error of the system with its number.
//!
//! The database returns the error of a call without saying which file it met, and what failed in its own
//! threads it only logs before it rejects every write. So its log is listened to: errors only.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};

use log::{Level, LevelFilter, Log, Metadata, Record};

use super::inventory::{DATABASE, KEYSPACES};
use super::shared::error_text;

/// Lines that are kept: those of one failure are few.
const LINES_MAX: usize = 16;

/// The name of the threads in which the database flushes and compacts.
const WORKER: &str = "fjall:worker";

/// What the lines of the database that matter begin with, and what it was doing.
const OPERATIONS: [(&str, &str); 8] = [
    ("Failed to fsyncdata journal file at ", "sync of a journal"),
    ("Failed to fsync journal file at ", "sync of a journal"),
    ("Failed to flush journal IO buffers at ", "write to a journal"),
    ("Failed to create journal file at ", "creation of a journal"),
    ("Failed to clean up stale journal file at ", "removal of a journal"),
    ("Failed to fsync directory at ", "sync of a directory"),
    ("Flush error: ", "flush of a memtable"),
    ("Compaction failed: ", "compaction"),
];

struct LoggedLine {
    thread: ThreadId,
    is_worker: bool,
    text: String,
}

static LINES: Mutex<VecDeque<LoggedLine>> = Mutex::new(VecDeque::new());

/// Keeps the last errors that the database logs.
struct DatabaseLog;

impl Log for DatabaseLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_database = |name: &str| metadata.target().starts_with(name);
        metadata.level() == Level::Error && (is_database("fjall") || is_database("lsm_tree"))
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let thread = thread::current();
        let line = LoggedLine {
            thread: thread.id(),
            is_worker: thread.name() == Some(WORKER),
            text: record.args().to_string(),
        };
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn flush(&self) {}
}

/// Listens from here on, unless the process has a log of its own for such lines.
pub(super) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if log::set_logger(&DatabaseLog).is_ok() {
            log::set_max_level(LevelFilter::Error);
        }
    });
}

/// The reason of a call of this thread that just failed.
pub(super) fn of_call(operation: &str, error: &fjall::Error, directory: &Path) -> Arc<str> {
    let here = thread::current().id();
    let found = find(directory, |line| line.thread == here);
    let Some(LoggedFailure { operation, file, .. }) = found else {
        let directory = directory.join(DATABASE);
        let (error, file) = (error_text(error), directory.display());
        return format!("{operation} failed: {error}, file=`{file}`").into();
    };
    format!("{operation} failed: {}, file=`{file}`", error_text(error)).into()
}

/// The reason why a thread of the database made it reject every write.
pub(super) fn of_background(directory: &Path) -> Arc<str> {
    let found = find(directory, |line| line.is_worker);
    let Some(LoggedFailure { operation, file, error }) = found else {
        return "a flush or a compaction failed".into();
    };
    format!("{operation} failed: {error}, file=`{file}`").into()
}

/// The fields of a line.
struct LoggedFailure {
    operation: &'static str,
    file: String,
    error: String,
}

/// The newest line of a kind about a directory, or about none.
fn find(directory: &Path, is_match: impl Fn(&LoggedLine) -> bool) -> Option<LoggedFailure> {
    // The paths in the log are.
    let directory = std::path::absolute(directory).ok()?;
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let matching = lines.iter().rev().filter(|line| is_match(line));
    matching.into_iter().find_map(|line| parse(&line.text, &directory))
}

fn parse(text: &str, directory: &Path) -> Option<LoggedFailure> {
    let (operation, rest) = OPERATIONS
        .iter()
        .find_map(|(start, operation)| Some((*operation, text.strip_prefix(start)?)))?;
    let directory = directory.display().to_string();
    // Before the error there is the path, where there is one.
    let file = match rest.split_once(": ") {
        Some((path, _)) if path.starts_with('/') && !path.contains(&directory) => return None,
        Some((path, _)) if path.starts_with('/') => path.to_owned(),
        _ => format!("{directory}/{DATABASE}/{KEYSPACES}"),
    };
    Some(LoggedFailure { operation, file, error: system_error(rest) })
}

/// The error of the system in the text of an error of Rust, such as `Os { code: 28, …`; else that text.
fn system_error(text: &str) -> String {
    let code = text.split_once("Os { code: ").map(|(_, rest)| rest);
    let code = code.and_then(|rest| rest.split(',').next()?.trim().parse().ok());
    code.map_or_else(|| text.to_owned(), |code| io::Error::from_raw_os_error(code).to_string())
}

#[cfg(test)]
mod tests;
