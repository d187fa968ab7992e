//! The errors of queue operations, and their translation for clients.

use std::{sync::Arc, time::Duration};

use trestle_kv::{CommitError, EngineError};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::name::QueueName;
use trestle_rpc::not_owner::not_owner;

/// When to call again after a change of the owner or of the settings.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// A queue operation that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum QueueError {
    /// The request violates a rule of the data model.
    #[error(transparent)]
    Invalid(#[from] Fault),
    /// A queue of this name exists, with other settings.
    #[error("a queue with other settings exists: queue=`{0}`")]
    QueueExists(QueueName),
    /// The queue does not exist.
    #[error("the specified queue does not exist: queue=`{0}`")]
    QueueNotFound(QueueName),
    /// The receipt is not the last one of an existing message.
    #[error(
        "the specified message does not exist: it may have been received or updated since: \
         message_id=`{}`",
        quoted(.0)
    )]
    MessageNotFound(String),
    /// Another process owns the queue. Nothing was written.
    #[error("the queue is owned by another process: queue=`{0}`")]
    NotOwner(QueueName),
    /// The queue was cleared or changed during every attempt. Nothing was written.
    #[error("the queue keeps changing: queue=`{0}`")]
    KeepsChanging(QueueName),
    /// The tokens of the queue are exhausted.
    #[error("no process can take over the queue any more: clear it, or delete and create it")]
    TokensExhausted,
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
    /// An unreadable record; `what` names its kind.
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
            QueueError::NotOwner(name) => {
                not_owner(message, name.as_str()).retry_after(RETRY_AFTER)
            }
            QueueError::KeepsChanging(name) => {
                queue(Reason::ServerUnavailable, name).retry_after(RETRY_AFTER)
            }
            QueueError::TokensExhausted => Self::new(Reason::InternalError, message),
            QueueError::Corrupt(_) => Self::new(Reason::CorruptRecord, message),
            QueueError::Read(failure) => failure.clone().into(),
            QueueError::Commit(failure) => failure.clone().into(),
        }
    }
}
