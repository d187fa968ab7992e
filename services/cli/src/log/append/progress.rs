//! What was appended and rejected, and the progress from which an interrupted append is resumed.

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use serde_json::json;
use trestle_command::{
    checkpoint::{Checkpoint, CheckpointState},
    errors::{CliError, Halt},
    lines::FilePosition,
    output::{Context, Output, counted, report_line, thousands},
};

use super::{super::LineFormat, batches::AppendBatch};

/// Most failures that are shown one by one.
const SHOWN_MAX: usize = 20;

/// The progress of an append.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AppendState {
    /// The id of the append, in its request ids.
    pub(super) id: String,
    /// Every line before this position is appended or rejected.
    pub(super) done: FilePosition,
    appended: u64,
    /// Records of requests that the server had received before.
    repeated: u64,
    rejected: u64,
}

impl CheckpointState for AppendState {
    const COMMAND: &'static str = "append";

    fn source_bytes(&self) -> u64 {
        self.done.byte
    }
}

impl AppendState {
    /// Nothing yet; without an id a random one.
    pub(super) fn new(id: Option<String>) -> Self {
        let id = id.unwrap_or_else(|| format!("{:032x}", fastrand::u128(..)));
        let done = FilePosition::default();
        Self { id, done, appended: 0, repeated: 0, rejected: 0 }
    }
}

/// Counts records, and stores errors to report and the checkpoint.
pub(super) struct AppendProgress {
    pub(super) checkpoint: Checkpoint<AppendState>,
    pub(super) bar: ProgressBar,
    pub(super) is_strict: bool,
    /// Name of the file, for messages.
    pub(super) file: String,
    pub(super) failures: Vec<(u64, String)>,
    /// Records of this run whose lines have no time.
    pub(super) untimed: u64,
    /// Where this run began.
    pub(super) start: FilePosition,
}

impl AppendProgress {
    /// Writes the checkpoint before the first batch is sent: the id of the append must outlive its records.
    pub(super) fn begin(&mut self) -> Result<(), CliError> {
        match self.checkpoint.written() {
            Some(_) => Ok(()),
            None => self.checkpoint.save(),
        }
    }

    /// Records a line that is not appended.
    pub(super) fn reject(&mut self, line: u64, rule: String) {
        self.checkpoint.state.rejected += 1;
        if self.failures.len() < SHOWN_MAX {
            self.failures.push((line, rule));
        }
    }

    /// Records a batch that was appended, now or by an earlier request.
    pub(super) fn record(&mut self, batch: AppendBatch, is_repeated: bool) {
        let count = u64::try_from(batch.records.len()).unwrap_or_default();
        let untimed = batch.lines.iter().filter(|line| !line.has_time).count();
        self.untimed += u64::try_from(untimed).unwrap_or_default();
        let state = &mut self.checkpoint.state;
        if is_repeated {
            state.repeated += count;
        } else {
            state.appended += count;
        }
        for (line, rule) in batch.rejected {
            self.reject(line, rule);
        }
        let Some(end) = batch.end else { return };
        self.checkpoint.state.done = end;
        self.bar.set_position(end.byte);
        self.bar.set_message(counted(end.row, "record"));
        if self.checkpoint.is_due() {
            self.checkpoint.save_or_warn(&self.bar);
        }
    }

    /// Reports the first errors and the number of others.
    pub(super) fn show_failures(&self, json: bool) {
        for (line, why) in &self.failures {
            if json {
                let object = json!({ "file": self.file, "line": line, "error": why });
                report_line(&object.to_string());
            } else {
                report_line(&format!("{}:{line}: {why}", self.file));
            }
        }
        let shown = u64::try_from(self.failures.len()).unwrap_or_default();
        let more = self.checkpoint.state.rejected.saturating_sub(shown);
        if more > 0 && !json {
            report_line(&format!("… and {} more rejected lines", thousands(more)));
        }
    }

    /// Reports how many records have the time of their arrival, which may not be what their lines have.
    pub(super) fn show_untimed(&self, output: &Output, format: LineFormat) {
        if self.untimed == 0 {
            return;
        }
        let hint = match format {
            LineFormat::Json | LineFormat::Logfmt => "--time-field names the field that has it",
            LineFormat::Text => "--timestamp-pattern describes it",
            LineFormat::OtlpJson | LineFormat::Syslog => "their lines have none",
        };
        let (count, file) = (self.untimed, &self.file);
        output.note(&match output.is_json() {
            true => json!({ "file": file, "without_time": count, "hint": hint }).to_string(),
            false => {
                let records = counted(count, "record");
                format!("{file}: {records} without a time got the time of arrival: {hint}")
            }
        });
    }

    /// The error of an append, with its progress and a hint.
    pub(super) fn stopped(mut self, error: CliError, endpoint: &str) -> CliError {
        let is_written = self.checkpoint.written().is_some();
        if is_written {
            self.checkpoint.save_or_warn(&self.bar);
        }
        let next = match (is_written, self.checkpoint.is_kept()) {
            (true, _) => "continue with --resume",
            (false, true) => "repeat it",
            _ => "a pipe cannot be resumed",
        };
        let state = &self.checkpoint.state;
        let done = state.appended + state.repeated;
        match error {
            CliError::Rows(rule) => CliError::Rows(format!(
                "{rule}; {} appended, fix the line and {next}",
                counted(done, "record")
            )),
            error => error.halted(done > 0, || Halt {
                endpoint: endpoint.to_owned(),
                progress: format!("{} appended", counted(done, "record")),
                next: next.to_owned(),
            }),
        }
    }

    /// Removes the checkpoint of an append that ran to its end, and reports it.
    pub(super) fn close(self, context: &mut Context, stream: &str) -> Result<(), CliError> {
        self.checkpoint.remove()?;
        let AppendState { appended, repeated, rejected, .. } = self.checkpoint.state;
        let mut text = format!("appended {} to {stream}", counted(appended, "record"));
        if repeated > 0 {
            text.push_str(&format!(", {} appended before", thousands(repeated)));
        }
        if self.start.line > 0 {
            text.push_str(&format!(", resumed after line {}", thousands(self.start.line)));
        }
        if rejected > 0 {
            text.push_str(&format!(", {} rejected", counted(rejected, "line")));
        }
        let object = json!({
            "stream": stream, "appended": appended, "repeated": repeated, "rejected": rejected,
            "resumed_at_line": self.start.line,
        });
        context.output.either(&text, &object)?;
        context.output.flush()?;
        match rejected {
            0 => Ok(()),
            rejected => {
                let lines = counted(rejected, "line");
                Err(CliError::Rows(format!("not everything was appended: {lines} rejected")))
            }
        }
    }
}
