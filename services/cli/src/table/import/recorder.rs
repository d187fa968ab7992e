//! The outcome of each row, and the progress from which an interrupted import is resumed.

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use trestle_command::{
    checkpoint::{Checkpoint, CheckpointState},
    errors::{CliError, Halt},
    lines::FilePosition,
    output::{counted, report_line, thousands},
    upload::{self, EntityOutcome},
};

use super::chunk::RowChunk;

/// Most failures that are shown one by one.
const SHOWN_MAX: usize = 20;

/// The progress of an import.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Rows {
    /// Every row before this position is answered.
    pub(super) done: FilePosition,
    pub(super) written: u64,
    /// Rows sent again that turned out to be written before.
    pub(super) present: u64,
    /// Rows that were skipped.
    failed: u64,
}

impl CheckpointState for Rows {
    const COMMAND: &'static str = "import";

    fn source_bytes(&self) -> u64 {
        self.done.byte
    }
}

/// Counts rows, and stores errors to report and the checkpoint.
pub(super) struct ImportRecorder {
    pub(super) checkpoint: Checkpoint<Rows>,
    pub(super) progress: ProgressBar,
    pub(super) keep_going: bool,
    /// Name of the file, for messages.
    pub(super) file: String,
    pub(super) table: String,
    pub(super) failures: Vec<(u64, String)>,
    /// Rows that failed in this run.
    pub(super) failed_now: u64,
    /// Rows that were written by the runs before this one.
    pub(super) written_before: u64,
    /// The last row that was answered.
    pub(super) last: FilePosition,
}

impl ImportRecorder {
    /// Records a row that was not written.
    pub(super) fn fail(&mut self, line: u64, why: String) {
        self.failed_now += 1;
        // A row that stops the import is sent again on resumption.
        self.checkpoint.state.failed += u64::from(self.keep_going);
        // Chunks are answered in order, but malformed rows of a chunk are recorded after its others.
        self.failures.push((line, why));
        self.failures.sort_by_key(|(line, _)| *line);
        self.failures.truncate(SHOWN_MAX);
    }

    /// Rows that failed, in this run and before.
    pub(super) fn failed(&self) -> u64 {
        let passed_over = self.checkpoint.state.failed;
        if self.keep_going { passed_over } else { passed_over + self.failed_now }
    }

    /// Whether there is progress to resume; an empty checkpoint would only block a repetition.
    fn is_begun(&self) -> bool {
        self.checkpoint.state.done != FilePosition::default()
    }

    pub(super) fn save(&mut self) {
        if self.is_begun() {
            self.checkpoint.save_or_warn(&self.progress);
        }
    }

    /// The progress of the import.
    pub(super) fn halt(&self, endpoint: &str) -> Halt {
        let next = match self.checkpoint.is_kept() && self.is_begun() {
            true => "continue with --resume",
            false => "repeat it with --mode replace; rows behind that may be written too",
        };
        Halt {
            endpoint: endpoint.to_owned(),
            progress: format!("{} written", counted(self.checkpoint.state.done.row, "row")),
            next: next.to_owned(),
        }
    }

    /// Reports the first errors and the number of others.
    pub(super) fn show_failures(&self, json: bool) {
        for (line, why) in &self.failures {
            if json {
                let object = serde_json::json!({ "file": self.file, "line": line, "error": why });
                report_line(&object.to_string());
            } else {
                report_line(&format!("{}:{line}: {why}", self.file));
            }
        }
        let shown = u64::try_from(self.failures.len()).unwrap_or_default();
        if self.failed_now > shown && !json {
            report_line(&format!("… and {} more failed rows", thousands(self.failed_now - shown)));
        }
    }

    /// Removes the checkpoint of an import that ran to its end, or fails with the remaining rows.
    pub(super) fn close(mut self) -> Result<(), CliError> {
        let table = self.table.clone();
        if upload::Recorder::is_halted(&self) {
            self.save();
            let next = match self.checkpoint.is_kept() && self.is_begun() {
                true => {
                    "fix the row or the table and continue with --resume, or skip such rows with \
                     --resume --keep-going"
                }
                false => "skip such rows with --keep-going",
            };
            let written = counted(self.checkpoint.state.written, "row");
            let failed = counted(self.failed_now, "row");
            return Err(CliError::Rows(format!(
                "import stopped after the chunk of the first failed row: {failed} failed, {written} written: \
                 table=`{table}`; {next}"
            )));
        }
        self.checkpoint.remove()?;
        match self.failed() {
            0 => Ok(()),
            failed => Err(CliError::Rows(format!(
                "{} not imported, {} written: table=`{table}`",
                counted(failed, "row"),
                counted(self.checkpoint.state.written, "row"),
            ))),
        }
    }
}

impl upload::Recorder<RowChunk> for ImportRecorder {
    fn is_halted(&self) -> bool {
        self.failed_now > 0 && !self.keep_going
    }

    /// The checkpoint stops before the first failed row, unless failed rows are skipped.
    fn record(&mut self, chunk: RowChunk, outcomes: Vec<EntityOutcome>) {
        for (line, outcome) in chunk.labels.iter().zip(outcomes) {
            match outcome {
                EntityOutcome::Written => self.checkpoint.state.written += 1,
                EntityOutcome::Present => self.checkpoint.state.present += 1,
                EntityOutcome::Failed(why) => self.fail(*line, why),
            }
        }
        for (line, error) in chunk.rejected {
            self.fail(line, error);
        }
        let Some(end) = chunk.end else { return };
        self.last = end;
        self.progress.set_position(end.byte);
        self.progress.set_message(format!("{} rows", thousands(end.row)));
        if !self.is_halted() {
            self.checkpoint.state.done = end;
            if self.checkpoint.is_due() {
                self.save();
            }
        }
    }
}
