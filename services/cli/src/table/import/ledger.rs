//! What became of each row, and the notes from which an interrupted import goes on.

use std::{path::PathBuf, time::Duration};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::chunk::{Chunk, Mark};
use crate::{
    errors::{CliError, Halt},
    files,
    output::{counted, say, thousands},
    prefix::Prefix,
    rows::{Format, Position},
    upload::{Book, Outcome},
};

/// Most failures that are shown one by one.
const SHOWN_MAX: usize = 20;
/// How often the notes are brought up to date.
const NOTES_EVERY: Duration = Duration::from_millis(500);

/// What is imported, and how: an import can go on only where these are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) endpoint: String,
    pub(super) table: String,
    /// A table that was created again is another table.
    pub(super) table_created: Option<String>,
    pub(super) mode: String,
    pub(super) format: Format,
    pub(super) types: Vec<String>,
    pub(super) size: Option<u64>,
}

/// How far an import is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notes {
    pub(super) job: Job,
    /// Every row before this place is answered.
    pub(super) done: Position,
    pub(super) written: u64,
    /// Rows sent again that turned out to be written before.
    pub(super) present: u64,
    pub(super) failed: u64,
    /// Of the bytes before this place; not in notes of older versions.
    #[serde(default)]
    pub(super) hash: Option<String>,
}

impl Notes {
    pub(super) fn new(job: Job) -> Self {
        Self { job, done: Position::default(), written: 0, present: 0, failed: 0, hash: None }
    }

    /// Whether an import can go on with them. What follows the place where it stopped may have been
    /// mended; without a hash the size has to tell that the file is the same.
    pub(super) fn are_of(&self, job: &Job) -> bool {
        let size = if self.hash.is_some() { self.job.size } else { job.size };
        self.job == Job { size, ..job.clone() }
    }
}

/// Counts rows, keeps failures to show, and the notes.
pub(super) struct Ledger {
    pub(super) notes: Notes,
    /// Name of the file, for messages.
    pub(super) file: String,
    /// What is read of the file; none of a pipe.
    pub(super) prefix: Option<Prefix>,
    notes_path: Option<PathBuf>,
    saved: Instant,
    progress: ProgressBar,
    keep_going: bool,
    failures: Vec<(u64, String)>,
    failed_now: u64,
    last: Position,
}

impl Ledger {
    pub(super) fn new(
        notes: Notes,
        notes_path: Option<PathBuf>,
        progress: ProgressBar,
        keep_going: bool,
    ) -> Self {
        let last = notes.done;
        Self {
            notes,
            file: String::new(),
            prefix: None,
            notes_path,
            saved: Instant::now(),
            progress,
            keep_going,
            failures: Vec::new(),
            failed_now: 0,
            last,
        }
    }

    /// Rows that were answered in this run or before, failed ones included.
    pub(super) fn rows_seen(&self) -> u64 {
        self.last.row
    }

    /// Books a row that was not sent.
    pub(super) fn fail(&mut self, line: u64, why: String) {
        self.notes.failed = self.notes.failed.saturating_add(1);
        self.failed_now = self.failed_now.saturating_add(1);
        // Chunks are answered in order, but malformed rows of a chunk are booked after its others.
        self.failures.push((line, why));
        self.failures.sort_by_key(|(line, _)| *line);
        self.failures.truncate(SHOWN_MAX);
    }

    /// Writes the notes. An import whose notes cannot be written goes on, but cannot be resumed.
    pub(super) fn save(&mut self) {
        if self.notes.done == Position::default() {
            // There is nothing to go on from, and notes would only stand in the way of a repetition.
            return;
        }
        // Counts of rows that will be sent again are not carried over.
        let mut notes = self.notes.clone();
        if self.is_halted() {
            notes.failed = notes.failed.saturating_sub(self.failed_now);
        }
        let (Some(path), Some(prefix)) = (&self.notes_path, &mut self.prefix) else { return };
        let hashed = prefix.hash(notes.done.byte).map(|hash| notes.hash = Some(hash));
        if let Err(error) = hashed.and_then(|()| files::save(path, &notes)) {
            self.progress.suspend(|| say(&format!("warning: cannot be resumed: {error}")));
            self.notes_path = None;
        }
        self.saved = Instant::now();
    }

    /// How far the import came.
    pub(super) fn halt(&self) -> Halt {
        let done = self.notes.done;
        let next = match (&self.notes_path, done == Position::default()) {
            (Some(_), false) => "go on with --resume",
            _ => "repeat it with --mode replace; rows behind that may be written too",
        };
        Halt {
            endpoint: self.notes.job.endpoint.clone(),
            done: format!("{} are done", counted(done.row, "row")),
            next: next.to_owned(),
        }
    }

    pub(super) fn finish_progress(&self) {
        self.progress.finish_and_clear();
    }

    /// Shows the first failures and how many more there were.
    pub(super) fn show_failures(&self, json: bool) {
        for (line, why) in &self.failures {
            if json {
                let object = serde_json::json!({ "file": self.file, "line": line, "error": why });
                say(&object.to_string());
            } else {
                say(&format!("{}:{line}: {why}", self.file));
            }
        }
        let shown = u64::try_from(self.failures.len()).unwrap_or_default();
        if self.failed_now > shown && !json {
            let more = self.failed_now.saturating_sub(shown);
            say(&format!("… and {} more failed rows", thousands(more)));
        }
    }

    /// Removes the notes of an import that ran to its end, or fails with what is left to do.
    pub(super) fn close(mut self) -> Result<(), CliError> {
        if self.is_halted() {
            self.save();
            let again = match (&self.notes_path, self.notes.done == Position::default()) {
                (Some(_), false) => {
                    "; mend the row or the table and go on with --resume, or skip such rows with \
                     --resume --keep-going"
                }
                _ => "; rows before it are written; skip such rows with --keep-going",
            };
            return Err(CliError::Rows(format!(
                "import stopped at the first failed row: table=`{}`{again}",
                self.notes.job.table
            )));
        }
        if let Some(path) = &self.notes_path {
            files::remove(path)?;
        }
        match self.notes.failed {
            0 => Ok(()),
            failed => Err(CliError::Rows(format!(
                "{} rows were not imported: table=`{}`",
                thousands(failed),
                self.notes.job.table
            ))),
        }
    }
}

impl Book<Mark> for Ledger {
    fn is_halted(&self) -> bool {
        self.failed_now > 0 && !self.keep_going
    }

    /// Books an answered chunk. The notes stop before the first failure, unless failures are passed
    /// over.
    fn book(&mut self, chunk: &Chunk, outcomes: Vec<Outcome>) {
        for (line, outcome) in chunk.mark.lines.iter().zip(outcomes) {
            match outcome {
                Outcome::Written => self.notes.written = self.notes.written.saturating_add(1),
                Outcome::Present => self.notes.present = self.notes.present.saturating_add(1),
                Outcome::Failed(why) => self.fail(*line, why),
            }
        }
        for (line, error) in &chunk.mark.malformed {
            self.fail(*line, error.to_string());
        }
        let end = chunk.mark.end;
        self.last = end;
        self.progress.set_position(end.byte);
        self.progress.set_message(format!("{} rows", thousands(end.row)));
        if !self.is_halted() {
            self.notes.done = end;
            if self.saved.elapsed() >= NOTES_EVERY {
                self.save();
            }
        }
    }
}
