//! The table of errors: what each reason is in gRPC and in Azure.

use tonic::Code;

use trestle_model::fault::Reason;

use super::{blob, log};

/// The codes of a reason on each protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// The gRPC code: what the client should do.
    pub code: Code,
    /// The Azure storage error code.
    pub azure_code: &'static str,
    /// Its HTTP status.
    pub http_status: u16,
}

/// Whether the call may succeed a moment later, for reasons whose gRPC code is that of such a call; true for the
/// others, whose code is enough.
pub(super) fn may_retry(reason: Reason) -> bool {
    use Reason as R;
    let (too_large, full) = (R::RpcMessageTooLarge, R::InsufficientStorage);
    let quota = R::StorageQuotaExceeded;
    // Only a restart helps a stopped store.
    ![too_large, full, quota, R::BlockCountExceedsLimit, R::StorageStopped].contains(&reason)
}

/// The one table of errors.
#[must_use]
pub fn meaning(reason: Reason) -> Meaning {
    use Reason as R;
    let invalid = |azure_code| (Code::InvalidArgument, azure_code, 400);
    let (code, azure_code, http_status) = match reason {
        R::EntityAlreadyExists => (Code::AlreadyExists, "EntityAlreadyExists", 409),
        R::TableAlreadyExists => (Code::AlreadyExists, "TableAlreadyExists", 409),
        R::TableNotFound => (Code::NotFound, "TableNotFound", 404),
        R::QueueAlreadyExists => (Code::AlreadyExists, "QueueAlreadyExists", 409),
        R::QueueNotFound => (Code::NotFound, "QueueNotFound", 404),
        R::MessageNotFound => (Code::NotFound, "MessageNotFound", 404),
        R::ResourceNotFound => (Code::NotFound, "ResourceNotFound", 404),
        R::UpdateConditionNotSatisfied => (Code::Aborted, "UpdateConditionNotSatisfied", 412),
        R::InvalidInput => invalid("InvalidInput"),
        R::InvalidResourceName => invalid("InvalidResourceName"),
        R::OutOfRangeInput => invalid("OutOfRangeInput"),
        R::PropertiesNeedValue => invalid("PropertiesNeedValue"),
        R::PropertyNameTooLong => invalid("PropertyNameTooLong"),
        R::PropertyNameInvalid => invalid("PropertyNameInvalid"),
        R::PropertyValueTooLarge => invalid("PropertyValueTooLarge"),
        R::TooManyProperties => invalid("TooManyProperties"),
        R::EntityTooLarge => invalid("EntityTooLarge"),
        R::DuplicatePropertiesSpecified => invalid("DuplicatePropertiesSpecified"),
        R::RequestBodyTooLarge => (Code::InvalidArgument, "RequestBodyTooLarge", 413),
        R::RpcMessageTooLarge => (Code::ResourceExhausted, "RequestBodyTooLarge", 413),
        R::CommandsInBatchActOnDifferentPartitions => {
            invalid("CommandsInBatchActOnDifferentPartitions")
        }
        R::InvalidDuplicateRow => invalid("InvalidDuplicateRow"),
        // Azure has one code for all three, which is about the document and not about its content.
        R::InvalidXmlDocument | R::InvalidAccessPolicy | R::InvalidCorsRule => {
            invalid("InvalidXmlDocument")
        }
        R::InvalidQueryParameterValue => invalid("InvalidQueryParameterValue"),
        R::InvalidHeaderValue => invalid("InvalidHeaderValue"),
        R::OutOfRangeQueryParameterValue => invalid("OutOfRangeQueryParameterValue"),
        R::MissingRequiredQueryParameter => invalid("MissingRequiredQueryParameter"),
        R::InvalidMetadata => invalid("InvalidMetadata"),
        R::EmptyMetadataKey => invalid("EmptyMetadataKey"),
        R::MetadataTooLarge => invalid("MetadataTooLarge"),
        R::InvalidUri => invalid("InvalidUri"),
        R::MissingRequiredHeader => invalid("MissingRequiredHeader"),
        R::MissingContentLengthHeader => (Code::InvalidArgument, "MissingContentLengthHeader", 411),
        R::UnsupportedHttpVerb => (Code::Unimplemented, "UnsupportedHttpVerb", 405),
        R::InvalidXmlNodeValue | R::InvalidServiceProperty => invalid("InvalidXmlNodeValue"),
        R::MissingRequiredXmlNode => invalid("MissingRequiredXmlNode"),
        R::XMethodNotUsingPost => invalid("XMethodNotUsingPost"),
        R::XMethodIncorrectValue => invalid("XMethodIncorrectValue"),
        R::XMethodIncorrectCount => invalid("XMethodIncorrectCount"),
        R::InsufficientAccountPermissions => {
            (Code::PermissionDenied, "InsufficientAccountPermissions", 403)
        }
        R::AtomFormatNotSupported => (Code::InvalidArgument, "AtomFormatNotSupported", 415),
        R::MediaTypeNotSupported => (Code::InvalidArgument, "MediaTypeNotSupported", 415),
        R::ConditionHeadersNotSupported => invalid("ConditionHeadersNotSupported"),
        R::InvalidMarker => invalid("InvalidMarker"),
        R::ServerBusy => (Code::ResourceExhausted, "ServerBusy", 503),
        // As with the next one: clients of Azure would retry 507 for minutes.
        R::InsufficientStorage | R::StorageQuotaExceeded => {
            (Code::ResourceExhausted, "InsufficientAccountPermissions", 403)
        }
        // 503 would be retried by clients of Azure for minutes, and only a restart helps.
        R::StorageStopped => (Code::Unavailable, "InsufficientAccountPermissions", 403),
        R::ServerUnavailable => (Code::Unavailable, "ServerBusy", 503),
        R::OutcomeUnknown => (Code::Unknown, "InternalError", 500),
        R::CorruptRecord => (Code::DataLoss, "InternalError", 500),
        R::OperationTimedOut => (Code::DeadlineExceeded, "OperationTimedOut", 500),
        R::NotImplemented => (Code::Unimplemented, "NotImplemented", 501),
        other => of_access(other),
    };
    Meaning { code, azure_code, http_status }
}

/// The part of the table for authentication, internal errors and every other reason.
fn of_access(reason: Reason) -> (Code, &'static str, u16) {
    use Reason as R;
    match reason {
        R::NoAuthenticationInformation => {
            (Code::Unauthenticated, "NoAuthenticationInformation", 401)
        }
        R::InvalidAuthenticationInfo => (Code::Unauthenticated, "InvalidAuthenticationInfo", 400),
        R::AuthenticationFailed => (Code::Unauthenticated, "AuthenticationFailed", 403),
        R::AuthorizationFailure => (Code::PermissionDenied, "AuthorizationFailure", 403),
        R::AuthorizationPermissionMismatch => {
            (Code::PermissionDenied, "AuthorizationPermissionMismatch", 403)
        }
        R::AuthorizationProtocolMismatch => {
            (Code::PermissionDenied, "AuthorizationProtocolMismatch", 403)
        }
        R::AuthorizationResourceTypeMismatch => {
            (Code::PermissionDenied, "AuthorizationResourceTypeMismatch", 403)
        }
        R::AuthorizationServiceMismatch => {
            (Code::PermissionDenied, "AuthorizationServiceMismatch", 403)
        }
        R::AuthorizationSourceIpMismatch => {
            (Code::PermissionDenied, "AuthorizationSourceIPMismatch", 403)
        }
        R::AccountIsDisabled => (Code::PermissionDenied, "AccountIsDisabled", 403),
        R::CorsPreflightFailure => (Code::PermissionDenied, "CorsPreflightFailure", 403),
        other => blob::codes(other).or_else(|| log::codes(other)).unwrap_or((
            Code::Internal,
            "InternalError",
            500,
        )),
    }
}
