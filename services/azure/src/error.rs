//! Errors for REST clients: the same ones as of gRPC, from the same table.

mod property;
mod sentence;

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tonic::{Status, body::Body};
use tonic_types::{FieldViolation, StatusExt as _};
use trestle_model::fault::{Fault, Reason, quoted, reason_name};
use trestle_model::time::Ticks;
use trestle_rpc::status::{DOMAIN, IntoStatus as _, meaning};

use crate::{blob::header::COPY_SOURCE, date, reply, xml};

/// The element of an error body that names the invalid credential.
const AUTHENTICATION_DETAIL: &str = "AuthenticationErrorDetail";

/// The error of a request, from any component.
#[derive(Debug, Clone)]
pub(crate) struct RestError {
    /// The error, as in gRPC.
    pub(crate) status: Box<Status>,
    /// Elements that only the error body of REST has, such as `QueryParameterName`.
    pub(crate) extras: Vec<(&'static str, String)>,
    /// A header that only the response of REST has.
    pub(crate) header: Option<(HeaderName, HeaderValue)>,
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

    /// Whether it has this reason.
    pub(crate) fn is(&self, reason: Reason) -> bool {
        let details = self.status.get_error_details();
        details.error_info().is_some_and(|info| info.reason == reason_name(reason))
    }

    /// The error with another reason, which has the same gRPC code.
    #[must_use]
    pub(crate) fn with_reason(mut self, reason: Reason) -> Self {
        let mut details = self.status.get_error_details();
        let Some(info) = details.error_info().cloned() else { return self };
        let (mut metadata, meaning) = (info.metadata, meaning(reason));
        metadata.insert("azureCode".to_owned(), meaning.azure_code.to_owned());
        metadata.insert("httpStatus".to_owned(), meaning.http_status.to_string());
        details.set_error_info(reason_name(reason), info.domain, metadata);
        let (code, message) = (self.status.code(), self.status.message());
        *self.status = Status::with_error_details(code, message, details);
        self
    }

    /// The error with other names of its invalid fields, where `name` has one.
    #[must_use]
    pub(crate) fn with_fields(mut self, name: impl Fn(&str) -> Option<String>) -> Self {
        let mut details = self.status.get_error_details();
        let violations = details.bad_request().map(|bad| bad.field_violations.clone());
        let named = violations.unwrap_or_default().into_iter().map(|violation| {
            let field = name(&violation.field).unwrap_or(violation.field);
            FieldViolation { field, ..violation }
        });
        let named: Vec<_> = named.collect();
        let Some(first) = named.first() else { return self };
        let message = format!("{}: {}", first.field, first.description);
        details.set_bad_request(named);
        *self.status = Status::with_error_details(self.status.code(), message, details);
        self
    }

    /// The error with a header of its response.
    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
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
        Self { status: Box::new(status), extras: Vec::new(), header: None }
    }
}

impl From<Fault> for RestError {
    fn from(fault: Fault) -> Self {
        fault.into_status(DOMAIN).into()
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
    /// A further header of the response.
    pub(crate) header: Option<(HeaderName, HeaderValue)>,
    /// The id of the request.
    pub(crate) request_id: String,
    /// When it failed.
    pub(crate) at: Ticks,
}

impl ErrorResponse {
    /// The REST form of an error.
    pub(crate) fn new(error: RestError, request_id: &str, at: Ticks) -> Self {
        let RestError { status, mut extras, header } = error;
        let details = status.get_error_details();
        let info = details.error_info();
        let metadata = |key: &str| info.and_then(|info| info.metadata.get(key)).cloned();
        let unknown = meaning(Reason::InternalError);
        let code = metadata("azureCode").unwrap_or_else(|| unknown.azure_code.to_owned());
        let http_status = metadata("httpStatus").and_then(|text| text.parse().ok());
        let http_status = StatusCode::from_u16(http_status.unwrap_or(unknown.http_status));
        let http_status = http_status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // With a delay clients would retry any status.
        let delay = details.retry_info().and_then(|info| info.retry_delay);
        let retry_after = delay.filter(|_| http_status.is_server_error());
        let violation = details.bad_request().and_then(|bad| bad.field_violations.first());
        let field = violation.map(|violation| violation.field.clone());
        let of_reason = info.and_then(|info| sentence::of_reason(&info.reason));
        let unknown_outcome = reason_name(Reason::OutcomeUnknown);
        let is_of_unknown_outcome = info.is_some_and(|info| info.reason == unknown_outcome);
        let sentence = of_reason.or_else(|| sentence::of(&code, field.as_deref()));
        let whole = || sentence::addition(&code, &property::values(status.message())).to_owned();
        let detail = violation.map_or_else(whole, |it| detail(&code, &status, it));
        let text = match sentence {
            // The text of an internal error is not disclosed, except how to proceed after a write.
            Some(sentence) if code == unknown.azure_code && !is_of_unknown_outcome => {
                sentence.to_owned()
            }
            Some(sentence) if !sentence::is_one(&detail) => {
                sentence::with_details(sentence, &detail)
            }
            _ => detail,
        };
        if code == meaning(Reason::AuthenticationFailed).azure_code {
            let wrong = sentence::addition(&code, status.message());
            extras.push((AUTHENTICATION_DETAIL, wrong.to_owned()));
        }
        Self {
            code,
            status: http_status,
            text,
            field,
            index: metadata("index").and_then(|index| index.parse().ok()),
            retry_after,
            extras,
            header,
            request_id: request_id.to_owned(),
            at,
        }
    }

    /// The error of a request with these headers: with the invalid header, if one is.
    #[must_use]
    pub(crate) fn of_request(mut self, headers: &HeaderMap) -> Self {
        let is_header = self.code == meaning(Reason::InvalidHeaderValue).azure_code;
        let name = self.field.as_deref().filter(|_| is_header);
        // Its value may have a signature, of another server too.
        let name = name.filter(|name| *name != COPY_SOURCE.as_str());
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

/// The text about an invalid part of a request, which has its name in REST.
fn detail(code: &str, status: &Status, violation: &FieldViolation) -> String {
    let FieldViolation { field, description: rule, .. } = violation;
    // Some rules are sentences of Azure, so no field may precede them.
    if sentence::is_one(rule) {
        return rule.clone();
    }
    if status.message() != format!("{field}: {rule}") {
        return property::values(status.message());
    }
    let name = property::name(field).unwrap_or(field);
    let rule = property::values(&property::rule(field, rule));
    property::with_rule(name, sentence::addition(code, &rule))
}

/// The body of an error of queues and blobs. The caller sets the status.
pub(crate) fn document(response: &ErrorResponse) -> Response<Body> {
    let details: Vec<_> =
        response.extras.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let message = response.message();
    let error = xml::ErrorBody { code: &response.code, message: &message, details: &details };
    reply::xml(xml::write_error(&error))
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
            "7:The table specified does not exist.\nno such table: TableName=`a`\nRequestId:id-1\n\
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
        let of_input = "One of the request inputs is out of range.\nentity.row_key: rule";
        assert_eq!(text("entity.row_key"), of_input);
    }

    #[test]
    fn an_error_of_a_filter_omits_the_name_of_the_field() {
        let text =
            |rule: &str| failure(Fault::violation(Reason::InvalidInput, "filter", rule)).text;

        let syntax = "Syntax error at position 1 in 'a'.";
        assert_eq!(text(syntax), syntax);
        let other = "One of the request inputs is not valid.\n$filter: other";
        assert_eq!(text("other"), other);
    }

    #[test]
    fn a_detail_that_begins_with_the_sentence_does_not_repeat_it() {
        let sentence = "The specified entity already exists.";
        let text = |detail: &str| failure(Fault::new(Reason::EntityAlreadyExists, detail)).text;

        assert_eq!(text(sentence), sentence);
        let own = "the specified entity already exists: table=`a`, row_key=`r`";
        assert_eq!(text(own), format!("{sentence}\nTableName=`a`, RowKey=`r`"));
    }

    #[test]
    fn another_reason_and_other_fields_preserve_the_rest() {
        let fault = Fault::violation(Reason::InvalidXmlNodeValue, "Days", "rule").at(3);

        let error = RestError::from(fault).with_reason(Reason::InvalidXmlDocument);
        let error = error.with_fields(|field| (field == "Days").then(|| "Nights".to_owned()));

        assert!(error.is(Reason::InvalidXmlDocument) && !error.is(Reason::InvalidXmlNodeValue));
        let at = Ticks::from_unix(0, 0).expect("in range");
        let response = ErrorResponse::new(error, "id", at);
        assert_eq!((response.code.as_str(), response.index), ("InvalidXmlDocument", Some(3)));
        assert_eq!(response.text, "XML specified is not syntactically valid.\nNights: rule");
    }

    #[test]
    fn a_full_store_or_quota_is_an_error_that_clients_do_not_retry() {
        for reason in [Reason::InsufficientStorage, Reason::StorageQuotaExceeded] {
            let fault = Fault::new(reason, "all is used");

            let response = failure(fault.retry_after(Duration::from_secs(1)));

            assert_eq!(response.code, "InsufficientAccountPermissions");
            assert_eq!((response.status, response.retry_after), (StatusCode::FORBIDDEN, None));
            assert_eq!(response.text, "Write operations are not allowed.\nall is used");
        }
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
    fn a_write_of_unknown_outcome_has_its_client_read_back() {
        let text =
            "the store failed in this write, which may be stored or not: read back before a retry";

        let response = failure(Fault::new(Reason::OutcomeUnknown, text));

        assert_eq!((response.code.as_str(), response.status.as_u16()), ("InternalError", 500));
        let sentence = "The server encountered an internal error. Please retry the request.";
        assert_eq!(response.text, format!("{sentence}\n{text}"));
    }

    #[test]
    fn a_failed_stored_access_policy_has_the_sentence_once() {
        let what = "the stored access policy does not exist: policy=`nope`";
        let text = format!("the server failed to authenticate the request: {what}");

        let response = failure(Fault::new(Reason::AuthenticationFailed, text));

        let sentence = "Server failed to authenticate the request. Make sure the value of the \
                        Authorization header is formed correctly including the signature.";
        assert_eq!(response.text, format!("{sentence}\n{what}"));
        assert_eq!(response.extras, [("AuthenticationErrorDetail", what.to_owned())]);
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
