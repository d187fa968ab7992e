//! OTLP over HTTP: `POST` of `/v1/logs`, `/v1/metrics` and `/v1/traces` with a body in Protocol Buffers, translated
//! into the call `Export` of the service for it. A body that is compressed with gzip stays so: a message of gRPC may
//! be, too.

mod rejection;
#[cfg(test)]
mod tests;
mod unframed;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, BodyStream, Limited, StreamBody};
use prost::Message as _;
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt as _;
use tower::Service as _;
use trestle_service::{
    fault::{Fault, Reason, message_too_large, quoted},
    layer::{CallService, Request, Response, body_bytes::Unframed, short_circuit::with_outcome},
    limits::MESSAGE_BYTES_MAX,
};

use self::rejection::BodyType;
pub(crate) use self::{rejection::Rejection, unframed::MessageFramingLayer};

/// The paths of HTTP on the listener of gRPC, and the methods that they call.
pub const HTTP_PATHS: [(&str, &str); 3] = [
    ("/v1/logs", "/opentelemetry.proto.collector.logs.v1.LogsService/Export"),
    ("/v1/metrics", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"),
    ("/v1/traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"),
];
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// The type of a body in Protocol Buffers.
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// Bytes before a message of gRPC: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// Most bytes of a response.
const RESPONSE_BYTES_MAX: usize = 1024 * 1024;
/// When a client may call again, in seconds, where the error has no delay.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// The method that a request of OTLP calls; none for another request.
pub(crate) fn method_of(request: &Request) -> Option<&'static str> {
    let path = request.uri().path();
    HTTP_PATHS.iter().find(|(known, _)| *known == path).map(|(_, method)| *method)
}

/// Checks a request of OTLP.
///
/// # Errors
/// Why it is rejected before it is a call.
pub(crate) fn check(request: &Request) -> Result<(), Rejection> {
    if request.method() != Method::POST {
        return Err(Rejection::METHOD);
    }
    let headers = request.headers();
    if BodyType::of(headers) != BodyType::Protobuf {
        return Err(Rejection::CONTENT_TYPE);
    }
    match is_compressed(headers) {
        Some(_) => Ok(()),
        None => Err(Rejection::ENCODING),
    }
}

/// Whether a body is compressed with gzip; none where it has another encoding.
fn is_compressed(headers: &HeaderMap) -> Option<bool> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let encoding = encodings.next().map_or(&b""[..], HeaderValue::as_bytes).trim_ascii();
    if encodings.next().is_some() {
        return None;
    }
    if encoding.eq_ignore_ascii_case(b"gzip") {
        return Some(true);
    }
    (encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity")).then_some(false)
}

/// The response of HTTP to a request that [`check`] accepts.
pub(crate) async fn export(
    mut calls: CallService,
    method: &'static str,
    request: Request,
) -> Response {
    let call = match into_call(method, request) {
        Ok(call) => call,
        Err(fault) => return failed(&Status::from(fault)),
    };
    let Ok(answer) = calls.call(call).await;
    let (parts, body) = answer.into_parts();
    if let Some(status) = status_of(&parts.headers) {
        return failed(&status);
    }
    let body = match Limited::new(body, RESPONSE_BYTES_MAX).collect().await {
        Ok(body) => body,
        Err(_) => return failed(&Status::internal("the response could not be read")),
    };
    match body.trailers().and_then(status_of) {
        Some(status) => failed(&status),
        None => success(&body.to_bytes()),
    }
}

/// A call of gRPC with the body as its one message.
///
/// # Errors
/// A body that is too large.
fn into_call(method: &'static str, request: Request) -> Result<Request, Fault> {
    let (mut parts, body) = request.into_parts();
    parts.uri = Uri::from_static(method);
    let is_compressed = is_compressed(&parts.headers) == Some(true);
    // Headers of gRPC have no meaning in a request of HTTP.
    for name in [header::CONTENT_ENCODING, GRPC_ENCODING, GRPC_TIMEOUT] {
        parts.headers.remove(name);
    }
    if is_compressed {
        parts.headers.insert(GRPC_ENCODING, HeaderValue::from_static("gzip"));
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    parts.headers.insert(header::TE, HeaderValue::from_static("trailers"));
    // The length precedes a message: without one the body is framed when it has ended.
    let Some(length) = body.size_hint().exact() else {
        parts.extensions.insert(Unframed { is_compressed, is_stream: false });
        return Ok(Request::from_parts(parts, body));
    };
    let prefix = prefix(is_compressed, length)?;
    let prefix = stream::iter([Ok::<_, Status>(http_body::Frame::data(prefix))]);
    let body = StreamBody::new(prefix.chain(BodyStream::new(body)));
    Ok(Request::from_parts(parts, Body::new(body)))
}

/// What precedes a message of so many bytes.
fn prefix(is_compressed: bool, length: u64) -> Result<Bytes, Fault> {
    let fits = |length: &u32| *length as usize <= MESSAGE_BYTES_MAX;
    let length = u32::try_from(length).ok().filter(fits);
    let mut prefix = BytesMut::with_capacity(PREFIX_BYTES);
    prefix.put_u8(is_compressed.into());
    prefix.put_u32(length.ok_or_else(|| message_too_large(MESSAGE_BYTES_MAX))?);
    Ok(prefix.freeze())
}

/// A body that ended early, or whose chunks are malformed.
fn incomplete(mut error: &dyn std::error::Error) -> Fault {
    while let Some(cause) = error.source() {
        error = cause;
    }
    let rule = format!("must be a whole body of HTTP: cause=`{}`", quoted(&error.to_string()));
    Fault::violation(Reason::InvalidInput, "body", rule)
}

/// The status of a call that failed, in headers or trailers.
fn status_of(headers: &HeaderMap) -> Option<Status> {
    Status::from_header_map(headers).filter(|status| status.code() != Code::Ok)
}

/// The response to a call that succeeded.
fn success(message: &Bytes) -> Response {
    let message = message.slice(PREFIX_BYTES.min(message.len())..);
    let mut answer = Response::new(Body::new(http_body_util::Full::from(message)));
    answer.headers_mut().insert(header::CONTENT_TYPE, PROTOBUF);
    answer
}

/// The response to a call that failed: its status as a message, and as a status of HTTP by which clients retry or not.
fn failed(status: &Status) -> Response {
    let details = tonic_types::Status::decode(status.details()).unwrap_or_default().details;
    let code = status.code().into();
    let message = tonic_types::Status { code, message: status.message().to_owned(), details };
    let bytes = Bytes::from(message.encode_to_vec());
    let mut answer = Response::new(Body::new(http_body_util::Full::from(bytes)));
    let (http, is_retryable) = http_status(status);
    *answer.status_mut() = http;
    answer.headers_mut().insert(header::CONTENT_TYPE, PROTOBUF);
    if is_retryable {
        answer.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    let reason = if is_retryable { Reason::ServerBusy } else { Reason::InvalidInput };
    with_outcome(answer, Err(Fault::new(reason, status.message())))
}

/// The status of HTTP for one of gRPC, and whether the client should retry. OTLP: what is exhausted is worth a retry
/// only where the error has a delay.
fn http_status(status: &Status) -> (StatusCode, bool) {
    match status.code() {
        Code::Unauthenticated => (StatusCode::UNAUTHORIZED, false),
        Code::PermissionDenied => (StatusCode::FORBIDDEN, false),
        Code::ResourceExhausted if status.get_details_retry_info().is_none() => {
            (StatusCode::PAYLOAD_TOO_LARGE, false)
        }
        Code::ResourceExhausted => (StatusCode::TOO_MANY_REQUESTS, true),
        Code::Unavailable | Code::Aborted => (StatusCode::SERVICE_UNAVAILABLE, true),
        Code::DeadlineExceeded | Code::Cancelled => (StatusCode::GATEWAY_TIMEOUT, true),
        Code::Unimplemented | Code::NotFound => (StatusCode::NOT_FOUND, false),
        Code::Internal | Code::Unknown | Code::DataLoss => {
            (StatusCode::INTERNAL_SERVER_ERROR, false)
        }
        _ => (StatusCode::BAD_REQUEST, false),
    }
}
