//! What can go wrong in a command, how it is shown, and the exit code it ends with.
//!
//! Errors of the server are shown completely: reason, message, each violation, retry advice.

use std::{collections::BTreeMap, fmt::Write as _, io, process::ExitCode};

use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use trestle_service::fault::code_name;

mod advice;

use advice::{advice, connect_hint, hint, message, was_refused};
pub(crate) use advice::{innermost, is_transport, needs_restart, retry_after};

/// Text for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed; for import: some rows were not written
    2  usage: a malformed flag, value or file, or a request the server refuses as malformed
    3  not found: no such table or entity
    4  already exists, or a condition (--if-match) does not hold
    5  unavailable: the server cannot be reached, is busy, or did not answer in time; try again
  130  interrupted by Ctrl-C";

/// The same for queues.
pub(crate) const QUEUE_EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed
    2  usage: a malformed flag, value or file, or a request the server refuses as malformed
    3  not found: no such queue or message, or the receipt is not its last one
    4  already exists, with other settings
    5  unavailable: the server cannot be reached, is busy, or did not answer in time; try again
  130  interrupted by Ctrl-C";

/// The exit code of what may go better the next time.
const UNAVAILABLE: u8 = 5;

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
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// A command of many calls ended on the way.
    #[error("{cause}")]
    Halted {
        /// Why.
        cause: Box<CliError>,
        /// How far it came.
        at: Halt,
    },
    /// The server broke the contract.
    #[error("unexpected answer from the server: {0}")]
    Protocol(String),
}

/// How far a command of many calls came.
#[derive(Debug)]
pub(crate) struct Halt {
    /// The endpoint of its calls.
    pub(crate) endpoint: String,
    /// What is done, such as `94,800 rows written`.
    pub(crate) progress: String,
    /// What to do next, such as `go on with --resume`.
    pub(crate) next: String,
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

    /// Names a file of the command line that cannot be read.
    pub(crate) fn input(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Usage(format!("{what}: {error}"))
    }

    /// The failure of a command of many calls, with its progress; unchanged where it has that already,
    /// or where the server refused a command that has not `begun`.
    pub(crate) fn halted(self, begun: bool, at: impl FnOnce() -> Halt) -> Self {
        match self {
            error if error.is_broken_pipe() => error,
            error @ Self::Call(_) if !begun && error.code() != UNAVAILABLE => error,
            cause @ (Self::Call(_)
            | Self::Connect { .. }
            | Self::File { .. }
            | Self::Interrupted
            | Self::Protocol(_)
            | Self::Source { .. }) => Self::Halted { cause: Box::new(cause), at: at() },
            error => error,
        }
    }

    /// Whether the reader of our output is closed, which is not a failure.
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
                Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded => UNAVAILABLE,
                _ if is_transport(status) => UNAVAILABLE,
                _ => 1,
            },
            Self::Connect { .. } | Self::Source { busy: true, .. } => UNAVAILABLE,
            Self::Usage(_) => 2,
            // What a shell gives for SIGINT.
            Self::Interrupted => 130,
            Self::Halted { cause, .. } => cause.code(),
            Self::File { .. }
            | Self::Rows(_)
            | Self::Source { .. }
            | Self::Refused
            | Self::Protocol(_) => 1,
        }
    }

    /// Whether it may go better the next time, and may have been done this time.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.code() == UNAVAILABLE
    }

    /// Whether a connection broke without saying why.
    pub(crate) fn is_unexplained(&self) -> bool {
        match self {
            Self::Call(status) => is_transport(status) && !was_refused(status),
            Self::Halted { cause, .. } => cause.is_unexplained(),
            _ => false,
        }
    }

    /// The error for a person, or with `json` as one object for a program. A `diagnosis` is what was
    /// found out about it since.
    pub(crate) fn render(&self, json: bool, diagnosis: Option<&str>) -> String {
        let (cause, at) = match self {
            Self::Halted { cause, at } => (&**cause, Some(at)),
            other => (other, None),
        };
        let advice = cause.advice(at, diagnosis);
        match json {
            true => cause.object(at, advice.as_deref()).to_string(),
            false => cause.text(at, advice.as_deref()),
        }
    }

    fn text(&self, at: Option<&Halt>, advice: Option<&str>) -> String {
        let mut text = match self {
            Self::Call(status) => call_text(status),
            other => format!("error: {other}"),
        };
        if let Some(at) = at {
            let _ = write!(text, "\n  endpoint: {}\n  progress: {}", at.endpoint, at.progress);
        }
        if let Some(advice) = advice {
            let _ = write!(text, "\n  hint: {advice}");
        }
        text
    }

    fn object(&self, at: Option<&Halt>, advice: Option<&str>) -> Value {
        let mut error = match self {
            Self::Call(status) => call_json(status),
            other => json!({ "message": other.to_string(), "exit_code": other.code() }),
        };
        if let Some(fields) = error.as_object_mut() {
            if let Some(at) = at {
                fields.insert("endpoint".to_owned(), json!(at.endpoint));
                fields.insert("progress".to_owned(), json!(at.progress));
            }
            if advice.is_some() || fields.contains_key("hint") {
                fields.insert("hint".to_owned(), json!(advice));
            }
        }
        json!({ "error": error })
    }

    /// What to do about it. That nothing was written is true of a single call only.
    fn advice(&self, at: Option<&Halt>, diagnosis: Option<&str>) -> Option<String> {
        let hint = match self {
            Self::Call(status) => diagnosis.or_else(|| hint(status)),
            Self::Connect { cause, .. } => connect_hint(cause),
            _ => None,
        };
        match (self, hint, at) {
            (_, Some(hint), Some(at)) => Some(format!("{hint}; {}", at.next)),
            (_, Some(hint), None) => Some(hint.to_owned()),
            (_, None, Some(at)) => Some(at.next.clone()),
            (Self::Call(status), None, None) => {
                advice(status, retry_after(&status.get_error_details()))
            }
            (_, None, None) => None,
        }
    }
}

fn call_text(status: &Status) -> String {
    let details = status.get_error_details();
    let mut text = format!("error: {}", message(status));
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
    text
}

fn call_json(status: &Status) -> Value {
    let details = status.get_error_details();
    let violations: Vec<_> = details
        .bad_request()
        .iter()
        .flat_map(|bad| &bad.field_violations)
        .map(|violation| json!({ "field": violation.field, "rule": violation.description }))
        .collect();
    let info = details.error_info();
    let metadata = info.map(|info| info.metadata.iter().collect::<BTreeMap<_, _>>());
    json!({
        "message": message(status),
        "code": code_name(status.code()),
        "reason": info.map(|info| &info.reason),
        "metadata": metadata,
        "violations": violations,
        "hint": null,
        "retry_after_ms": retry_after(&details).map(|delay| delay.as_millis()),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic_types::ErrorDetails;

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
            error.render(false, None),
            "error: entity is malformed\n  \
             reason: PROPERTY_NAME_INVALID (INVALID_ARGUMENT)\n  \
             violation: entity.properties[0].name: name=`a-b`: rule one\n  \
             violation: entity.properties[1].name: name=`1`: rule two"
        );
        assert_eq!(error.code(), 2);
    }

    #[test]
    fn a_refused_request_is_one_object_for_programs() {
        let text = CliError::from(refused()).render(true, None);

        assert_eq!(
            text,
            "{\"error\":{\"message\":\"entity is malformed\",\"code\":\"INVALID_ARGUMENT\",\
             \"reason\":\"PROPERTY_NAME_INVALID\",\
             \"metadata\":{\"azureCode\":\"PropertyNameInvalid\"},\"violations\":[\
             {\"field\":\"entity.properties[0].name\",\"rule\":\"name=`a-b`: rule one\"},\
             {\"field\":\"entity.properties[1].name\",\"rule\":\"name=`1`: rule two\"}],\
             \"hint\":null,\"retry_after_ms\":null}}"
        );
    }

    #[test]
    fn a_violation_that_is_the_message_is_not_repeated() {
        let details = ErrorDetails::with_bad_request_violation("table", "too short");
        let code = Code::InvalidArgument;
        let status = Status::with_error_details(code, "table: too short", details);

        let text = CliError::from(status).render(false, None);

        assert_eq!(text, "error: table: too short\n  code: INVALID_ARGUMENT");
    }

    #[test]
    fn a_refused_connection_says_that_nothing_was_sent() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let text = CliError::from(Status::from_error(Box::new(refused))).render(false, None);

        assert!(text.contains("nothing was sent"), "{text}");
    }

    #[test]
    fn a_busy_server_says_how_long_to_wait() {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(1500)));
        let status = Status::with_error_details(Code::ResourceExhausted, "busy", details);
        let error = CliError::from(status);

        assert_eq!(
            error.render(false, None),
            "error: busy\n  code: RESOURCE_EXHAUSTED\n  \
             hint: wait 1500 ms, then repeat later; nothing was written"
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
    fn a_stopped_store_asks_for_a_restart() {
        let mut details = ErrorDetails::with_retry_info(Some(Duration::from_secs(1)));
        details.set_error_info("STORAGE_STOPPED", "trestle", [("a".to_owned(), "b".to_owned())]);
        let status = Status::with_error_details(Code::Unavailable, "stopped", details);

        let text = CliError::from(status).render(false, None);

        assert!(text.ends_with("hint: the server needs a restart; nothing was written"), "{text}");
    }

    #[test]
    fn a_command_that_came_far_says_how_far_and_never_that_nothing_was_sent() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let failed = CliError::from(Status::from_error(Box::new(refused)));
        let at = || Halt {
            endpoint: "http://here".to_owned(),
            progress: "94,800 rows written".to_owned(),
            next: "go on with --resume".to_owned(),
        };

        let halted = failed.halted(true, at);

        let text = halted.render(false, None);
        let expected = "\n  endpoint: http://here\n  progress: 94,800 rows written\n  \
                    hint: go on with --resume";
        assert!(text.ends_with(expected) && !text.contains("nothing was sent"), "{text}");
        assert_eq!(halted.code(), 5);
        let object: Value = serde_json::from_str(&halted.render(true, None)).expect("an object");
        let error = &object["error"];
        assert_eq!(error["progress"], "94,800 rows written");
        assert_eq!(error["hint"], "go on with --resume");
        let text = CliError::Interrupted.halted(false, at).render(false, None);
        assert_eq!(text, format!("error: interrupted{expected}"));
        let said_already = CliError::Rows("row 5".to_owned()).halted(true, at);
        assert!(matches!(said_already, CliError::Rows(_)));
        let refused = CliError::from(Status::not_found("no such table")).halted(false, at);
        assert!(matches!(refused, CliError::Call(_)), "it never began");
    }

    #[test]
    fn a_cut_connection_never_claims_that_nothing_was_written() {
        let error = Status::from_error(Box::new(io::Error::other("reset")));

        assert!(is_transport(&error));
        assert!(CliError::from(error).render(false, None).contains("is unknown"));
    }
}
