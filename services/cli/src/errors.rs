//! What can go wrong in a command, how it is shown, and the exit code it ends with.
//!
//! Errors of the server are shown with everything it said: reason, message, each violation, retry
//! advice.

use std::{collections::BTreeMap, fmt::Write as _, io, process::ExitCode, time::Duration};

use serde_json::json;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use trestle_service::fault::code_name;

/// Text for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed; for import: some rows were not written
  2  usage: a malformed flag, value or file, or a request the server refuses as malformed
  3  not found: no such table or entity
  4  already exists, or a condition (--if-match) does not hold
  5  unavailable: the server cannot be reached, is busy, or did not answer in time; try again";

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The server, or the connection to it, failed the call.
    #[error("{}", .0.message())]
    Call(#[from] Box<Status>),
    /// There is no connection.
    #[error("cannot connect: endpoint=`{endpoint}`, cause=`{cause}`")]
    Connect {
        /// Where to.
        endpoint: String,
        /// The innermost cause.
        cause: String,
    },
    /// The command line, or what it points at, is malformed.
    #[error("{0}")]
    Usage(String),
    /// A file or a standard stream failed.
    #[error("{what}: {source}")]
    File {
        /// What was tried, with the path.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Rows of an import were not written; details were shown before.
    #[error("{0}")]
    Rows(String),
    /// What is copied from cannot be read.
    #[error("{text}")]
    Source {
        /// What failed, without secrets.
        text: String,
        /// Whether it may go better the next time.
        busy: bool,
    },
    /// A signature that was explained is refused.
    #[error("the signature is refused")]
    Refused,
    /// The server broke the contract.
    #[error("unexpected answer from the server: {0}")]
    Protocol(String),
}

impl From<Status> for CliError {
    fn from(status: Status) -> Self {
        Self::Call(Box::new(status))
    }
}

impl CliError {
    /// Names what was being done with a file when it failed.
    pub(crate) fn file(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::File { what, source }
    }

    /// Whether the reader of our output went away, which is no failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The code the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Call(status) => match status.code() {
                Code::InvalidArgument | Code::OutOfRange => 2,
                Code::NotFound => 3,
                Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => 4,
                Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded => 5,
                _ if is_transport(status) => 5,
                _ => 1,
            },
            Self::Connect { .. } | Self::Source { busy: true, .. } => 5,
            Self::Usage(_) => 2,
            Self::File { .. }
            | Self::Rows(_)
            | Self::Source { .. }
            | Self::Refused
            | Self::Protocol(_) => 1,
        }
    }

    /// The error for a person, or with `json` as one object for a program.
    pub(crate) fn render(&self, json: bool) -> String {
        match self {
            Self::Call(status) if json => call_json(status).to_string(),
            Self::Call(status) => call_text(status),
            other if json => {
                json!({ "error": { "message": other.to_string(), "exit_code": other.code() } })
                    .to_string()
            }
            other => format!("error: {other}"),
        }
    }
}

/// Whether the status was made on this side, because the connection failed under the call.
///
/// Statuses that a server sent have no source; a deadline of our own has one, but says so itself.
pub(crate) fn is_transport(status: &Status) -> bool {
    let own_deadline = matches!(status.code(), Code::DeadlineExceeded)
        || (status.code() == Code::Cancelled && status.message().contains("Timeout expired"));
    let cut = status.code() == Code::Internal && status.message().starts_with("h2 protocol error");
    (std::error::Error::source(status).is_some() || cut) && !own_deadline
}

/// Whether there was no connection to send the call over.
fn was_refused(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let refused = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if refused == Some(io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// How long the server asks to wait before a retry.
pub(crate) fn retry_after(details: &ErrorDetails) -> Option<Duration> {
    details.retry_info().and_then(|info| info.retry_delay)
}

fn call_text(status: &Status) -> String {
    let details = status.get_error_details();
    let mut text = format!("error: {}", status.message());
    let code = code_name(status.code());
    match details.error_info() {
        Some(info) => {
            let _ = write!(text, "\n  reason: {} ({code})", info.reason);
            if let Some(index) = info.metadata.get("index") {
                let _ = write!(text, "\n  operation: index {index} of the batch");
            }
        }
        None => {
            let _ = write!(text, "\n  code: {code}");
        }
    }
    for violation in details.bad_request().iter().flat_map(|bad| &bad.field_violations) {
        let rule = format!("{}: {}", violation.field, violation.description);
        // A single violation is often the whole message.
        if rule != status.message() {
            let _ = write!(text, "\n  violation: {rule}");
        }
    }
    if let Some(advice) = advice(status, retry_after(&details)) {
        let _ = write!(text, "\n  retry: {advice}");
    }
    text
}

fn call_json(status: &Status) -> serde_json::Value {
    let details = status.get_error_details();
    let violations: Vec<_> = details
        .bad_request()
        .iter()
        .flat_map(|bad| &bad.field_violations)
        .map(|violation| json!({ "field": violation.field, "rule": violation.description }))
        .collect();
    let info = details.error_info();
    let metadata = info.map(|info| info.metadata.iter().collect::<BTreeMap<_, _>>());
    json!({ "error": {
        "message": status.message(),
        "code": code_name(status.code()),
        "reason": info.map(|info| &info.reason),
        "metadata": metadata,
        "violations": violations,
        "retry": advice(status, retry_after(&details)),
        "retry_after_ms": retry_after(&details).map(|delay| delay.as_millis()),
    } })
}

/// Whether and how to repeat the call.
fn advice(status: &Status, delay: Option<Duration>) -> Option<String> {
    if was_refused(status) {
        return Some("the server cannot be reached; nothing was sent".to_owned());
    }
    if is_transport(status) {
        return Some(
            "the connection failed; whether a write took place is not known, read back first"
                .to_owned(),
        );
    }
    let text = match status.code() {
        Code::Unavailable => "repeat as it is; nothing was written",
        Code::ResourceExhausted => "repeat later; nothing was written",
        Code::Aborted => "read the entity again and redo the change",
        Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            "whether a write took place is not known, read back first"
        }
        _ if delay.is_some() => "repeat as it is",
        _ => return None,
    };
    Some(match delay {
        Some(delay) => format!("wait {} ms, then {text}", delay.as_millis()),
        None => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Status {
        let mut details = ErrorDetails::new();
        details.set_error_info(
            "PROPERTY_NAME_INVALID",
            "trestle.table.v1.TableService",
            [("azureCode".to_owned(), "PropertyNameInvalid".to_owned())],
        );
        details.add_bad_request_violation("entity.properties[0].name", "name=`a-b`: rule one");
        details.add_bad_request_violation("entity.properties[1].name", "name=`1`: rule two");
        Status::with_error_details(Code::InvalidArgument, "entity is malformed", details)
    }

    #[test]
    fn a_refused_request_shows_reason_and_every_violation() {
        let error = CliError::from(refused());

        assert_eq!(
            error.render(false),
            "error: entity is malformed\n  \
             reason: PROPERTY_NAME_INVALID (INVALID_ARGUMENT)\n  \
             violation: entity.properties[0].name: name=`a-b`: rule one\n  \
             violation: entity.properties[1].name: name=`1`: rule two"
        );
        assert_eq!(error.code(), 2);
    }

    #[test]
    fn a_refused_request_is_one_object_for_programs() {
        let text = CliError::from(refused()).render(true);

        assert_eq!(
            text,
            "{\"error\":{\"message\":\"entity is malformed\",\"code\":\"INVALID_ARGUMENT\",\
             \"reason\":\"PROPERTY_NAME_INVALID\",\
             \"metadata\":{\"azureCode\":\"PropertyNameInvalid\"},\"violations\":[\
             {\"field\":\"entity.properties[0].name\",\"rule\":\"name=`a-b`: rule one\"},\
             {\"field\":\"entity.properties[1].name\",\"rule\":\"name=`1`: rule two\"}],\
             \"retry\":null,\"retry_after_ms\":null}}"
        );
    }

    #[test]
    fn a_violation_that_is_the_message_is_not_repeated() {
        let details = ErrorDetails::with_bad_request_violation("table", "too short");
        let code = Code::InvalidArgument;
        let status = Status::with_error_details(code, "table: too short", details);

        let text = CliError::from(status).render(false);

        assert_eq!(text, "error: table: too short\n  code: INVALID_ARGUMENT");
    }

    #[test]
    fn a_refused_connection_says_that_nothing_was_sent() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let text = CliError::from(Status::from_error(Box::new(refused))).render(false);

        assert!(text.contains("nothing was sent"), "{text}");
    }

    #[test]
    fn a_busy_server_says_how_long_to_wait() {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(1500)));
        let status = Status::with_error_details(Code::ResourceExhausted, "busy", details);
        let error = CliError::from(status);

        assert_eq!(
            error.render(false),
            "error: busy\n  code: RESOURCE_EXHAUSTED\n  \
             retry: wait 1500 ms, then repeat later; nothing was written"
        );
        assert_eq!(error.code(), 5);
    }

    #[test]
    fn exit_codes_follow_the_kind_of_failure() {
        let call = |code| CliError::from(Status::new(code, "x")).code();

        assert_eq!(call(Code::NotFound), 3);
        assert_eq!(call(Code::AlreadyExists), 4);
        assert_eq!(call(Code::Aborted), 4);
        assert_eq!(call(Code::Unavailable), 5);
        assert_eq!(call(Code::Internal), 1);
        assert_eq!(CliError::Usage(String::new()).code(), 2);
        assert_eq!(CliError::Rows(String::new()).code(), 1);
        let endpoint = String::new();
        assert_eq!(CliError::Connect { endpoint, cause: String::new() }.code(), 5);
    }

    #[test]
    fn a_cut_connection_never_claims_that_nothing_was_written() {
        let error = Status::from_error(Box::new(io::Error::other("reset")));

        assert!(is_transport(&error));
        assert!(CliError::from(error).render(false).contains("is not known"));
    }
}
