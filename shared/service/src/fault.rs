//! Errors of calls: one type, one table from reason to gRPC code, Azure code and HTTP status.

mod blob;
mod bounds;
mod fields;
mod log;
mod meaning;
mod property_path;

use std::{borrow::Cow, time::Duration};

use prost::Message as _;
use tonic::{
    Code, Status,
    metadata::{AsciiMetadataValue, MetadataMap},
};
use tonic_types::{ErrorDetails, FieldViolation, QuotaViolation, StatusExt as _};
pub use trestle_proto::errors::v1::ErrorReason as Reason;

use crate::rpc_path::service_of;

use meaning::may_retry;
pub use meaning::{Meaning, meaning};
pub use property_path::{property_path, split_property_path, unescaped};

/// `ErrorInfo.domain` of an error while the called service is not determined, and if the path of a call has none.
pub const DOMAIN: &str = "trestle";
/// The trailer by which a server controls the retries of a service config, which are by code only (gRFC A6).
pub const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Its value where no retry should follow.
const NO_RETRY: &str = "-1";
/// Longest name of a service that a domain repeats, in bytes.
const DOMAIN_BYTES_MAX: usize = 128;

/// Longest part of a client's value that an error repeats, in characters.
const QUOTED_CHARS_MAX: usize = 64;

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The reason; determines the gRPC code, the Azure code and the HTTP status.
    pub reason: Reason,
    /// The error text; may change.
    pub message: String,
    /// Every rule that the request breaks, for malformed requests.
    pub violations: Vec<Violation>,
    /// The resource of the call, for errors about absent and existing resources.
    pub resource: Option<Resource>,
    /// Position of the failing operation, for batches.
    pub index: Option<usize>,
    /// How long to wait before a retry.
    pub retry_after: Option<Duration>,
    /// The limit that the call exceeds.
    pub quota: Option<OverQuota>,
}

/// A limit that a call exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    /// The subject of the limit, without data of other accounts.
    pub subject: String,
    /// The limit.
    pub description: String,
}

/// A rule that a field of a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The error of the field on its own.
    pub reason: Reason,
    /// Path of the field, such as `entity.properties["total"]`.
    pub field: String,
    /// The rule, and the value that breaks it.
    pub description: String,
}

/// The resource of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// `table` or `entity`.
    pub kind: &'static str,
    /// Its name or key, as the client sent it.
    pub name: String,
}

impl Fault {
    /// An error with a reason and a text.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            violations: Vec::new(),
            resource: None,
            index: None,
            retry_after: None,
            quota: None,
        }
    }

    /// The error of a request that breaks one rule.
    pub fn violation(
        reason: Reason,
        field: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let violation = Violation { reason, field: field.into(), description: description.into() };
        let message = format!("{}: {}", violation.field, violation.description);
        Self { violations: vec![violation], ..Self::new(reason, message) }
    }

    /// An error about a resource.
    pub fn about(
        reason: Reason,
        message: impl Into<String>,
        kind: &'static str,
        name: impl Into<String>,
    ) -> Self {
        let resource = Some(Resource { kind, name: name.into() });
        Self { resource, ..Self::new(reason, message) }
    }

    /// The error of the operation at `index` of a batch.
    #[must_use]
    pub fn at(self, index: usize) -> Self {
        Self { index: Some(index), ..self }
    }

    /// The error with a retry delay.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), ..self }
    }

    /// The error of an item in the response of a call of this service that has an outcome for each.
    #[must_use]
    pub fn into_item_status(self, service: &str) -> tonic_types::Status {
        let status = self.into_status(service);
        let plain = || tonic_types::Status {
            code: status.code().into(),
            message: status.message().to_owned(),
            details: Vec::new(),
        };
        // The details of a status are this very message, encoded.
        tonic_types::Status::decode(status.details()).unwrap_or_else(|_| plain())
    }

    /// The error of a call that exceeds a limit.
    pub fn over_quota(quota: OverQuota, retry_after: Duration) -> Self {
        let message = format!("over a limit: {}: {}", quota.subject, quota.description);
        let fault = Self::new(Reason::ServerBusy, message).retry_after(retry_after);
        Self { quota: Some(quota), ..fault }
    }
}

/// The rules that a request breaks, collected field by field so that a client sees all of them at once.
#[derive(Debug, Default)]
pub struct Violations(Vec<Violation>);

/// Most violations reported for one request: enough to fix it, bounded for a hostile one.
const VIOLATIONS_MAX: usize = 64;

impl Violations {
    /// Records that `field` breaks a rule.
    pub fn push(
        &mut self,
        reason: Reason,
        field: impl Into<String>,
        description: impl Into<String>,
    ) {
        if self.0.len() < VIOLATIONS_MAX {
            let (field, description) = (field.into(), description.into());
            self.0.push(Violation { reason, field, description });
        }
    }

    /// Records violations that were found elsewhere.
    pub fn extend(&mut self, violations: Vec<Violation>) {
        for violation in violations {
            self.push(violation.reason, violation.field, violation.description);
        }
    }

    /// Whether no violation was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` if no violation was recorded.
    ///
    /// # Errors
    /// The error with every violation; its reason and text are those of the first one.
    pub fn check<T>(self, value: T) -> Result<T, Fault> {
        let Some(first) = self.0.first() else {
            return Ok(value);
        };
        let message = format!("{}: {}", first.field, first.description);
        let reason = first.reason;
        Err(Fault { violations: self.0, ..Fault::new(reason, message) })
    }
}

/// The error of a message of gRPC that is larger than a server reads.
#[must_use]
pub fn message_too_large(bytes_max: usize) -> Fault {
    let rule = format!("must be at most {bytes_max} bytes, after decompression");
    Fault::violation(Reason::RpcMessageTooLarge, "message", rule)
}

/// A client's value, shortened for an error text.
#[must_use]
pub fn quoted(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(QUOTED_CHARS_MAX) {
        None => Cow::Borrowed(value),
        Some((end, _)) => Cow::Owned(format!("{}…", value.get(..end).unwrap_or_default())),
    }
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

/// The name of a reason as `ErrorInfo.reason` carries it.
#[must_use]
pub fn reason_name(reason: Reason) -> &'static str {
    let name = reason.as_str_name();
    name.strip_prefix("ERROR_REASON_").unwrap_or(name)
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        fault.into_status(DOMAIN)
    }
}

impl Fault {
    /// The gRPC status, from the service with the full name `domain`.
    #[must_use]
    pub fn into_status(self, domain: &str) -> Status {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_failure_carries_its_index_and_both_codes() {
        let fault = Fault::about(Reason::EntityAlreadyExists, "exists", "entity", "p/r").at(3);

        let status = Status::from(fault);

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
    fn every_violation_is_reported_up_to_the_bound() {
        let mut violations = Violations::default();
        for index in 0..100 {
            violations.push(Reason::InvalidInput, format!("field[{index}]"), "bad");
        }

        let status = Status::from(violations.check(()).expect_err("violations were recorded"));

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

        let status = Status::from(Fault::over_quota(quota, Duration::from_millis(20)));

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
            let status = Status::from(Fault::new(*reason, "text"));
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
        let status = Status::from(fault.retry_after(Duration::from_millis(20)));

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

    #[test]
    fn long_values_are_truncated_in_errors() {
        assert_eq!(quoted("short"), "short");
        assert_eq!(quoted(&"é".repeat(65)), format!("{}…", "é".repeat(64)));
    }
}
