//! The client error for an error of the storage engine, the same in every service.

use std::time::Duration;

use trestle_model::fault::{Fault, Reason};

use crate::{CommitError, EngineError};

/// The text for a write to a store that stopped. The cause may name files of the server, so only its log has it.
const STOPPED: &str = "the store stopped after an error and accepts no writes until the server is restarted: read \
                       the cause in the log of the server, then restart it";
/// The same where it found no space.
const FILLED: &str = "the store stopped, as the disk was full, and accepts no writes until the server is restarted: \
                      free space on its disk, then restart it; the log of the server has the cause";
/// The same for the write that it failed in.
const UNKNOWN: &str = "the store failed in this write, which may be stored or not: read back before a retry; the log \
                       of the server has the cause";
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
            CommitError::Stopped { .. } if failure.is_stopped_for_space() => {
                Self::new(Reason::InsufficientStorage, FILLED)
            }
            CommitError::Stopped { .. } => Self::new(Reason::StorageStopped, STOPPED),
            // The same: space has to be freed.
            CommitError::Full { .. } => Self::new(Reason::InsufficientStorage, message),
            CommitError::Unknown { .. } => Self::new(Reason::OutcomeUnknown, UNKNOWN),
            CommitError::ReadOnly { .. } => {
                Self::new(Reason::InsufficientAccountPermissions, message)
            }
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
        let full = Fault::from(CommitError::Full {
            free_bytes: 1,
            in_flight_bytes: 0,
            reserve_bytes: 2,
            enough_bytes: 2,
            are_deletes_accepted: true,
        });
        assert_eq!((full.reason, full.retry_after), (Reason::InsufficientStorage, None));
    }

    #[test]
    fn a_store_that_stopped_on_a_full_disk_is_one_without_space() {
        let error = std::io::Error::from_raw_os_error(28);
        let reason = format!("flush of a memtable failed: {error}, file=`/data/kv/db`").into();
        let fault = Fault::from(CommitError::Stopped { reason });

        assert_eq!((fault.reason, fault.retry_after), (Reason::InsufficientStorage, None));
        for part in ["free space", "restart it"] {
            assert!(fault.message.contains(part), "{}", fault.message);
        }
        assert!(!fault.message.contains("/data"), "{}", fault.message);
        let reason = std::io::Error::from_raw_os_error(5).to_string().into();
        assert_eq!(Fault::from(CommitError::Stopped { reason }).reason, Reason::StorageStopped);
    }

    #[test]
    fn an_error_of_the_disk_names_no_file_of_the_server() {
        let reason: std::sync::Arc<str> = "sync of a journal failed, file=`/data/0.jnl`".into();

        for failure in [
            CommitError::Stopped { reason: reason.clone() },
            CommitError::Unknown { reason: reason.clone() },
        ] {
            let fault = Fault::from(failure);
            assert!(!fault.message.contains("0.jnl"), "{}", fault.message);
            assert!(fault.message.contains("the log of the server"), "{}", fault.message);
        }
    }
}
