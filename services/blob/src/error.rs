//! The errors of blob operations, and their translation for clients.

use std::{
    io,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use trestle_kv::{CommitError, EngineError};
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::log_rate::LogRate;

use crate::{
    append::AppendError,
    conditions::{ConditionError, ConditionField, UnmetCondition},
    lease::LeaseError,
    names::{BlobName, ContainerName},
    pages::PageError,
    space_shortage::SpaceShortage,
    tier::TierError,
};

/// When to call again after a failure of the object store, or while too many uploads are in progress.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A blob operation that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum BlobError {
    /// The request violates a rule of the data model.
    #[error(transparent)]
    Invalid(#[from] Fault),
    /// A container of this name exists.
    #[error("the specified container already exists: container=`{0}`")]
    ContainerExists(ContainerName),
    /// The container does not exist.
    #[error("the specified container does not exist: container=`{0}`")]
    ContainerNotFound(ContainerName),
    /// The blob does not exist.
    #[error("the specified blob does not exist: blob=`{0}`")]
    BlobNotFound(BlobName),
    /// The blob has snapshots, and the call does not delete them.
    #[error("the blob has snapshots: delete them too, or only them")]
    SnapshotsPresent,
    /// A condition on the source of a copy is false, or the source was deleted or replaced during the copy.
    #[error("the condition specified for the source of the copy is not met")]
    SourceCondition,
    /// This condition on the source of a copy is false.
    #[error(
        "the condition specified for the source of the copy is not met: {}",
        .0.within("source_conditions")
    )]
    SourceUnmet(UnmetCondition),
    /// The range begins at or after the end of the blob.
    #[error("the range must begin before the end of the blob: size=`{size}`")]
    PastEnd {
        /// Where the range is in the request.
        field: &'static str,
        /// That of the blob, in bytes.
        size: u64,
    },
    /// The version that is to be deleted is the blob itself.
    #[error("this operation is not allowed on the root blob")]
    CurrentVersion,
    /// The source of a copy from a URL cannot be read.
    #[error("could not verify the copy source: {0}")]
    CopySource(String),
    /// No copy is in progress that could be aborted.
    #[error("there is currently no pending copy operation")]
    NoPendingCopy,
    /// A condition does not permit the call.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// The blob is of another type than the call needs, or would replace.
    #[error("the blob type is invalid for this operation: blob=`{0}`")]
    OtherKind(BlobName),
    /// A condition on the sequence number of a page blob is false, or pages are not in it.
    #[error(transparent)]
    Pages(#[from] PageError),
    /// A condition on the length of an append blob is false, or it is sealed.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The access tier of a blob does not permit the call, or is not one of its type.
    #[error(transparent)]
    Tier(#[from] TierError),
    /// The lease of a blob does not permit the call.
    #[error("{0}")]
    BlobLease(LeaseError),
    /// The lease of a container does not permit the call.
    #[error("{0}")]
    ContainerLease(LeaseError),
    /// The blob was changed during every attempt. Nothing was written.
    #[error("the blob keeps changing: blob=`{0}`")]
    KeepsChanging(BlobName),
    /// Stored data cannot be read, or differs from its checksum.
    #[error("stored data is corrupt: {0}")]
    Corrupt(Arc<str>),
    /// The disk has no more space.
    #[error("{0}")]
    Full(SpaceShortage),
    /// The object store failed. Nothing was published. The log has its error, which may name hosts and accounts.
    #[error("the object store failed")]
    Objects,
    /// The object store has another object where content was to be written. Nothing was written.
    #[error("the object store has an object of another server: the server log has its name")]
    Occupied,
    /// Too many uploads are in progress.
    #[error("too many uploads are in progress")]
    Busy,
    /// A read failed.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// A commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl BlobError {
    /// Unreadable data; `what` names it.
    pub(crate) fn corrupt(what: impl Into<Arc<str>>) -> Self {
        Self::Corrupt(what.into())
    }

    /// A failure of the object store; its error is logged once in ten seconds.
    pub(crate) fn objects(error: &object_store::Error) -> Self {
        static LINES: LazyLock<LogRate> = LazyLock::new(LogRate::default);
        if let Some(omitted) = LINES.may_log((), Instant::now()) {
            tracing::warn!(%error, omitted, "the object store failed");
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
            if matches!(io, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)) {
                return Self::Full(SpaceShortage::default());
            }
            cause = error.source();
        }
        Self::Objects
    }
}

impl From<BlobError> for Fault {
    fn from(error: BlobError) -> Self {
        let message = error.to_string();
        let about = |reason, kind, name: &str| Self::about(reason, message.clone(), kind, name);
        match &error {
            BlobError::Invalid(fault) => fault.clone(),
            BlobError::ContainerExists(name) => {
                about(Reason::ContainerAlreadyExists, "container", name.as_str())
            }
            BlobError::ContainerNotFound(name) => {
                about(Reason::ContainerNotFound, "container", name.as_str())
            }
            BlobError::BlobNotFound(name) => about(Reason::BlobNotFound, "blob", name.as_str()),
            BlobError::OtherKind(name) => about(Reason::InvalidBlobType, "blob", name.as_str()),
            BlobError::Pages(error) => Self::new(reason_of_pages(*error), message),
            BlobError::Append(error) => Self::new(reason_of_append(*error), message),
            BlobError::Tier(error @ TierError::OfOtherKind) => {
                Self::violation(reason_of_tier(*error), "access_tier", message)
            }
            BlobError::Tier(error) => Self::new(reason_of_tier(*error), message),
            BlobError::SourceCondition | BlobError::SourceUnmet(_) => {
                Self::new(Reason::SourceConditionNotMet, message)
            }
            BlobError::PastEnd { field, .. } => {
                Self::violation(Reason::InvalidRange, format!("{field}.offset"), message)
            }
            BlobError::CurrentVersion => Self::new(Reason::OperationNotAllowedOnRootBlob, message),
            BlobError::CopySource(_) => Self::new(Reason::CannotVerifyCopySource, message),
            BlobError::NoPendingCopy => Self::new(Reason::NoPendingCopyOperation, message),
            BlobError::SnapshotsPresent => Self::new(Reason::SnapshotsPresent, message),
            BlobError::Condition(error) => fault_of_condition(error, message),
            BlobError::BlobLease(error) => Self::new(reason_of_lease(*error, true), message),
            BlobError::ContainerLease(error) => Self::new(reason_of_lease(*error, false), message),
            BlobError::KeepsChanging(_) | BlobError::Objects | BlobError::Occupied => {
                Self::new(Reason::ServerUnavailable, message).retry_after(RETRY_AFTER)
            }
            BlobError::Corrupt(_) => Self::new(Reason::CorruptRecord, message),
            BlobError::Full(_) => Self::new(Reason::InsufficientStorage, message),
            BlobError::Busy => Self::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER),
            BlobError::Read(failure) => failure.clone().into(),
            BlobError::Commit(failure) => failure.clone().into(),
        }
    }
}

fn reason_of_pages(error: PageError) -> Reason {
    match error {
        PageError::Range { .. } => Reason::InvalidPageRange,
        PageError::Sequence(_) => Reason::SequenceNumberConditionNotMet,
        PageError::PreviousAbsent => Reason::PreviousSnapshotNotFound,
        PageError::PreviousNewer => Reason::PreviousSnapshotCannotBeNewer,
        PageError::Overwritten => Reason::BlobOverwritten,
        PageError::SequenceTooLarge => Reason::SequenceNumberIncrementTooLarge,
    }
}

fn reason_of_tier(error: TierError) -> Reason {
    match error {
        TierError::Archived => Reason::BlobArchived,
        TierError::OfOtherKind => Reason::InvalidBlobTier,
        TierError::NoTiers => Reason::InvalidBlobType,
    }
}

fn reason_of_append(error: AppendError) -> Reason {
    match error {
        AppendError::Position { .. } => Reason::AppendPositionConditionNotMet,
        AppendError::TooLarge { .. } => Reason::MaxBlobSizeConditionNotMet,
        AppendError::Sealed => Reason::BlobIsSealed,
        AppendError::TooManyBlocks => Reason::BlockCountExceedsLimit,
    }
}

fn fault_of_condition(error: &ConditionError, message: String) -> Fault {
    let violation = |reason, field: ConditionField, rule: String| {
        Fault::violation(reason, format!("conditions.{}", field.name()), rule)
    };
    match error {
        ConditionError::Unmet(_) | ConditionError::NotMet => {
            Fault::new(Reason::ConditionNotMet, message)
        }
        ConditionError::AlreadyExists => Fault::new(Reason::BlobAlreadyExists, message),
        ConditionError::OverwriteNotAuthorized => {
            Fault::new(Reason::UnauthorizedBlobOverwrite, message)
        }
        ConditionError::Multiple { field, other } => {
            let rule = match other {
                None => "must have at most one etag, for a write".to_owned(),
                Some(other) => {
                    let other = other.name();
                    format!("must not be combined with `conditions.{other}`, for a write")
                }
            };
            violation(Reason::MultipleConditionHeadersNotSupported, *field, rule)
        }
        ConditionError::Unsatisfiable => {
            let rule = "must name etags, for a read: value=`*`".to_owned();
            violation(Reason::UnsatisfiableCondition, ConditionField::NoneMatch, rule)
        }
    }
}

fn reason_of_lease(error: LeaseError, is_of_blob: bool) -> Reason {
    match error {
        LeaseError::AlreadyPresent => Reason::LeaseAlreadyPresent,
        LeaseError::ActionMismatch => Reason::LeaseIdMismatchWithLeaseOperation,
        LeaseError::ActionNotPresent => Reason::LeaseNotPresentWithLeaseOperation,
        LeaseError::BreakingNotAcquired => Reason::LeaseIsBreakingAndCannotBeAcquired,
        LeaseError::BreakingNotChanged => Reason::LeaseIsBreakingAndCannotBeChanged,
        LeaseError::BrokenNotRenewed => Reason::LeaseIsBrokenAndCannotBeRenewed,
        LeaseError::IdMissing => Reason::LeaseIdMissing,
        LeaseError::Mismatch if is_of_blob => Reason::LeaseIdMismatchWithBlobOperation,
        LeaseError::Mismatch => Reason::LeaseIdMismatchWithContainerOperation,
        LeaseError::NotPresent if is_of_blob => Reason::LeaseNotPresentWithBlobOperation,
        LeaseError::NotPresent => Reason::LeaseNotPresentWithContainerOperation,
        LeaseError::Lost => Reason::LeaseLost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_recognised_under_the_error_of_the_object_store() {
        let store = |kind| object_store::Error::Generic {
            store: "test",
            source: Box::new(io::Error::from(kind)),
        };
        let fault = |kind| Fault::from(BlobError::objects(&store(kind)));
        let reason = |kind| fault(kind).reason;

        assert_eq!(reason(io::ErrorKind::StorageFull), Reason::InsufficientStorage);
        assert_eq!(reason(io::ErrorKind::QuotaExceeded), Reason::InsufficientStorage);
        assert_eq!(reason(io::ErrorKind::TimedOut), Reason::ServerUnavailable);
        // The error may name hosts and accounts.
        assert_eq!(fault(io::ErrorKind::TimedOut).message, "the object store failed");
    }
}
