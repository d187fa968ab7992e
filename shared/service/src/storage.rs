//! The client error for an error of the storage engine, the same in every service.

use std::time::Duration;

use trestle_kv::{CommitError, EngineError};

use crate::fault::{Fault, Reason};

/// The retry delay of a call that the store rejected for load.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<EngineError> for Fault {
    fn from(failure: EngineError) -> Self {
        let message = failure.to_string();
        match failure {
            EngineError::Unavailable { .. } | EngineError::SnapshotEnded { .. } => {
                passing(Reason::ServerUnavailable, message)
            }
            EngineError::Rejected { .. } => Self::new(Reason::InternalError, message),
            EngineError::Corrupt { .. } => Self::new(Reason::CorruptRecord, message),
        }
    }
}

impl From<CommitError> for Fault {
    fn from(failure: CommitError) -> Self {
        let message = failure.to_string();
        match failure {
            CommitError::Unavailable { .. } => passing(Reason::ServerUnavailable, message),
            CommitError::Busy { .. } => passing(Reason::ServerBusy, message),
            // No retry delay: only a restart of the server helps, however long a client waits.
            CommitError::Stopped { .. } => Self::new(Reason::StorageStopped, message),
            CommitError::Full { .. } => passing(Reason::InsufficientStorage, message),
            CommitError::Unknown { .. } => Self::new(Reason::OutcomeUnknown, message),
            CommitError::Corrupt { .. } => Self::new(Reason::CorruptRecord, message),
            CommitError::Rejected { .. } => Self::new(Reason::InternalError, message),
        }
    }
}

fn passing(reason: Reason, message: String) -> Fault {
    Fault::new(reason, message).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_store_requests_a_restart_and_no_retry() {
        let stopped = Fault::from(CommitError::Stopped { reason: "no space".into() });
        let busy = Fault::from(CommitError::Busy { reason: "too many".into() });

        assert_eq!((stopped.reason, stopped.retry_after), (Reason::StorageStopped, None));
        assert!(stopped.message.contains("until the server is restarted"), "{}", stopped.message);
        assert_eq!(busy.retry_after, Some(RETRY_AFTER));
    }
}
