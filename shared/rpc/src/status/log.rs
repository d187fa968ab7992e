//! The part of the table of errors for logs. Azure has no such service: its codes are named like the reasons.

use tonic::Code;

use trestle_model::fault::Reason;

/// The gRPC code, the Azure code and the HTTP status of a reason; none for a reason of another service.
pub(super) fn codes(reason: Reason) -> Option<(Code, &'static str, u16)> {
    use Reason as R;
    Some(match reason {
        R::LogStreamAlreadyExists => (Code::AlreadyExists, "LogStreamAlreadyExists", 409),
        R::LogStreamNotFound => (Code::NotFound, "LogStreamNotFound", 404),
        R::InvalidRecord => (Code::InvalidArgument, "InvalidRecord", 400),
        R::RecordTooLarge => (Code::InvalidArgument, "RecordTooLarge", 413),
        R::RecordTimeOutOfRange => (Code::InvalidArgument, "RecordTimeOutOfRange", 400),
        R::SequenceConditionNotMet => (Code::Aborted, "SequenceConditionNotMet", 412),
        R::LogBacklogFull => (Code::ResourceExhausted, "LogBacklogFull", 503),
        _ => return None,
    })
}
