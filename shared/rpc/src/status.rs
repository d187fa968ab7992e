//! Errors of calls on the wire: one table from reason to gRPC code, Azure code and HTTP status, and the status of gRPC
//! that has a fault in its details.

mod blob;
mod log;
mod meaning;

use prost::Message as _;
use tonic::{
    Code, Status,
    metadata::{AsciiMetadataValue, MetadataMap},
};
use tonic_types::{ErrorDetails, FieldViolation, QuotaViolation, StatusExt as _};
use trestle_model::fault::{Fault, Violation, reason_name};
use trestle_proto::google::rpc::Status as ItemStatus;

use crate::rpc_path::service_of;

use meaning::may_retry;
pub use meaning::{Meaning, meaning};

/// `ErrorInfo.domain` of an error while the called service is not determined, and if the path of a call has none.
pub const DOMAIN: &str = "trestle";
/// The trailer by which a server controls the retries of a service config, which are by code only (gRFC A6).
pub const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Its value where no retry should follow.
const NO_RETRY: &str = "-1";
/// Longest name of a service that a domain repeats, in bytes.
const DOMAIN_BYTES_MAX: usize = 128;

/// A fault as gRPC carries it.
pub trait IntoStatus {
    /// The status, from the service with the full name `domain`; [`DOMAIN`] where none is determined.
    #[must_use]
    fn into_status(self, domain: &str) -> Status;

    /// The error of an item in the response of a call of the service `domain` that has an outcome for each.
    #[must_use]
    fn into_item_status(self, domain: &str) -> ItemStatus;
}

/// The name of a gRPC code in the protocol and in telemetry.
#[must_use]
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// The domain of the errors of a call: the full name of the service in its path, `/package.Service/Method`.
#[must_use]
pub fn domain_of(path: &str) -> &str {
    let is_name = |name: &&str| {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
        !name.is_empty() && name.len() <= DOMAIN_BYTES_MAX && name.bytes().all(legal)
    };
    service_of(path).filter(is_name).unwrap_or(DOMAIN)
}

/// The status of a failed call with `domain` as the domain of its error; none where it has it already, and where it
/// has no `ErrorInfo`.
#[must_use]
pub fn with_domain(status: &Status, domain: &str) -> Option<Status> {
    let mut details = status.get_error_details();
    let info = details.error_info().filter(|info| info.domain != domain)?.clone();
    details.set_error_info(info.reason, domain, info.metadata);
    Some(Status::with_error_details(status.code(), status.message(), details))
}

impl IntoStatus for Fault {
    fn into_status(self, domain: &str) -> Status {
        let fault = self.bounded();
        let meaning = meaning(fault.reason);
        let mut metadata = vec![
            ("azureCode".to_owned(), meaning.azure_code.to_owned()),
            ("httpStatus".to_owned(), meaning.http_status.to_string()),
        ];
        metadata.extend(fault.index.map(|index| ("index".to_owned(), index.to_string())));

        let mut details = ErrorDetails::new();
        details.set_error_info(
            reason_name(fault.reason),
            domain,
            metadata.into_iter().collect::<std::collections::HashMap<_, _>>(),
        );
        if !fault.violations.is_empty() {
            let violation = |v: Violation| FieldViolation::new(v.field, v.description);
            details
                .set_bad_request(fault.violations.into_iter().map(violation).collect::<Vec<_>>());
        }
        if let Some(resource) = fault.resource {
            details.set_resource_info(resource.kind, resource.name, "", "");
        }
        if let Some(quota) = fault.quota {
            details.set_quota_failure([QuotaViolation::new(quota.subject, quota.description)]);
        }
        if let Some(delay) = fault.retry_after {
            details.set_retry_info(Some(delay));
        }
        let mut trailers = MetadataMap::new();
        if !may_retry(fault.reason) {
            trailers.insert(RETRY_PUSHBACK, AsciiMetadataValue::from_static(NO_RETRY));
        }
        Status::with_error_details_and_metadata(meaning.code, fault.message, details, trailers)
    }

    fn into_item_status(self, domain: &str) -> ItemStatus {
        let status = self.into_status(domain);
        let plain = || ItemStatus {
            code: status.code().into(),
            message: status.message().to_owned(),
            details: Vec::new(),
        };
        // The details of a status are this very message, encoded.
        ItemStatus::decode(status.details()).unwrap_or_else(|_| plain())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic_types::RpcStatusExt as _;
    use trestle_model::fault::{OverQuota, Reason, VIOLATIONS_MAX, Violations};

    use super::*;

    #[test]
    fn a_batch_failure_carries_its_index_and_both_codes() {
        let fault = Fault::about(Reason::EntityAlreadyExists, "exists", "entity", "p/r").at(3);

        let status = (fault).into_status(DOMAIN);

        assert_eq!(status.code(), Code::AlreadyExists);
        let details = status.get_error_details();
        let info = details.error_info().expect("error info");
        assert_eq!(info.reason, "ENTITY_ALREADY_EXISTS");
        assert_eq!(info.metadata.get("azureCode").map(String::as_str), Some("EntityAlreadyExists"));
        assert_eq!(info.metadata.get("httpStatus").map(String::as_str), Some("409"));
        assert_eq!(info.metadata.get("index").map(String::as_str), Some("3"));
        assert_eq!(details.resource_info().map(|r| r.resource_name.as_str()), Some("p/r"));
    }

    #[test]
    fn the_error_of_an_item_is_the_status_of_a_call_as_a_message() {
        let fault = Fault::violation(Reason::InvalidInput, "entities[2]", "must have a key").at(2);

        let item = tonic_types::Status::from(fault.clone().into_item_status("a.Service"));

        let status = fault.into_status("a.Service");
        assert_eq!(Code::from_i32(item.code), status.code());
        assert_eq!(item.message, status.message());
        let (of_item, of_call) = (item.get_error_details(), status.get_error_details());
        let info = |details: &ErrorDetails| {
            let info = details.error_info().expect("error info").clone();
            (info.reason, info.domain, info.metadata)
        };
        assert_eq!(info(&of_item), info(&of_call));
        let fields = |details: &ErrorDetails| format!("{:?}", details.bad_request());
        assert_eq!(fields(&of_item), fields(&of_call));
        assert!(fields(&of_item).contains("entities[2]"));
    }

    #[test]
    fn every_violation_is_reported_up_to_the_bound() {
        let mut violations = Violations::default();
        for index in 0..100 {
            violations.push(Reason::InvalidInput, format!("field[{index}]"), "bad");
        }

        let status =
            (violations.check(()).expect_err("violations were recorded")).into_status(DOMAIN);

        assert_eq!(status.code(), Code::InvalidArgument);
        let details = status.get_error_details();
        let fields = &details.bad_request().expect("bad request").field_violations;
        assert_eq!(fields.len(), VIOLATIONS_MAX);
        assert_eq!(fields.first().map(|v| v.field.as_str()), Some("field[0]"));
    }

    #[test]
    fn a_call_over_a_limit_reports_the_limit_and_the_retry_delay() {
        let subject = "account `a`".to_owned();
        let quota = OverQuota { subject, description: "5 entities a second".to_owned() };

        let status = (Fault::over_quota(quota, Duration::from_millis(20))).into_status(DOMAIN);

        assert_eq!(status.code(), Code::ResourceExhausted);
        let details = status.get_error_details();
        assert_eq!(details.error_info().expect("error info").reason, "SERVER_BUSY");
        let retry = details.retry_info().and_then(|info| info.retry_delay);
        assert_eq!(retry, Some(Duration::from_millis(20)));
        let violations = &details.quota_failure().expect("quota failure").violations;
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].subject, "account `a`");
        assert_eq!(violations[0].description, "5 entities a second");
    }

    #[test]
    fn an_error_that_a_retry_repeats_stops_the_retries_of_a_service_config() {
        let reasons = || (0..500).filter_map(|number| Reason::try_from(number).ok());
        let pushback = |reason: &Reason| {
            let status = (Fault::new(*reason, "text")).into_status(DOMAIN);
            let value = status.metadata().get(RETRY_PUSHBACK)?;
            Some(value.to_str().expect("text").to_owned())
        };
        let is_exhausted = |reason: &Reason| meaning(*reason).code == Code::ResourceExhausted;
        let is_retried =
            |reason: &Reason| is_exhausted(reason) || meaning(*reason).code == Code::Unavailable;

        let stopped: Vec<_> = reasons().filter(|reason| pushback(reason).is_some()).collect();
        let passing = reasons().filter(|reason| is_exhausted(reason) && !stopped.contains(reason));

        assert!(stopped.iter().all(|reason| pushback(reason).as_deref() == Some("-1")));
        assert!(stopped.iter().all(is_retried), "{stopped:?}");
        assert!(stopped.contains(&Reason::RpcMessageTooLarge), "{stopped:?}");
        assert!(stopped.contains(&Reason::StorageStopped), "{stopped:?}");
        assert!(stopped.contains(&Reason::StorageQuotaExceeded), "{stopped:?}");
        let expected = [Reason::ServerBusy, Reason::LogBacklogFull];
        assert_eq!(passing.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn only_two_reasons_are_internal_errors() {
        let reasons = (0..500).filter_map(|number| Reason::try_from(number).ok());
        let internal = reasons.filter(|reason| meaning(*reason).code == Code::Internal);

        let unspecified = [Reason::Unspecified, Reason::InternalError];
        assert_eq!(internal.collect::<Vec<_>>(), unspecified);
    }

    #[test]
    fn the_domain_is_the_service_in_the_path() {
        let queue = "trestle.queue.v1.QueueService";
        assert_eq!(domain_of(&format!("/{queue}/SendMessages")), queue);
        assert_eq!(domain_of(&format!("/{queue}/Unknown")), queue);
        let long = format!("/{}/Method", "s".repeat(DOMAIN_BYTES_MAX + 1));
        for path in ["", "/", "/Method", "//Method", "/a b/Method", "/caf\u{e9}/Method", &long] {
            assert_eq!(domain_of(path), DOMAIN, "{path}");
        }
    }

    #[test]
    fn a_status_preserves_its_details_in_another_domain() {
        let fault = Fault::violation(Reason::InvalidInput, "field", "rule").at(3);
        let status = (fault.retry_after(Duration::from_millis(20))).into_status(DOMAIN);

        let renamed = with_domain(&status, "a.Service").expect("another domain");

        assert_eq!((renamed.code(), renamed.message()), (status.code(), status.message()));
        let (before, after) = (status.get_error_details(), renamed.get_error_details());
        assert_eq!(after.error_info().expect("error info").domain, "a.Service");
        let metadata =
            |details: &ErrorDetails| details.error_info().map(|info| info.metadata.clone());
        assert_eq!(metadata(&after), metadata(&before));
        let others = |details: &ErrorDetails| {
            format!("{:?} {:?}", details.bad_request(), details.retry_info())
        };
        assert_eq!(others(&after), others(&before));
        assert!(with_domain(&renamed, "a.Service").is_none());
        assert!(with_domain(&Status::not_found("plain"), "a.Service").is_none());
    }

    /// The bytes of the trailers with the error.
    fn bytes(fault: Fault) -> usize {
        let headers = fault.into_status(DOMAIN).into_http::<()>().into_parts().0.headers;
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
    }

    #[test]
    fn the_largest_error_fits_into_the_headers_that_clients_accept() {
        for text in ["a", "%", "\n", "ä", "漢", "\u{10000}"] {
            let long = text.repeat(8192);
            let fault =
                Fault::about(Reason::BlobNotFound, format!("absent: {long}"), "blob", &*long);
            assert!(bytes(fault) < 8192, "{text:?}");
            let mut violations = Violations::default();
            for _ in 0..100 {
                violations.push(Reason::InvalidInput, "field", format!("must be short: {long}"));
            }
            let fault = violations.check(()).expect_err("there are violations");
            assert!(bytes(fault) < 8192, "{text:?}");
        }
    }
}
