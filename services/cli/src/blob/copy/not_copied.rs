//! What a copy of a folder leaves out. An error of one file or blob is reported with its name, and the others are
//! copied; any other error ends the copy.

use std::{io::ErrorKind, sync::atomic::Ordering};

use serde_json::json;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use trestle_command::{errors::CliError, output::report_line};

use super::BlobTransfer;

/// The reason of a server for a blob that was deleted since it was listed.
const BLOB_NOT_FOUND: &str = "BLOB_NOT_FOUND";

/// A file or a blob that has no place at the destination.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SkippedItem {
    /// Its path or its name.
    pub(super) name: String,
    /// The broken rule.
    pub(super) why: String,
}

impl SkippedItem {
    pub(super) fn new(name: impl Into<String>, why: &CliError) -> Self {
        Self { name: name.into(), why: why.to_string() }
    }
}

impl BlobTransfer {
    /// Counts an item whose copy ended, of which `bytes` are counted; in a folder an error of the item alone is
    /// reported.
    pub(super) fn end_item(
        &self,
        (name, bytes): (&str, u64),
        ended: Result<(), CliError>,
    ) -> Result<(), CliError> {
        match ended {
            Ok(()) => self.complete(),
            Err(error) if self.is_folder && is_of_item(&error) => {
                self.copied.bytes.fetch_sub(bytes, Ordering::Relaxed);
                self.skip(&SkippedItem::new(name, &error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reports an item that is not copied.
    pub(super) fn skip(&self, SkippedItem { name, why }: &SkippedItem) {
        self.copied.skipped.fetch_add(1, Ordering::Relaxed);
        self.progress.suspend(|| match self.is_json {
            true => report_line(&json!({ "not_copied": name, "error": why }).to_string()),
            false => report_line(&format!("not copied: `{name}`: {why}")),
        });
    }
}

/// Whether an error is of one file or blob: others can be copied, and repeating the copy does not help.
pub(in crate::blob) fn is_of_item(error: &CliError) -> bool {
    match error {
        CliError::Usage(_) => true,
        CliError::File { source, .. } => matches!(
            source.kind(),
            ErrorKind::AlreadyExists
                | ErrorKind::DirectoryNotEmpty
                | ErrorKind::InvalidFilename
                | ErrorKind::InvalidInput
                | ErrorKind::IsADirectory
                | ErrorKind::NotADirectory
                | ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                // The file changed while it was copied.
                | ErrorKind::Other
        ),
        CliError::Call(status) => is_call_of_item(status),
        _ => false,
    }
}

fn is_call_of_item(status: &Status) -> bool {
    match status.code() {
        Code::InvalidArgument
        | Code::OutOfRange
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::DataLoss => true,
        Code::NotFound => {
            let details = status.get_error_details();
            details.error_info().is_some_and(|info| info.reason == BLOB_NOT_FOUND)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_name_without_a_place_is_of_one_item_and_a_full_disk_is_not() {
        let of_file = |kind: ErrorKind| is_of_item(&CliError::file("x")(kind.into()));
        let too_long = io::Error::from_raw_os_error(36);
        assert!(is_of_item(&CliError::file("x")(too_long)));
        for kind in [ErrorKind::NotADirectory, ErrorKind::IsADirectory, ErrorKind::NotFound] {
            assert!(of_file(kind), "{kind}");
        }
        for kind in [ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem, ErrorKind::BrokenPipe] {
            assert!(!of_file(kind), "{kind}");
        }
    }

    #[test]
    fn an_error_of_the_server_or_the_container_ends_the_copy() {
        let call = |status: Status| is_of_item(&CliError::Call(Box::new(status)));
        assert!(call(Status::data_loss("damaged")));
        assert!(call(Status::failed_precondition("leased")));
        for status in [
            Status::unavailable("busy"),
            Status::permission_denied("no"),
            Status::not_found("container"),
        ] {
            assert!(!call(status));
        }
    }
}
