//! The content of a failed call.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// A failed call, in the terms that clients decide by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The gRPC code.
    pub code: Code,
    /// `ErrorInfo.reason`; empty if absent.
    pub reason: String,
    /// Position of the failing operation of a batch.
    pub index: Option<usize>,
    /// The fields of every violation, in their order.
    pub fields: Vec<String>,
    /// How long to wait before a retry.
    pub retry_after: Option<Duration>,
    /// The subjects of the exceeded quotas.
    pub quotas: Vec<String>,
    /// The text for people.
    pub message: String,
}

impl CallError {
    /// The code and the reason, to compare both at once.
    pub fn kind(&self) -> (Code, &str) {
        (self.code, &self.reason)
    }

    /// The content of a status.
    pub fn of(status: &Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        let index = info.and_then(|info| info.metadata.get("index")?.parse().ok());
        let violations = details.bad_request().map(|bad| bad.field_violations.as_slice());
        let fields = violations.unwrap_or_default().iter().map(|v| v.field.clone()).collect();
        let quotas = details.quota_failure().map(|quota| quota.violations.as_slice());
        let quotas = quotas.unwrap_or_default().iter().map(|v| v.subject.clone()).collect();
        Self {
            code: status.code(),
            reason: info.map(|info| info.reason.clone()).unwrap_or_default(),
            index,
            fields,
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
            quotas,
            message: status.message().to_owned(),
        }
    }
}

impl CallError {
    /// The content of the error of one element of a batch.
    pub fn of_item(status: &trestle_proto::google::rpc::Status) -> Self {
        use prost::Message as _;
        let code = Code::from_i32(status.code);
        let details = status.encode_to_vec().into();
        Self::of(&Status::with_details(code, status.message.clone(), details))
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::of(&status)
    }
}
