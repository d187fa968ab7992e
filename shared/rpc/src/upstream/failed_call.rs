//! Calls without a response: whether the other process may have executed them.

use std::{error::Error, time::Duration};

use http::HeaderMap;
use tonic::{Code, Status};

use crate::layer::code_of;
use crate::rpc_path::service_of;
use crate::unserved;
use trestle_model::fault::{Fault, Reason};

/// When a client should retry after a connection failed.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Whether a call without a response was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedCall {
    /// It was not.
    Unseen,
    /// It may have.
    Unknown,
}

/// What a transport error implies; `is_untouched`: nothing of the body was sent.
pub(super) fn judge(error: &hyper::Error, is_untouched: bool) -> FailedCall {
    if is_untouched || was_rejected(error) { FailedCall::Unseen } else { FailedCall::Unknown }
}

/// Whether the peer reported that it did not process the call.
fn was_rejected(error: &hyper::Error) -> bool {
    // Canceled by this process, before anything was sent.
    if error.is_canceled() {
        return true;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            // GOAWAY names the last call that is processed; later ones fail so.
            let rejected = error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (error.is_go_away() || rejected);
        }
        cause = error.source();
    }
    false
}

/// Whether a process does not serve the service of a call, by the headers of its response.
pub(super) fn is_unserved(headers: &HeaderMap) -> bool {
    code_of(headers) == Some(Code::Unimplemented)
        && Status::from_header_map(headers).is_some_and(|status| unserved::is_unserved(&status))
}

/// No connection, and no time left to wait for one; of a call at `path`.
pub(super) fn unreachable(path: &str) -> Fault {
    let service = service_of(path).unwrap_or_default();
    let message = format!("the service is unreachable: service=`{service}`; nothing was sent");
    Fault::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
}

/// The connection broke, or rejected the call, and nothing was changed.
pub(super) fn interrupted() -> Fault {
    let message = "the connection to the service failed during the call; nothing was changed";
    Fault::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
}

/// The connection broke during a write.
pub(super) fn outcome_unknown() -> Fault {
    let message = "the connection to the service failed during the call; its outcome is unknown";
    Fault::new(Reason::OutcomeUnknown, message)
}

/// The error of a call whose connection broke; a read changed nothing in any case.
pub(super) fn broken(is_read: bool) -> Fault {
    if is_read { interrupted() } else { outcome_unknown() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_not_sent_names_its_service_and_may_be_repeated() {
        for (path, service) in [
            ("/trestle.queue.v1.QueueService/SendMessages", "trestle.queue.v1.QueueService"),
            ("/", ""),
            ("", ""),
        ] {
            let fault = unreachable(path);

            assert_eq!(fault.reason, Reason::ServerUnavailable);
            assert_eq!(fault.retry_after, Some(RETRY_AFTER));
            let text = format!("the service is unreachable: service=`{service}`; nothing was sent");
            assert_eq!(fault.message, text);
        }
    }

    #[test]
    fn only_a_write_whose_connection_broke_has_an_unknown_outcome() {
        let (read, write) = (broken(true), broken(false));

        assert_eq!((read.reason, read.retry_after), (Reason::ServerUnavailable, Some(RETRY_AFTER)));
        assert_eq!((write.reason, write.retry_after), (Reason::OutcomeUnknown, None));
    }
}
