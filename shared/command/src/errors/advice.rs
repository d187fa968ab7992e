//! Hints for a failed call: whether something was written, and whether to retry.

use std::{error::Error, io, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use trestle_identity::caller::QUEUE_HEADER;

use crate::client::{NotConnected, NotServed};

/// The beginning of an error of HTTP/2 that has no source.
const H2_ERROR: &str = "h2 protocol error";
/// How the library names an answer of HTTP without gRPC.
const HTTP_STATUS: &str = "grpc-status header missing, mapped from HTTP status code ";
/// How the library names a call that took longer than its own limit.
const TIMEOUT_EXPIRED: &str = "Timeout expired";
/// The same, of a connection.
pub(crate) const NO_ANSWER: &str = "no answer in time";
/// How the libraries name what another server does, in their words and in those of the commands.
const OTHER_SERVERS: [(&str, &str); 7] = [
    ("connection closed", CLOSED),
    ("deadline has elapsed", NO_ANSWER),
    ("tls handshake eof", "the server closed the connection in the TLS handshake"),
    ("frame with invalid size", "the answer is not HTTP/2"),
    ("broken pipe", CLOSED),
    ("Broken pipe", CLOSED),
    ("onnection reset", CLOSED),
];
const CLOSED: &str = "the server closed the connection";
/// The store rejects writes until the process is restarted.
const STOPPED: &str = "STORAGE_STOPPED";
/// The account, its key or the signature is wrong.
const WRONG_CREDENTIALS: &str = "AUTHENTICATION_FAILED";
/// The store rejects writes until disk space is free.
const FULL: &str = "INSUFFICIENT_STORAGE";
/// The account has used a quota on what it stores.
const OVER_QUOTA: &str = "STORAGE_QUOTA_EXCEEDED";

/// Whether the status was made on this side, because the connection failed under the call.
///
/// Statuses that a server sent have no source; a deadline of our own has one, and its own code.
pub(crate) fn is_transport(status: &Status) -> bool {
    let own_deadline = matches!(status.code(), Code::DeadlineExceeded) || is_own_deadline(status);
    let cut = status.code() == Code::Internal && status.message().starts_with(H2_ERROR);
    let is_of_address = NotConnected::of(status).is_some() || NotServed::of(status).is_some();
    (status.source().is_some() || cut) && !own_deadline && !is_of_address
}

/// Whether a call ended because it took longer than `--timeout`.
pub(super) fn is_own_deadline(status: &Status) -> bool {
    status.code() == Code::Cancelled && status.message().contains(TIMEOUT_EXPIRED)
}

/// The code of a status as gRPC defines it, also where the library has another one for an error of this side.
pub(super) fn code(status: &Status) -> Code {
    match status.code() {
        _ if is_own_deadline(status) => Code::DeadlineExceeded,
        _ if is_transport(status) => Code::Unavailable,
        code => code,
    }
}

/// Whether repetitions fail until the server is restarted, or has more space for the account.
pub fn needs_an_operator(status: &Status) -> bool {
    needs_restart(status) || has_reason(status, FULL) || has_reason(status, OVER_QUOTA)
}

/// Whether repetitions fail until the server is restarted.
pub(super) fn needs_restart(status: &Status) -> bool {
    has_reason(status, STOPPED)
}

fn has_reason(status: &Status, reason: &str) -> bool {
    status.get_details_error_info().is_some_and(|info| info.reason == reason)
}

/// The wait before a retry that the server requests.
pub(crate) fn retry_after(details: &ErrorDetails) -> Option<Duration> {
    details.retry_info().and_then(|info| info.retry_delay)
}

/// The message of a status; where the connection failed, the cause, without the words of the libraries in between.
pub(super) fn message(status: &Status) -> String {
    match unanswered(status) {
        None if is_of_one_resource(status) => {
            "shared access signature: it is for one queue, container or blob, \
            which this command does not name: it needs one of the account, or of its table"
                .to_owned()
        }
        None => match status.message().strip_prefix(HTTP_STATUS) {
            Some(number) => format!("the answer is not of gRPC: HTTP status {number}"),
            None => status.message().to_owned(),
        },
        Some(cause) if is_own_deadline(status) => {
            format!("{cause}: --timeout limits the wait for a call")
        }
        Some(cause) => format!("the connection failed: {cause}"),
    }
}

/// Whether the signature of a call contains no resource, and the command names none. The server describes the headers
/// of a call, which commands set themselves.
fn is_of_one_resource(status: &Status) -> bool {
    status.code() == Code::Unauthenticated && status.message().contains(QUEUE_HEADER)
}

/// Why a server did not answer a call, if it did not.
pub(crate) fn unanswered(status: &Status) -> Option<String> {
    if is_own_deadline(status) {
        return Some(NO_ANSWER.to_owned());
    }
    if !is_transport(status) {
        return None;
    }
    Some(of_other_server(match status.source() {
        Some(cause) => innermost(cause),
        None => status.message().trim_start_matches(H2_ERROR).trim_start_matches(": ").to_owned(),
    }))
}

/// The cause of a broken connection, in words for what other servers do.
pub(crate) fn of_other_server(cause: String) -> String {
    let found = OTHER_SERVERS.iter().find(|(library, _)| cause.contains(library));
    found.map_or(cause, |(_, words)| (*words).to_owned())
}

/// The hint where no connection exists.
pub(super) fn unreachable_hint(cause: &str) -> &'static str {
    let has = |words: &str| cause.contains(words);
    if has("lookup address") {
        "the name of the server does not resolve, check --endpoint"
    } else if has(CLOSED) {
        "is it busy or restarting, or does another server listen there?"
    } else if has(NO_ANSWER) {
        "is the server overloaded or suspended, does another one listen there, or does a firewall drop the connection?"
    } else if has("timed out") {
        "does a firewall drop the connection?"
    } else {
        "is the server running there?"
    }
}

/// A hint, and what comes after it.
pub(super) fn followed(hint: &str, next: &str) -> String {
    let mark = if hint.ends_with('?') { "" } else { ";" };
    format!("{hint}{mark} {next}")
}

/// Whether and how to repeat the call, without a more specific hint, and what was written unless the command only
/// reads.
pub(super) fn advice(status: &Status, delay: Option<Duration>, reads_only: bool) -> Option<String> {
    if was_refused(status) {
        return Some("the server cannot be reached; nothing was sent".to_owned());
    }
    let text = match status.code() {
        _ if is_transport(status) && reads_only => "repeat as it is",
        _ if is_transport(status) => {
            return Some(
                "the connection failed; whether a write took place is unknown, read back first"
                    .to_owned(),
            );
        }
        Code::Unavailable if reads_only => "repeat as it is",
        Code::Unavailable => "repeat as it is; nothing was written",
        Code::ResourceExhausted if reads_only => "repeat later",
        Code::ResourceExhausted => "repeat later; nothing was written",
        Code::Aborted => "read the entity again and redo the change",
        _ if is_own_deadline(status) && reads_only => {
            "repeat as it is; the server may be overloaded or suspended"
        }
        _ if is_own_deadline(status) => {
            "whether a write took place is unknown, read back first; the server may be overloaded or suspended"
        }
        Code::DeadlineExceeded | Code::Cancelled | Code::Unknown if reads_only => "repeat as it is",
        Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            "whether a write took place is unknown, read back first"
        }
        _ if delay.is_some() => "repeat as it is",
        _ => return None,
    };
    if has_reason(status, OVER_QUOTA) {
        let text = "a retry fails until the account deletes something, or its quota is raised; nothing was written";
        return Some(text.to_owned());
    }
    if has_reason(status, FULL) {
        return Some(
            "a retry fails until space is free on the server; nothing was written".to_owned(),
        );
    }
    Some(match delay {
        Some(delay) => format!("wait {} ms, then {text}", delay.as_millis()),
        None => text.to_owned(),
    })
}

/// What has to change before a retry helps, if that can be derived.
pub(super) fn hint(status: &Status) -> Option<&'static str> {
    if needs_restart(status) {
        return Some("the server needs a restart; nothing was written");
    }
    if is_of_one_resource(status) {
        return Some(
            "create one with `trestle sas account` and give it with --sas or --sas-file, or use the \
             commands on the resource of this one",
        );
    }
    if has_reason(status, WRONG_CREDENTIALS) {
        return Some(
            "check --account and its key or signature; -v prints as whom the server is called",
        );
    }
    is_foreign(status).then_some("is this the gRPC address of the server?")
}

/// Whether the response is not gRPC: a page, or a JSON or XML error.
pub(super) fn is_foreign(status: &Status) -> bool {
    let message = status.message();
    message.starts_with("grpc-status header missing")
        || message.contains("invalid compression flag")
        || message.starts_with("Unexpected EOF decoding stream")
}

/// Whether no connection existed to send the call over.
pub(super) fn was_refused(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The text of the first cause of an error, without the number of an error of the system.
#[must_use]
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    without_number(cause.to_string())
}

/// A text without the numbers of errors of the system, which the standard library appends to their words.
#[must_use]
pub fn without_number(text: String) -> String {
    const BEGINNING: &str = " (os error ";
    let Some((words, rest)) = text.split_once(BEGINNING) else { return text };
    match rest.split_once(')') {
        Some((number, after)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{words}{}", without_number(after.to_owned()))
        }
        _ => text,
    }
}
