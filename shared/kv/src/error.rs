//! What an engine can fail with, from the caller's point of view: each kind needs a different
//! reaction.

use std::sync::Arc;

/// A read that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot be read just now; repeating the read may help.
    #[error("storage unavailable: {reason}")]
    Unavailable {
        /// What is the matter.
        reason: Arc<str>,
    },
    /// A stored record cannot be read. Repeating does not help.
    #[error("stored record unreadable: {reason}")]
    Corrupt {
        /// Which record, and how it is broken.
        reason: Arc<str>,
    },
    /// The engine ended the snapshot, because it was held too long. Repeat the read in a new one.
    #[error("snapshot ended: {reason}")]
    SnapshotEnded {
        /// Why.
        reason: Arc<str>,
    },
    /// No keyspace holds the key, or the range crosses keyspaces. A defect in the caller.
    #[error("read rejected: {reason}")]
    Rejected {
        /// Which key or range.
        reason: Arc<str>,
    },
}

/// A commit that failed.
///
/// Except after [`CommitError::Unknown`], nothing of the change was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// The engine cannot take writes just now. Nothing was written; repeat as is.
    #[error("storage unavailable: {reason}")]
    Unavailable {
        /// What is the matter.
        reason: Arc<str>,
    },
    /// More is to be written than the engine can sustain. Nothing was written; repeat later.
    #[error("storage overloaded: {reason}")]
    Busy {
        /// What is behind.
        reason: Arc<str>,
    },
    /// Free disk space is below the reserve. Nothing was written. Changes that only remove keys
    /// are still accepted, until a flush would not fit.
    #[error(
        "disk space is short: free_bytes=`{free_bytes}`, in_flight_bytes=`{in_flight_bytes}`, \
         storage.min_free_bytes=`{reserve_bytes}`; writes are accepted with {enough_bytes} bytes free: {}",
        remedy(*are_deletes_accepted)
    )]
    Full {
        /// Free space, in bytes.
        free_bytes: u64,
        /// How much of it is in use by what was accepted before and is not on disk yet, and by compaction.
        in_flight_bytes: u64,
        /// The configured reserve, in bytes.
        reserve_bytes: u64,
        /// Free space from which on writes are accepted, with what is in flight now, in bytes.
        enough_bytes: u64,
        /// Whether there is room for the journal and the flush of deletes.
        are_deletes_accepted: bool,
    },
    /// A sync or a write failed before, so the engine takes no write ever again in this process.
    /// Nothing was written.
    #[error("storage takes no more writes until the server is restarted: {reason}")]
    Stopped {
        /// The first failure.
        reason: Arc<str>,
    },
    /// The write or the sync of this very change failed, or its outcome was not reported: the
    /// change may be stored, now or later, or never. See the crate page for how to retry.
    #[error("outcome of the write unknown: {reason}")]
    Unknown {
        /// What failed.
        reason: Arc<str>,
    },
    /// The change breaks a limit of the engine (see [`crate::limits`]), uses a key outside the
    /// domains that it names or of no keyspace, or its decision panicked. Nothing was written. A
    /// defect in the caller.
    #[error("change rejected: {reason}")]
    Rejected {
        /// Which limit and value, or which key and domain.
        reason: Arc<str>,
    },
    /// The engine never accepts a write. Nothing was written.
    #[error("this is a {what}, which accepts no writes")]
    ReadOnly {
        /// What the engine is over, such as `backup`.
        what: &'static str,
    },
    /// A record that the change reads cannot be read. Nothing was written.
    #[error("stored record unreadable: {reason}")]
    Corrupt {
        /// Which record, and how it is broken.
        reason: Arc<str>,
    },
}

impl CommitError {
    /// Whether the engine stopped because a write found no space on the disk.
    #[must_use]
    pub fn is_stopped_for_space(&self) -> bool {
        // As the engine renders an error of the system, with its number.
        let no_space = std::io::Error::from_raw_os_error(NO_SPACE).to_string();
        matches!(self, Self::Stopped { reason } if reason.contains(&no_space))
    }
}

/// The number of the error of a full disk, `ENOSPC`.
const NO_SPACE: i32 = 28;

/// How to get free space. What deletes would free is of no use where they are rejected too.
fn remedy(are_deletes_accepted: bool) -> &'static str {
    match are_deletes_accepted {
        true => {
            "delete tables, queues, blobs or rows, or free space on the disk of storage.data_dir"
        }
        false => {
            "deletes are rejected too, as the disk is almost full: free space on the disk of storage.data_dir \
             outside of the store"
        }
    }
}

impl From<EngineError> for CommitError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Unavailable { reason } | EngineError::SnapshotEnded { reason } => {
                Self::Unavailable { reason }
            }
            EngineError::Rejected { reason } => Self::Rejected { reason },
            EngineError::Corrupt { reason } => Self::Corrupt { reason },
        }
    }
}
