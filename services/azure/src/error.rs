//! Errors for REST clients: the same ones as of gRPC, from the same table.

mod sentence;

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use tonic::Status;
use tonic_types::StatusExt as _;
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason, meaning, quoted},
};

use crate::date;

/// The element of an error body that names the invalid credential.
const AUTHENTICATION_DETAIL: &str = "AuthenticationErrorDetail";

/// The field of a query that does not parse.
const FILTER: &str = "filter";

/// The error of a request, from any component.
#[derive(Debug, Clone)]
pub(crate) struct RestError {
    /// The error, as in gRPC.
    pub(crate) status: Box<Status>,
    /// Elements that only the error body of REST has, such as `QueryParameterName`.
    pub(crate) extras: Vec<(&'static str, String)>,
}

impl RestError {
    /// The error of the value of a query parameter, with the elements that name it.
    pub(crate) fn of_parameter(
        reason: Reason,
        name: &'static str,
        value: &str,
        rule: &str,
    ) -> Self {
        let rule = format!("{rule}: value=`{}`", quoted(value));
        Self::from(Fault::violation(reason, name, rule))
            .with("QueryParameterName", name)
            .with("QueryParameterValue", quoted(value))
    }

    /// The error with one more element of its error body.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.extras.push((name, value.into()));
        self
    }
}

impl From<Status> for RestError {
    fn from(status: Status) -> Self {
        Self { status: Box::new(status), extras: Vec::new() }
    }
}

impl From<Fault> for RestError {
    fn from(fault: Fault) -> Self {
        Status::from(fault).into()
    }
}

/// An error in the form of REST.
#[derive(Debug, Clone)]
pub(crate) struct ErrorResponse {
    /// The error code of Azure.
    pub(crate) code: String,
    /// The status of HTTP.
    pub(crate) status: StatusCode,
    /// The text, without id and time of the request.
    pub(crate) text: String,
    /// The invalid part of the request, if any.
    field: Option<String>,
    /// Position of the failing operation, for transactions.
    pub(crate) index: Option<usize>,
    /// The retry delay of a client.
    pub(crate) retry_after: Option<Duration>,
    /// Further elements of the error body.
    pub(crate) extras: Vec<(&'static str, String)>,
    /// The id of the request.
    pub(crate) request_id: String,
    /// When it failed.
    pub(crate) at: Ticks,
}

impl ErrorResponse {
    /// The REST form of an error.
    pub(crate) fn new(error: RestError, request_id: &str, at: Ticks) -> Self {
        let RestError { status, mut extras } = error;
        let details = status.get_error_details();
        let info = details.error_info();
        let metadata = |key: &str| info.and_then(|info| info.metadata.get(key)).cloned();
        let unknown = meaning(Reason::InternalError);
        let code = metadata("azureCode").unwrap_or_else(|| unknown.azure_code.to_owned());
        let http_status = metadata("httpStatus").and_then(|text| text.parse().ok());
        let http_status = StatusCode::from_u16(http_status.unwrap_or(unknown.http_status));
        let violation = details.bad_request().and_then(|bad| bad.field_violations.first());
        let field = violation.map(|violation| violation.field.clone());
        let sentence = sentence::of(&code, field.as_deref());
        let of_filter = violation.filter(|violation| violation.field == FILTER);
        let text = match sentence {
            // The text of an internal error is not disclosed.
            Some(sentence) if code == unknown.azure_code => sentence.to_owned(),
            Some(sentence) => format!("{sentence}\n{}", status.message()),
            // Begins with the sentence of Azure, so nothing may precede it.
            None => of_filter.map_or(status.message(), |rule| &rule.description).to_owned(),
        };
        if code == meaning(Reason::AuthenticationFailed).azure_code {
            extras.push((AUTHENTICATION_DETAIL, status.message().to_owned()));
        }
        Self {
            code,
            status: http_status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            text,
            field,
            index: metadata("index").and_then(|index| index.parse().ok()),
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
            extras,
            request_id: request_id.to_owned(),
            at,
        }
    }

    /// The error of a request with these headers: with the invalid header, if one is.
    #[must_use]
    pub(crate) fn of_request(mut self, headers: &HeaderMap) -> Self {
        let is_header = self.code == meaning(Reason::InvalidHeaderValue).azure_code;
        let name = self.field.as_deref().filter(|_| is_header);
        let value = name.and_then(|name| headers.get(name));
        if let Some((name, value)) = name.zip(value) {
            let value = quoted(&String::from_utf8_lossy(value.as_bytes())).into_owned();
            let wrong = [("HeaderName", name.to_owned()), ("HeaderValue", value)];
            self.extras.extend(wrong);
        }
        self
    }

    /// The text in the body of a response.
    pub(crate) fn message(&self) -> String {
        let index = self.index.map(|index| format!("{index}:")).unwrap_or_default();
        let time = date::precise_date(&self.at.into()).unwrap_or_default();
        format!("{index}{}\nRequestId:{}\nTime:{time}", self.text, self.request_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(fault: Fault) -> ErrorResponse {
        let at = Ticks::from_unix(1_795_262_400, 120_000_000).expect("in range");
        ErrorResponse::new(fault.into(), "id-1", at)
    }

    #[test]
    fn an_error_is_that_of_the_table_with_the_sentence_that_clients_compare() {
        let fault = Fault::new(Reason::TableNotFound, "no such table: table=`a`").at(7);

        let response = failure(fault);

        assert_eq!((response.code.as_str(), response.status.as_u16()), ("TableNotFound", 404));
        assert_eq!(
            response.message(),
            "7:The table specified does not exist.\nno such table: table=`a`\nRequestId:id-1\n\
             Time:2026-11-21T12:00:00.1200000Z"
        );
    }

    #[test]
    fn only_the_length_of_a_name_has_the_sentence_for_resource_names() {
        let text =
            |field: &str| failure(Fault::violation(Reason::OutOfRangeInput, field, "rule")).text;

        for name in ["table", "table.name", "queue", "queue.name"] {
            assert!(text(name).starts_with("The specified resource name length"), "{name}");
        }
        assert_eq!(text("entity.row_key"), "entity.row_key: rule");
    }

    #[test]
    fn an_error_of_a_filter_omits_the_name_of_the_field() {
        let text =
            |field: &str| failure(Fault::violation(Reason::InvalidInput, field, "Syntax")).text;

        assert_eq!(text("filter"), "Syntax");
        assert_eq!(text("other"), "other: Syntax");
    }

    #[test]
    fn internal_errors_and_errors_of_other_origin_disclose_nothing() {
        let at = Ticks::from_unix(0, 0).expect("in range");
        for status in [Status::internal("secret"), Status::unknown("secret")] {
            let response = ErrorResponse::new(status.into(), "id", at);
            assert_eq!((response.code.as_str(), response.status.as_u16()), ("InternalError", 500));
            assert!(!response.message().contains("secret"));
        }
    }

    #[test]
    fn the_reason_of_invalid_credentials_is_an_element_of_its_own() {
        let rejected = |reason| failure(Fault::new(reason, "se: required")).extras;

        let detail = ("AuthenticationErrorDetail", "se: required".to_owned());
        assert_eq!(rejected(Reason::AuthenticationFailed), [detail]);
        assert_eq!(rejected(Reason::AuthorizationFailure), []);
    }

    #[test]
    fn the_retry_delay_is_kept() {
        let fault = Fault::new(Reason::ServerBusy, "busy").retry_after(Duration::from_millis(20));

        let response = failure(fault);

        assert_eq!(response.retry_after, Some(Duration::from_millis(20)));
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    }
}
