//! The errors of commands, their output, and their exit codes.
//!
//! Errors of the server are shown completely: reason, message, each violation, retry advice.

use std::{collections::BTreeMap, fmt::Write as _, io, process::ExitCode};

use bytes::Bytes;
use prost::Message as _;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::{Status as RpcStatus, StatusExt as _};
use trestle_rpc::status::code_name;

use crate::{
    client::{NotConnected, NotServed},
    endpoint,
    output::{escaped, with_fields},
};

mod advice;
mod exit_codes;
mod field_flags;

pub(crate) use advice::{NO_ANSWER, is_transport, of_other_server, retry_after, unanswered};
use advice::{advice, code, followed, hint, is_foreign, message, unreachable_hint, was_refused};
pub use advice::{innermost, needs_an_operator, without_number};
pub use exit_codes::{
    BLOB_EXIT_CODES, EXIT_CODES, IMPORT_EXIT_CODES, LOG_EXIT_CODES, QUEUE_EXIT_CODES,
    VERIFY_EXIT_CODES, table_exit_codes, with_help,
};
pub use field_flags::FIELD_FLAGS;

/// The beginning of an error for a person.
const PREFIX: &str = "error: ";
/// How the TLS library names a response that is not TLS.
const NOT_TLS: &str = "received corrupt message";
/// The exit code of a temporary error.
const UNAVAILABLE: u8 = 5;

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The server, or the connection to it, failed the call.
    #[error("{}", .0.message())]
    Call(Box<Status>),
    /// The address is not that of gRPC, TLS fails there, or the called service is not served.
    #[error("{problem}")]
    Misdirected {
        /// The endpoint.
        endpoint: String,
        /// The problem and the remedy.
        problem: String,
        /// The error of the call, for programs: the problem names it in words.
        cause: String,
    },
    /// No connection exists.
    #[error("cannot connect to {}", endpoint::with_port(endpoint))]
    Connect {
        /// The endpoint.
        endpoint: String,
        /// The innermost cause.
        cause: String,
    },
    /// The command line, or what it points at, is malformed.
    #[error("{0}")]
    Usage(String),
    /// A file or a standard stream failed.
    #[error("{what}: {}", without_number(source.to_string()))]
    File {
        /// The failed operation, with the path.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// Rows of an import were not written; details were shown before.
    #[error("{0}")]
    Rows(String),
    /// The source of a copy cannot be read.
    #[error("{text}")]
    Source {
        /// The failed operation, without secrets.
        text: String,
        /// Whether the error may be temporary.
        busy: bool,
    },
    /// What was examined is invalid or damaged, as standard output reports.
    #[error("rejected")]
    Rejected,
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// SIGTERM.
    #[error("terminated")]
    Terminated,
    /// A command of many calls ended on the way.
    #[error("{cause}")]
    Halted {
        /// The cause.
        cause: Box<CliError>,
        /// Its progress.
        at: Halt,
    },
    /// The server broke the contract.
    #[error("unexpected answer from the server: {0}")]
    Protocol(String),
}

/// The progress of a command of many calls that failed.
#[derive(Debug)]
pub struct Halt {
    /// The endpoint of its calls.
    pub endpoint: String,
    /// The completed work, such as `94,800 rows written`.
    pub progress: String,
    /// The hint for the next step, such as `continue with --resume`.
    pub next: String,
}

impl From<Status> for CliError {
    fn from(status: Status) -> Self {
        match (NotConnected::of(&status), NotServed::of(&status)) {
            (Some(found), _) => found.clone().into(),
            (None, Some(found)) => found.clone().into(),
            (None, None) => Self::Call(Box::new(status)),
        }
    }
}

impl From<NotServed> for CliError {
    fn from(found: NotServed) -> Self {
        let (problem, cause) = (found.problem(), found.answer.message().to_owned());
        Self::Misdirected { endpoint: found.endpoint, problem, cause }
    }
}

impl From<NotConnected> for CliError {
    fn from(NotConnected { endpoint, cause }: NotConnected) -> Self {
        Self::Connect { endpoint, cause }
    }
}

/// The command whose error is shown.
#[derive(Debug, Clone, Copy)]
pub struct CallSite<'a> {
    /// The endpoint of its calls.
    pub(crate) endpoint: &'a str,
    /// Whether it makes no call that writes.
    pub(crate) reads_only: bool,
}

/// The error of one element of a batch as the error of a call.
#[must_use]
pub fn status_of(error: &RpcStatus) -> Status {
    let details = error.encode_to_vec().into();
    Status::with_details(Code::from_i32(error.code), error.message.clone(), details)
}

impl CliError {
    /// Names the failed operation on a file.
    pub fn file(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::File { what, source }
    }

    /// Names a file of the command line that cannot be read.
    pub fn input(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Usage(format!("{what}: {}", without_number(error.to_string())))
    }

    /// The error of a command of many calls, with its progress; unchanged if it has that already, or
    /// if a command that has not `begun` did not reach the server, or was rejected by it.
    #[must_use]
    pub fn halted(self, begun: bool, at: impl FnOnce() -> Halt) -> Self {
        match self {
            error if error.is_broken_pipe() => error,
            error @ Self::Call(_) if !begun && error.code() != UNAVAILABLE => error,
            error @ (Self::Connect { .. } | Self::Misdirected { .. }) if !begun => error,
            cause @ (Self::Call(_)
            | Self::Connect { .. }
            | Self::Misdirected { .. }
            | Self::File { .. }
            | Self::Interrupted
            | Self::Terminated
            | Self::Protocol(_)
            | Self::Source { .. }) => Self::Halted { cause: Box::new(cause), at: at() },
            error => error,
        }
    }

    /// Whether the reader of our output is closed, which is not an error.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Call(status) => match code(status) {
                Code::InvalidArgument | Code::OutOfRange => 2,
                Code::NotFound => 3,
                Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => 4,
                Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded => UNAVAILABLE,
                _ => 1,
            },
            Self::Connect { .. } | Self::Source { busy: true, .. } => UNAVAILABLE,
            Self::Misdirected { .. } => 6,
            Self::Usage(_) => 2,
            // The exit codes that shells use for these signals.
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::Halted { cause, .. } => cause.code(),
            Self::File { .. }
            | Self::Rows(_)
            | Self::Source { .. }
            | Self::Rejected
            | Self::Protocol(_) => 1,
        }
    }

    /// Whether a signal ended the command.
    #[must_use]
    pub fn is_signal(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Terminated)
    }

    /// Whether the error may be temporary, and the call may have been executed.
    pub fn is_unavailable(&self) -> bool {
        self.code() == UNAVAILABLE && !matches!(self, Self::Connect { .. })
    }

    /// Whether a connection failed without an error of the server, or what answered is not gRPC.
    pub(crate) fn is_unexplained(&self) -> bool {
        match self {
            Self::Call(status) => {
                // A proxy answers for a server that restarts, with a status of HTTP that gRPC counts as this code.
                (is_foreign(status) && status.code() != Code::Unavailable)
                    || (is_transport(status) && !was_refused(status))
            }
            Self::Connect { cause, .. } => cause != NO_ANSWER,
            Self::Halted { cause, .. } => cause.is_unexplained(),
            _ => false,
        }
    }

    /// Whether the call failed for a reason of the server or the network, so that its address matters.
    fn is_of_server(&self) -> bool {
        let is_unanswered = |status: &Status| {
            unanswered(status).is_some() || code(status) == Code::DeadlineExceeded
        };
        matches!(self, Self::Call(status) if is_unanswered(status) || is_foreign(status))
    }

    /// The error of a role behind a gateway, with its name.
    pub fn of_role(self, role: &str) -> Self {
        match self {
            // A broken connection is that to the gateway.
            Self::Call(status) if !is_transport(&status) => {
                let text = format!("{role}: {}", message(&status));
                let details = Bytes::copy_from_slice(status.details());
                Self::Call(Box::new(Status::with_details(code(&status), text, details)))
            }
            other => other,
        }
    }

    /// Whether what answered is not gRPC.
    pub fn is_foreign(&self) -> bool {
        match self {
            Self::Call(status) => is_foreign(status),
            Self::Halted { cause, .. } => cause.is_foreign(),
            _ => false,
        }
    }

    /// Whether a server answered an encrypted connection without TLS.
    pub(crate) fn is_of_plain_server(&self) -> bool {
        match self {
            Self::Connect { cause, .. } => cause.starts_with(NOT_TLS),
            Self::Call(status) => message(status).contains(NOT_TLS),
            Self::Halted { cause, .. } => cause.is_of_plain_server(),
            _ => false,
        }
    }

    /// The same error, explained by the result of a probe.
    pub(crate) fn misdirected(self, endpoint: &str, problem: String) -> Self {
        match self {
            Self::Halted { cause, at } => {
                Self::Halted { cause: Box::new(cause.misdirected(endpoint, problem)), at }
            }
            error => {
                let cause = match &error {
                    Self::Call(status) => message(status),
                    Self::Connect { cause, .. } => cause.clone(),
                    other => other.to_string(),
                };
                Self::Misdirected { endpoint: endpoint.to_owned(), problem, cause }
            }
        }
    }

    /// The error for a person, or with `json` as one object for a program.
    pub(crate) fn render(&self, json: bool) -> String {
        self.render_at(json, None)
    }

    /// The same for the error of a command, which names what it called.
    pub(crate) fn render_at(&self, json: bool, site: Option<CallSite<'_>>) -> String {
        let (cause, at) = match self {
            Self::Halted { cause, at } => (&**cause, Some(at)),
            other => (other, None),
        };
        let advice = cause.advice(at, site.is_some_and(|site| site.reads_only));
        let endpoint = site.filter(|_| cause.is_of_server()).map(|site| site.endpoint);
        let mut error = cause.object(at, advice.as_deref(), endpoint);
        if json {
            return json!({ "error": error }).to_string();
        }
        field_flags::name_flags(&mut error);
        if let Some(fields) = error.as_object_mut() {
            // The message has the address, and a problem has the cause in words.
            if at.is_none() && matches!(cause, Self::Misdirected { .. } | Self::Connect { .. }) {
                fields.remove("endpoint");
            }
            if matches!(cause, Self::Misdirected { .. }) {
                fields.remove("cause");
            }
        }
        text(&error)
    }

    /// The error of a check of a server for a person, behind a word of the caller.
    #[must_use]
    pub fn described(&self, endpoint: &str) -> String {
        let text = self.render_at(false, Some(CallSite { endpoint, reads_only: true }));
        text.strip_prefix(PREFIX).map(str::to_owned).unwrap_or(text)
    }

    fn object(&self, at: Option<&Halt>, advice: Option<&str>, called: Option<&str>) -> Value {
        let mut error = match self {
            Self::Call(status) => {
                with_fields(call_json(status), json!({ "exit_code": self.code() }))
            }
            other => json!({ "message": other.to_string(), "exit_code": other.code() }),
        };
        if let Some(fields) = error.as_object_mut() {
            if let Self::Misdirected { endpoint, cause, .. } | Self::Connect { endpoint, cause } =
                self
            {
                fields.insert("endpoint".to_owned(), json!(endpoint::with_port(endpoint)));
                fields.insert("cause".to_owned(), json!(cause));
            }
            if let Some(endpoint) = at.map(|at| at.endpoint.as_str()).or(called) {
                fields.insert("endpoint".to_owned(), json!(endpoint::with_port(endpoint)));
            }
            if let Some(at) = at {
                fields.insert("progress".to_owned(), json!(at.progress));
            }
            if advice.is_some() || fields.contains_key("hint") {
                fields.insert("hint".to_owned(), json!(advice));
            }
        }
        error
    }

    /// The hint after an error. "Nothing was written" is true of a single call only.
    fn advice(&self, at: Option<&Halt>, reads_only: bool) -> Option<String> {
        let hint = match self {
            Self::Call(status) => hint(status),
            Self::Connect { cause, .. } => Some(unreachable_hint(cause)),
            _ => None,
        };
        match (self, hint, at) {
            (_, Some(hint), Some(at)) => Some(followed(hint, &at.next)),
            (Self::Connect { .. }, Some(hint), None) => Some(followed(hint, "nothing was sent")),
            (_, Some(hint), None) => Some(hint.to_owned()),
            // A retry at the same address fails again.
            (Self::Misdirected { .. }, None, Some(at)) => {
                Some(format!("with the right address or certificate, {}", at.next))
            }
            (_, None, Some(at)) => Some(at.next.clone()),
            (Self::Call(status), None, None) => {
                advice(status, retry_after(&status.get_error_details()), reads_only)
            }
            (_, None, None) => None,
        }
    }
}

/// The error of [`CliError::object`] for a person. Each field is one line, whatever names and values are in it.
fn text(error: &Value) -> String {
    let field = |name: &str| error.get(name).and_then(Value::as_str).map(escaped);
    let mut text = format!("{PREFIX}{}", field("message").unwrap_or_default());
    let _ = match (field("reason"), field("code")) {
        (Some(reason), Some(code)) => write!(text, "\n  reason: {reason} ({code})"),
        (None, Some(code)) => write!(text, "\n  code: {code}"),
        _ => Ok(()),
    };
    if let Some(index) = error.pointer("/metadata/index").and_then(Value::as_str).map(escaped) {
        let _ = write!(text, "\n  operation: index {index} of the batch");
    }
    let violations = error.get("violations").and_then(Value::as_array);
    for violation in violations.into_iter().flatten() {
        let part = |name: &str| violation.get(name).and_then(Value::as_str).unwrap_or_default();
        let rule = escaped(&format!("{}: {}", part("field"), part("rule")));
        // A single violation is often the whole message.
        if Some(&rule) != field("message").as_ref() {
            let _ = write!(text, "\n  violation: {rule}");
        }
    }
    for name in ["hint", "endpoint", "cause", "progress"] {
        if let Some(value) = field(name) {
            let _ = write!(text, "\n  {name}: {value}");
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
        "code": code_name(code(status)),
        "reason": info.map(|info| &info.reason),
        "metadata": metadata,
        "violations": violations,
        "hint": null,
        "retry_after_ms": retry_after(&details).map(|delay| delay.as_millis()),
    })
}

#[cfg(test)]
mod tests;
