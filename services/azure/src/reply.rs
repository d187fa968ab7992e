//! Responses: their common parts.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use tonic::{Status, body::Body};

use crate::xml;

/// The id of a request, on responses.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
/// The error code of a response.
pub(crate) const ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");

/// In the extensions of a response: the operation failed though the status is success, as with a
/// transaction. For the metrics.
#[derive(Debug, Clone)]
pub(crate) struct CallOutcome(pub(crate) Status);

/// In the extensions of a response: it is already in the form of REST.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rendered;

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    answer
}

/// A response with an XML document.
pub(crate) fn xml(text: String) -> Response<Body> {
    whole(StatusCode::OK, xml::CONTENT_TYPE, text)
}

/// A response with a complete body.
pub(crate) fn whole(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let body = body.into();
    let length = HeaderValue::from(body.len());
    let mut answer = Response::new(Body::new(Full::new(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CONTENT_LENGTH, length);
    answer
}
