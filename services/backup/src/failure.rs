//! The error of a command that something else ended.

use std::error::Error;

use trestle_command::errors::CliError;

/// A backup that something else than its target ended.
pub(crate) fn broken(error: &dyn Error) -> CliError {
    CliError::Source { text: format!("the backup ended: {error}"), busy: false }
}
