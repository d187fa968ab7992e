//! What a queue operation can fail with, and what each failure means to a client.

use std::{sync::Arc, time::Duration};

use trestle_kv::{CommitError, EngineError};
use trestle_service::{
    fault::{Fault, Reason, quoted},
    name::QueueName,
};

/// How long a client should wait before it repeats a call that the store could not take.
const STORAGE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// A queue operation that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum QueueError {
    /// The request breaks a rule of the data model.
    #[error(transparent)]
    Invalid(#[from] Fault),
    /// A queue of this name exists, with other settings.
    #[error("a queue with other settings exists: queue=`{0}`")]
    QueueExists(QueueName),
    /// The queue does not exist.
    #[error("the specified queue does not exist: queue=`{0}`")]
    QueueNotFound(QueueName),
    /// The receipt is not the last one of a message that is there.
    #[error(
        "the specified message does not exist, or was received or updated since: message_id=`{}`",
        quoted(.0)
    )]
    MessageNotFound(String),
    /// A stored record cannot be read.
    #[error("stored record unreadable: {0}")]
    Corrupt(Arc<str>),
    /// A read failed.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// A commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl QueueError {
    /// An unreadable record; `what` says which kind.
    pub(crate) fn corrupt(what: &str) -> Self {
        Self::Corrupt(what.into())
    }
}

impl From<QueueError> for Fault {
    fn from(error: QueueError) -> Self {
        let message = error.to_string();
        let queue =
            |reason, name: &QueueName| Self::about(reason, message.clone(), "queue", name.as_str());
        match &error {
            QueueError::Invalid(fault) => fault.clone(),
            QueueError::QueueExists(name) => queue(Reason::QueueAlreadyExists, name),
            QueueError::QueueNotFound(name) => queue(Reason::QueueNotFound, name),
            QueueError::MessageNotFound(id) => {
                let name = quoted(id).into_owned();
                Self::about(Reason::MessageNotFound, message.clone(), "message", name)
            }
            QueueError::Corrupt(_) => Self::new(Reason::CorruptRecord, message),
            QueueError::Read(failure) => read_fault(failure, message),
            QueueError::Commit(failure) => commit_fault(failure, message),
        }
    }
}

fn read_fault(failure: &EngineError, message: String) -> Fault {
    match failure {
        EngineError::Unavailable { .. } => unavailable(Reason::ServerUnavailable, message),
        EngineError::Corrupt { .. } => Fault::new(Reason::CorruptRecord, message),
    }
}

fn commit_fault(failure: &CommitError, message: String) -> Fault {
    match failure {
        CommitError::Unavailable { .. } => unavailable(Reason::ServerUnavailable, message),
        CommitError::Busy { .. } => unavailable(Reason::ServerBusy, message),
        CommitError::Stopped { .. } => unavailable(Reason::StorageStopped, message),
        CommitError::Full { .. } => unavailable(Reason::InsufficientStorage, message),
        CommitError::Unknown { .. } => Fault::new(Reason::OutcomeUnknown, message),
        CommitError::Corrupt { .. } => Fault::new(Reason::CorruptRecord, message),
        CommitError::Refused { .. } => Fault::new(Reason::InternalError, message),
    }
}

fn unavailable(reason: Reason, message: String) -> Fault {
    Fault::new(reason, message).retry_after(STORAGE_RETRY_AFTER)
}
