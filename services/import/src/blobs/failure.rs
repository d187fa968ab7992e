//! What ends the copy of one blob, and what ends the import.

use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use trestle_command::errors::CliError;

/// The reason of a server for an absent blob.
const BLOB_NOT_FOUND: &str = "BLOB_NOT_FOUND";

/// Why a blob was not copied.
#[derive(Debug)]
pub(crate) enum BlobFailure {
    /// For a reason of its own: others can be copied.
    Item(String),
    /// The import ends.
    Fatal(CliError),
}

impl From<CliError> for BlobFailure {
    fn from(error: CliError) -> Self {
        Self::Fatal(error)
    }
}

impl From<Status> for BlobFailure {
    fn from(status: Status) -> Self {
        match is_of_one_blob(&status) {
            true => Self::Item(status.message().to_owned()),
            false => Self::Fatal(status.into()),
        }
    }
}

fn is_of_one_blob(status: &Status) -> bool {
    match status.code() {
        Code::InvalidArgument
        | Code::OutOfRange
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::DataLoss => true,
        Code::NotFound => reason(status).as_deref() == Some(BLOB_NOT_FOUND),
        _ => false,
    }
}

/// The reason of an error of the server.
pub(crate) fn reason(status: &Status) -> Option<String> {
    Some(status.get_error_details().error_info()?.reason.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

    fn is_of_item(status: Status) -> bool {
        matches!(BlobFailure::from(status), BlobFailure::Item(_))
    }

    #[test]
    fn an_error_of_one_blob_does_not_end_the_import() {
        let absent = |reason: &str| {
            let details = ErrorDetails::with_error_info(reason, "trestle", HashMap::new());
            Status::with_error_details(Code::NotFound, "absent", details)
        };
        assert!(is_of_item(absent(BLOB_NOT_FOUND)));
        assert!(is_of_item(Status::invalid_argument("tags")));
        assert!(is_of_item(Status::failed_precondition("leased")));
        for status in [
            absent("CONTAINER_NOT_FOUND"),
            Status::not_found("anything"),
            Status::permission_denied("no"),
            Status::unavailable("busy"),
            Status::resource_exhausted("a quota"),
        ] {
            assert!(!is_of_item(status));
        }
    }
}
