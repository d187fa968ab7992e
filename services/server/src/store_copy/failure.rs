//! Errors of what a copy reads and writes.

use std::error::Error;

use trestle_command::errors::CliError;
use trestle_kv::{CommitError, EngineError};
use trestle_kv_fjall::OpenError;
use trestle_kv_postgres::PostgresError;
use trestle_objects::OpenObjectsError;

use crate::process_error::with_causes;

/// A store that failed.
pub(super) fn broken(error: &dyn Error) -> CliError {
    CliError::Source { text: format!("the copy ended: {error}"), busy: false }
}

/// Rows that cannot be read.
pub(super) fn unread(error: &EngineError) -> CliError {
    let busy = matches!(error, EngineError::Unavailable { .. } | EngineError::SnapshotEnded { .. });
    CliError::Source { text: format!("the copy ended: {error}"), busy }
}

/// Rows that cannot be written.
pub(super) fn unwritten(error: &CommitError) -> CliError {
    CliError::Source { text: format!("the copy ended: {error}"), busy: is_temporary(error) }
}

/// A data directory that cannot be opened.
pub(super) fn unopened(error: &OpenError) -> CliError {
    let busy = matches!(error, OpenError::Locked { .. });
    CliError::Source { text: with_causes(error.to_string(), error.source()), busy }
}

/// A database that cannot be opened.
pub(super) fn unreached(error: &PostgresError) -> CliError {
    let busy = matches!(error, PostgresError::Unavailable { .. });
    match error {
        PostgresError::Shared { .. } => CliError::Usage(error.to_string()),
        _ => CliError::Source { text: error.to_string(), busy },
    }
}

/// An object store that cannot be opened.
pub(super) fn unopened_objects(error: &OpenObjectsError) -> CliError {
    let busy = matches!(error, OpenObjectsError::Store(_));
    CliError::Source { text: format!("the copy ended: {error}"), busy }
}

/// Whether the same change may be stored later, or is stored already.
pub(super) fn is_temporary(error: &CommitError) -> bool {
    matches!(
        error,
        CommitError::Unavailable { .. } | CommitError::Busy { .. } | CommitError::Unknown { .. }
    )
}

/// Another command has the copy.
pub(super) fn taken_over() -> CliError {
    let text = "another `trestle store copy` continues this copy".to_owned();
    CliError::Source { text, busy: true }
}

/// Does what blocks on another thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| broken(&error))
}
