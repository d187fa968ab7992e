//! What a request to the database failed with, by what it means for a change.

use std::sync::Arc;

use tokio_postgres::error::{DbError, Severity, SqlState};
use trestle_kv::{CommitError, EngineError};

use crate::stats::RetryReason;

/// A request that failed.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The server rejected a statement, and with it the transaction; the connection goes on.
    Rejected {
        /// Its kind.
        state: SqlState,
        /// For people.
        reason: Arc<str>,
    },
    /// The connection is lost, or the server closes it: what was sent may have been executed.
    Lost(Arc<str>),
}

impl Failure {
    /// Why a transaction that failed so before its commit may succeed when it is repeated; none where it cannot.
    pub(crate) fn retry_reason(&self) -> Option<RetryReason> {
        let Self::Rejected { state, .. } = self else { return Some(RetryReason::Lost) };
        let reasons = [
            (SqlState::T_R_SERIALIZATION_FAILURE, RetryReason::Serialization),
            (SqlState::T_R_DEADLOCK_DETECTED, RetryReason::Deadlock),
            (SqlState::LOCK_NOT_AVAILABLE, RetryReason::LockTimeout),
            // Mostly its table of locks, whose size is configured.
            (SqlState::OUT_OF_MEMORY, RetryReason::LockTable),
            // A version that was not greater: the schema has no other column that may not be null.
            (SqlState::NOT_NULL_VIOLATION, RetryReason::Version),
            (SqlState::READ_ONLY_SQL_TRANSACTION, RetryReason::ReadOnly),
        ];
        reasons.into_iter().find(|(known, _)| known == state).map(|(_, reason)| reason)
    }

    /// Whether it met another transaction.
    pub(crate) fn is_conflict(&self) -> bool {
        use RetryReason::{Deadlock, LockTimeout, Serialization};
        matches!(self.retry_reason(), Some(Serialization | Deadlock | LockTimeout))
    }

    /// Whether it is one of these.
    pub(crate) fn is(&self, reason: RetryReason) -> bool {
        self.retry_reason() == Some(reason)
    }

    /// For people.
    pub(crate) fn reason(&self) -> Arc<str> {
        let (Self::Rejected { reason, .. } | Self::Lost(reason)) = self;
        Arc::clone(reason)
    }

    pub(crate) fn lost(reason: impl Into<Arc<str>>) -> Self {
        Self::Lost(reason.into())
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) if !ends_session(error) => {
                Self::Rejected { state: error.code().clone(), reason: in_words(error).into() }
            }
            Some(error) => Self::Lost(in_words(error).into()),
            None => Self::Lost(causes(&error).into()),
        }
    }
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        Self::Unavailable { reason: failure.reason() }
    }
}

/// That of a change of which nothing is stored.
impl From<&Failure> for CommitError {
    fn from(failure: &Failure) -> Self {
        Self::Unavailable { reason: failure.reason() }
    }
}

/// Whether the server closes the connection after this.
fn ends_session(error: &DbError) -> bool {
    match error.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => error.severity() != "ERROR",
    }
}

/// An error of the server, with its kind and what it says beside it.
fn in_words(error: &DbError) -> String {
    let detail = error.detail().map_or_else(String::new, |detail| format!(": {detail}"));
    format!("{}{detail}: sqlstate=`{}`", error.message(), error.code().code())
}

/// An error of the connection with its causes.
fn causes(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}
