//! A call without an answer: could the other process have carried it out?

use std::{error::Error, time::Duration};

use crate::fault::{Fault, Reason};

/// When a client should come back after a connection failed.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// What is known of a call without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The other process did not carry it out.
    Unseen,
    /// It may have.
    Unknown,
}

/// What a failure of the way says; `is_untouched`: nothing of the body had left.
pub(super) fn judge(error: &hyper::Error, is_untouched: bool) -> Lost {
    if is_untouched || was_refused(error) { Lost::Unseen } else { Lost::Unknown }
}

/// Whether the peer says that it has not looked at the call.
fn was_refused(error: &hyper::Error) -> bool {
    // Ended here, before anything was sent.
    if error.is_canceled() {
        return true;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            // A connection that shuts down names the last call that it takes; later ones fail so.
            let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (error.is_go_away() || refused);
        }
        cause = error.source();
    }
    false
}

/// No connection, and no time to wait for one.
pub(super) fn unreachable() -> Fault {
    let message = "the service cannot be reached; nothing was sent";
    Fault::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
}

/// The connection broke, or refused the call, and nothing was changed.
pub(super) fn interrupted() -> Fault {
    let message = "the connection to the service failed during the call; nothing was changed";
    Fault::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
}

/// The connection broke during a write.
pub(super) fn outcome_unknown() -> Fault {
    let message = "the connection to the service failed during the call; its outcome is unknown";
    Fault::new(Reason::OutcomeUnknown, message)
}

/// What a client is told of a call that is lost half-way; a read changed nothing in any case.
pub(super) fn broken(is_read: bool) -> Fault {
    if is_read { interrupted() } else { outcome_unknown() }
}
