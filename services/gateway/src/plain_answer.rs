//! Responses of HTTP to what is not a call.

use http::{HeaderValue, StatusCode, header};
use tonic::body::Body;
use trestle_rpc::layer::Response;

/// A response in plain text.
pub(crate) fn plain(status: StatusCode, text: String) -> Response {
    let mut answer = Response::new(Body::new(http_body_util::Full::from(text)));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// A response, with the method that is allowed where another one is not.
pub(crate) fn with_allowed(mut answer: Response) -> Response {
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    answer
}
