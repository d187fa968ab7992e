//! The errors of log operations, and their translation for clients.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use tokio::task::JoinError;
use trestle_kv::{CommitError, EngineError};
use trestle_model::fault::{Fault, Reason};
use trestle_objects::WriteObjectError;
use trestle_proto::wire::MalformedMessage;
use trestle_rpc::log_rate::LogRate;

use crate::{
    batch::CorruptBatch,
    names::StreamName,
    segment::{MergeSegmentsError, ReadSegmentError, WriteSegmentError},
};

/// When to call again after a failure of the object store, or while too much waits for it.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A log operation that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LogError {
    /// The request violates a rule of the data model.
    #[error(transparent)]
    Invalid(#[from] Fault),
    /// A stream of this name exists with other settings.
    #[error("the stream exists with other settings: stream=`{0}`")]
    StreamExists(StreamName),
    /// The stream does not exist.
    #[error("the stream does not exist: stream=`{0}`")]
    StreamNotFound(StreamName),
    /// The next sequence is not the expected one.
    #[error(
        "the next sequence is not the expected one: next_sequence=`{next}`, expected=`{expected}`"
    )]
    Sequence {
        /// The next one.
        next: u64,
        /// What the call states.
        expected: u64,
    },
    /// Too much waits for the object store.
    #[error("too many records wait to be sealed: unsealed_bytes=`{bytes}`, max=`{max}`")]
    Backlog {
        /// The bytes that wait.
        bytes: u64,
        /// Most of them.
        max: u64,
    },
    /// Too many reads hold unsealed records.
    #[error("too many reads of unsealed records are in progress")]
    Busy,
    /// Records have times out of range while service time and the wall clock disagree. Nothing was written.
    #[error(
        "records have times out of range, and the clocks of the server disagree: service time \
         is ahead of the wall clock by `{offset_ms}` ms"
    )]
    ClocksDisagree {
        /// How far service time is ahead of the wall clock; negative where it is behind.
        offset_ms: i64,
    },
    /// The stream was changed during every attempt. Nothing was written.
    #[error("the stream keeps changing: stream=`{0}`")]
    KeepsChanging(StreamName),
    /// The process stops. Nothing was written.
    #[error("the server is shutting down: open the stream again")]
    ShuttingDown,
    /// Stored data cannot be read, or differs from its checksum.
    #[error("stored data is corrupt: {0}")]
    Corrupt(Arc<str>),
    /// The object store failed. Nothing was published. The log has its error, which may name hosts and accounts.
    #[error("the object store failed")]
    Objects,
    /// A read failed.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// A commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A panic of work on stored data: what it read is not as it was written.
impl From<JoinError> for LogError {
    fn from(error: JoinError) -> Self {
        Self::corrupt(format!("a task failed: {error}"))
    }
}

impl LogError {
    /// Unreadable data; `what` names it.
    pub(crate) fn corrupt(what: impl Into<Arc<str>>) -> Self {
        Self::Corrupt(what.into())
    }

    /// A failure of the object store; its error is logged once in ten seconds.
    pub(crate) fn objects(error: &dyn std::error::Error) -> Self {
        static LINES: LazyLock<LogRate> = LazyLock::new(LogRate::default);
        if let Some(omitted) = LINES.may_log((), Instant::now()) {
            tracing::warn!(%error, omitted, "the object store of segments failed");
        }
        Self::Objects
    }
}

impl From<CorruptBatch> for LogError {
    fn from(error: CorruptBatch) -> Self {
        Self::corrupt(error.to_string())
    }
}

impl From<MalformedMessage> for LogError {
    fn from(error: MalformedMessage) -> Self {
        Self::corrupt(format!("a stored record is malformed: {error}"))
    }
}

impl From<ReadSegmentError> for LogError {
    fn from(error: ReadSegmentError) -> Self {
        match error {
            ReadSegmentError::Store(error) => Self::objects(&error),
            error @ ReadSegmentError::DataLoss { .. } => Self::corrupt(error.to_string()),
        }
    }
}

impl From<WriteSegmentError> for LogError {
    fn from(error: WriteSegmentError) -> Self {
        Self::corrupt(error.to_string())
    }
}

impl From<MergeSegmentsError> for LogError {
    fn from(error: MergeSegmentsError) -> Self {
        match error {
            MergeSegmentsError::Read(error) => error.into(),
            MergeSegmentsError::Write(error) => error.into(),
            error @ MergeSegmentsError::Task(_) => Self::corrupt(error.to_string()),
        }
    }
}

impl From<WriteObjectError> for LogError {
    fn from(error: WriteObjectError) -> Self {
        match error {
            WriteObjectError::Space(error) => error.into(),
            error => Self::objects(&error),
        }
    }
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        let message = error.to_string();
        let about = |reason, name: &StreamName| {
            Self::about(reason, message.clone(), "stream", name.as_str())
        };
        match &error {
            LogError::Invalid(fault) => fault.clone(),
            LogError::StreamExists(name) => about(Reason::LogStreamAlreadyExists, name),
            LogError::StreamNotFound(name) => about(Reason::LogStreamNotFound, name),
            LogError::Sequence { .. } => Self::new(Reason::SequenceConditionNotMet, message),
            LogError::Backlog { .. } => {
                Self::new(Reason::LogBacklogFull, message).retry_after(RETRY_AFTER)
            }
            LogError::Busy => Self::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER),
            LogError::ShuttingDown => Self::new(Reason::ServerUnavailable, message),
            LogError::KeepsChanging(_) | LogError::Objects | LogError::ClocksDisagree { .. } => {
                Self::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
            }
            LogError::Corrupt(_) => Self::new(Reason::CorruptRecord, message),
            LogError::Read(failure) => failure.clone().into(),
            LogError::Commit(failure) => failure.clone().into(),
        }
    }
}

#[cfg(test)]
mod tests;
