//! Answers: what is the same in all of them.

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use tonic::{Status, body::Body};

/// In the extensions of an answer: the operation failed though the answer says success, as a
/// transaction does. For those who count failures.
#[derive(Debug, Clone)]
pub(crate) struct Outcome(pub(crate) Status);

/// In the extensions of an answer: it is written in the form of REST already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rendered;

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    answer
}

/// An answer with a body that is all there.
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

/// An answer whose body is sent as it is read, of `length` bytes where that is known. It breaks off
/// at an error of `pieces`.
#[cfg_attr(not(test), expect(dead_code, reason = "answers of tables and queues are messages"))]
pub(crate) fn streamed(
    status: StatusCode,
    content_type: &'static str,
    length: Option<u64>,
    pieces: impl Stream<Item = Result<Bytes, Status>> + Send + 'static,
) -> Response<Body> {
    let mut answer = Response::new(Body::new(StreamBody::new(pieces.map_ok(Frame::data))));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    answer
}
