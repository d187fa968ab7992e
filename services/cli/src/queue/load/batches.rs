//! The batches of a load: which ones are sent, and the request id of the next one.

use std::time::Duration;

use prost::Message as _;
use serde::{Deserialize, Serialize};
use trestle_command::{
    checkpoint::{Checkpoint, CheckpointState},
    errors::{CliError, Halt},
    lines::FilePosition,
    output::{counted, report_line},
};
use trestle_proto::queue::v1::OutgoingMessage;
use xxhash_rust::xxh3::Xxh3;

/// The deduplication window of the server is ten minutes; less the possible duration of a send.
const DEDUPLICATED: Duration = Duration::from_secs(500);

/// The progress of a load.
#[derive(Serialize, Deserialize)]
pub(super) struct Batches {
    /// The id of the load, in its request ids.
    id: String,
    /// Every message before this position is sent.
    pub(super) sent: FilePosition,
    /// The batch after this position, or the one before it once that is sent.
    pending: Option<PendingBatch>,
}

/// A batch whose request was made: some or all of it may be sent.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PendingBatch {
    end: FilePosition,
    request_id: String,
}

impl CheckpointState for Batches {
    const COMMAND: &'static str = "load";

    fn source_bytes(&self) -> u64 {
        self.sent.byte
    }
}

impl Batches {
    pub(super) fn new() -> Self {
        let id = format!("{:032x}", fastrand::u128(..));
        Self { id, sent: FilePosition::default(), pending: None }
    }

    fn pending(&self) -> Option<&PendingBatch> {
        self.pending.as_ref().filter(|batch| batch.end != self.sent)
    }

    /// Where the batch ends that was pending when the load was interrupted: the next one must end there too, to be
    /// the same request.
    pub(super) fn pending_end(&self) -> Option<FilePosition> {
        self.pending().map(|batch| batch.end)
    }

    fn messages_of(&self, batch: &PendingBatch) -> String {
        counted(batch.end.row.saturating_sub(self.sent.row), "message")
    }

    /// The same for the same messages at the same position only: the server does not compare the messages of a
    /// request id that it has stored, so changed ones would be lost.
    fn request_id(&self, messages: &[OutgoingMessage]) -> String {
        let mut hasher = Xxh3::new();
        hasher.update(self.id.as_bytes());
        hasher.update(&self.sent.byte.to_be_bytes());
        for message in messages {
            hasher.update(&message.encode_length_delimited_to_vec());
        }
        format!("load-{:032x}", hasher.digest128())
    }
}

/// Warns of messages that may be sent twice because the server no longer deduplicates their request.
pub(super) fn warn_of_repeats(checkpoint: &Checkpoint<Batches>) {
    let Some(path) = checkpoint.written() else { return };
    let age = path.metadata().and_then(|found| found.modified()).map(|written| written.elapsed());
    let is_old = matches!(age, Ok(Ok(age)) if age >= DEDUPLICATED);
    if let Some(batch) = checkpoint.state.pending().filter(|_| is_old) {
        let (messages, path) = (checkpoint.state.messages_of(batch), path.display());
        report_line(&format!("warning: {messages} may be sent twice: `{path}` is old"));
    }
}

/// Records that the messages before `end` are about to be sent; returns the id of the request that
/// sends them.
///
/// The checkpoint is written first: the id of the load must outlive its messages. The completion of the previous
/// batch is recorded only then, since a repetition would be deduplicated; so a batch costs one write.
pub(super) fn begin(
    checkpoint: &mut Checkpoint<Batches>,
    end: FilePosition,
    messages: &[OutgoingMessage],
) -> Result<String, CliError> {
    let state = &mut checkpoint.state;
    let request_id = state.request_id(messages);
    let batch = PendingBatch { end, request_id: request_id.clone() };
    if state.pending() == Some(&batch) {
        // The file keeps its age: the deduplication window of the server starts with the first
        // request.
        return Ok(request_id);
    }
    if let Some(changed) = state.pending().filter(|batch| batch.request_id != request_id) {
        let messages = state.messages_of(changed);
        report_line(&format!(
            "warning: lines of an unfinished batch have changed: {messages} may be sent twice"
        ));
    }
    state.pending = Some(batch);
    checkpoint.save()?;
    Ok(request_id)
}

/// The error of a load, with its progress and a hint.
pub(super) fn stopped(
    checkpoint: &mut Checkpoint<Batches>,
    error: CliError,
    endpoint: &str,
) -> CliError {
    let is_written = checkpoint.written().is_some();
    if is_written
        && checkpoint.state.pending().is_none()
        && let Err(problem) = checkpoint.save()
    {
        // Messages that are not recorded as sent are deduplicated.
        report_line(&format!("warning: {problem}"));
    }
    let kept = checkpoint.is_kept();
    match error {
        CliError::Usage(problem) if kept => CliError::Usage(match is_written {
            true => format!(
                "{problem}; the lines before it are sent, fix the line and continue with --resume"
            ),
            false => format!("{problem}; nothing was sent"),
        }),
        error => {
            let sent = checkpoint.state.sent.row;
            error.halted(sent > 0, || Halt {
                endpoint: endpoint.to_owned(),
                progress: format!("{} sent", counted(sent, "message")),
                next: match (is_written, kept) {
                    (true, _) => "continue with --resume".to_owned(),
                    (false, true) => "repeat it".to_owned(),
                    _ => "a pipe cannot be resumed; up to 100 more may be sent".to_owned(),
                },
            })
        }
    }
}
