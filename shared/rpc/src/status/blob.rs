//! The part of the table of errors for blobs.

use tonic::Code;

use trestle_model::fault::Reason;

/// The gRPC code, the Azure code and the HTTP status of a reason; none for a reason of another service.
pub(super) fn codes(reason: Reason) -> Option<(Code, &'static str, u16)> {
    use Reason as R;
    Some(match reason {
        R::ContainerAlreadyExists => (Code::AlreadyExists, "ContainerAlreadyExists", 409),
        R::ContainerNotFound => (Code::NotFound, "ContainerNotFound", 404),
        R::BlobAlreadyExists => (Code::AlreadyExists, "BlobAlreadyExists", 409),
        R::BlobNotFound => (Code::NotFound, "BlobNotFound", 404),
        R::ConditionNotMet => (Code::Aborted, "ConditionNotMet", 412),
        R::MultipleConditionHeadersNotSupported => {
            (Code::InvalidArgument, "MultipleConditionHeadersNotSupported", 400)
        }
        R::UnsatisfiableCondition => (Code::InvalidArgument, "UnsatisfiableCondition", 400),
        R::InvalidRange => (Code::OutOfRange, "InvalidRange", 416),
        R::InvalidBlobOrBlock => (Code::InvalidArgument, "InvalidBlobOrBlock", 400),
        R::InvalidBlockList => (Code::InvalidArgument, "InvalidBlockList", 400),
        R::BlockListTooLong => (Code::InvalidArgument, "BlockListTooLong", 400),
        R::BlockCountExceedsLimit => (Code::ResourceExhausted, "BlockCountExceedsLimit", 409),
        R::InvalidMd5 => (Code::InvalidArgument, "InvalidMd5", 400),
        R::Md5Mismatch => (Code::DataLoss, "Md5Mismatch", 400),
        R::Crc64Mismatch => (Code::DataLoss, "Crc64Mismatch", 400),
        R::BothCrc64AndMd5HeaderPresent => {
            (Code::InvalidArgument, "BothCrc64AndMd5HeaderPresent", 400)
        }
        R::UnsupportedHeader => (Code::InvalidArgument, "UnsupportedHeader", 400),
        R::InvalidBlobType => (Code::FailedPrecondition, "InvalidBlobType", 409),
        R::AppendPositionConditionNotMet => (Code::Aborted, "AppendPositionConditionNotMet", 412),
        R::MaxBlobSizeConditionNotMet => {
            (Code::FailedPrecondition, "MaxBlobSizeConditionNotMet", 412)
        }
        R::InvalidPageRange => (Code::OutOfRange, "InvalidPageRange", 416),
        R::SequenceNumberConditionNotMet => (Code::Aborted, "SequenceNumberConditionNotMet", 412),
        R::SequenceNumberIncrementTooLarge => {
            (Code::OutOfRange, "SequenceNumberIncrementTooLarge", 409)
        }
        R::PreviousSnapshotNotFound => (Code::NotFound, "PreviousSnapshotNotFound", 409),
        R::PreviousSnapshotCannotBeNewer => {
            (Code::InvalidArgument, "PreviousSnapshotCannotBeNewer", 400)
        }
        R::BlobOverwritten => (Code::Aborted, "BlobOverwritten", 409),
        R::BlobIsSealed => (Code::FailedPrecondition, "BlobIsSealed", 409),
        R::BlobArchived => (Code::FailedPrecondition, "BlobArchived", 409),
        R::InvalidBlobTier => (Code::InvalidArgument, "InvalidBlobTier", 400),
        R::SourceConditionNotMet => (Code::FailedPrecondition, "SourceConditionNotMet", 412),
        R::EmptyTagName => (Code::InvalidArgument, "EmptyTagName", 400),
        R::TagsTooLarge => (Code::InvalidArgument, "TagsTooLarge", 400),
        R::InvalidTags => (Code::InvalidArgument, "InvalidTags", 400),
        R::CannotVerifyCopySource => (Code::FailedPrecondition, "CannotVerifyCopySource", 404),
        R::CopyAcrossAccountsNotSupported => {
            (Code::InvalidArgument, "CopyAcrossAccountsNotSupported", 400)
        }
        R::NoPendingCopyOperation => (Code::FailedPrecondition, "NoPendingCopyOperation", 409),
        R::UnauthorizedBlobOverwrite => (Code::PermissionDenied, "UnauthorizedBlobOverwrite", 403),
        R::OperationNotAllowedOnRootBlob => {
            (Code::FailedPrecondition, "OperationNotAllowedOnRootBlob", 403)
        }
        R::SnapshotsPresent => (Code::FailedPrecondition, "SnapshotsPresent", 409),
        _ => return lease_codes(reason),
    })
}

/// As [`codes`], for leases.
fn lease_codes(reason: Reason) -> Option<(Code, &'static str, u16)> {
    use Reason as R;
    Some(match reason {
        R::LeaseAlreadyPresent => (Code::AlreadyExists, "LeaseAlreadyPresent", 409),
        R::LeaseIdMissing => (Code::FailedPrecondition, "LeaseIdMissing", 412),
        R::LeaseIdMismatchWithBlobOperation => {
            (Code::FailedPrecondition, "LeaseIdMismatchWithBlobOperation", 412)
        }
        R::LeaseIdMismatchWithContainerOperation => {
            (Code::FailedPrecondition, "LeaseIdMismatchWithContainerOperation", 412)
        }
        R::LeaseLost => (Code::FailedPrecondition, "LeaseLost", 412),
        R::LeaseNotPresentWithBlobOperation => {
            (Code::FailedPrecondition, "LeaseNotPresentWithBlobOperation", 412)
        }
        R::LeaseNotPresentWithContainerOperation => {
            (Code::FailedPrecondition, "LeaseNotPresentWithContainerOperation", 412)
        }
        R::LeaseIdMismatchWithLeaseOperation => {
            (Code::FailedPrecondition, "LeaseIdMismatchWithLeaseOperation", 409)
        }
        R::LeaseNotPresentWithLeaseOperation => {
            (Code::FailedPrecondition, "LeaseNotPresentWithLeaseOperation", 409)
        }
        R::LeaseIsBreakingAndCannotBeAcquired => {
            (Code::FailedPrecondition, "LeaseIsBreakingAndCannotBeAcquired", 409)
        }
        R::LeaseIsBreakingAndCannotBeChanged => {
            (Code::FailedPrecondition, "LeaseIsBreakingAndCannotBeChanged", 409)
        }
        R::LeaseIsBrokenAndCannotBeRenewed => {
            (Code::FailedPrecondition, "LeaseIsBrokenAndCannotBeRenewed", 409)
        }
        _ => return None,
    })
}
