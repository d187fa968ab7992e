//! OTLP over HTTP: `POST` of `/v1/logs`, `/v1/metrics` and `/v1/traces` with a body in Protocol Buffers or JSON,
//! translated into the call `Export` of the service for it. A compressed body stays so, unless it is JSON: a message of
//! gRPC may be, too.

mod body_type;
mod json;
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
use trestle_model::fault::{Fault, Reason, message_too_large, quoted};
use trestle_model::limits::EXPORT_BYTES_MAX;
use trestle_rpc::layer::body_bytes::Unframed;
use trestle_rpc::layer::compression::{ACCEPT_ENCODING, ENCODING};
use trestle_rpc::layer::short_circuit::with_outcome;
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_rpc::otlp_json::OtlpRequest;
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use self::{body_type::BodyType, json::JsonMessage};
pub(crate) use self::{json::JsonTranslation, rejection::Rejection, unframed::MessageFraming};

/// What is posted to a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OtlpPath {
    path: [&'static str; 2],
    /// The method that it calls.
    method: &'static str,
    request: OtlpRequest,
    /// The field that counts what is rejected in a response in JSON.
    rejected: &'static str,
}

const PATHS: [OtlpPath; 3] = [
    OtlpPath {
        path: ["v1", "logs"],
        method: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        request: OtlpRequest::Logs,
        rejected: "rejectedLogRecords",
    },
    OtlpPath {
        path: ["v1", "metrics"],
        method: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        request: OtlpRequest::Metrics,
        rejected: "rejectedDataPoints",
    },
    OtlpPath {
        path: ["v1", "traces"],
        method: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        request: OtlpRequest::Traces,
        rejected: "rejectedSpans",
    },
];
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// The encodings of bodies, and the names that they have in gRPC.
const ENCODINGS: [(&str, &str); 4] =
    [("gzip", "gzip"), ("x-gzip", "gzip"), ("deflate", "deflate"), ("zstd", "zstd")];
/// No compression.
const IDENTITY: &str = "identity";
/// Bytes before a message of gRPC: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// Most bytes of a response.
const RESPONSE_BYTES_MAX: usize = 1024 * 1024;
/// When a client may call again, in seconds, where the error has no delay.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// The paths of HTTP on the listener of gRPC, and the methods that they call.
pub fn http_paths() -> impl Iterator<Item = (String, &'static str)> {
    PATHS.iter().map(|known| (format!("/{}", known.path.join("/")), known.method))
}

/// What a request of OTLP is posted to; none for another request. Slashes may be there twice or at the end, as an
/// endpoint that ends with one makes them.
pub(crate) fn path_of(request: &Request) -> Option<&'static OtlpPath> {
    let parts = || request.uri().path().split('/').filter(|part| !part.is_empty());
    PATHS.iter().find(|known| parts().eq(known.path))
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
    if BodyType::of(headers) == BodyType::Other {
        return Err(Rejection::CONTENT_TYPE);
    }
    encoding_of(headers).map(|_| ()).ok_or(Rejection::ENCODING)
}

/// The encoding of a body, by its name in gRPC; none where it has one that is not supported.
fn encoding_of(headers: &HeaderMap) -> Option<Option<&'static str>> {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let is = |name: &[u8], known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    let mut encodings =
        names.map(<[u8]>::trim_ascii).filter(|name| !name.is_empty() && !is(name, IDENTITY));
    let Some(name) = encodings.next() else { return Some(None) };
    let found = ENCODINGS.iter().find(|(known, _)| is(name, known)).map(|(_, grpc)| *grpc);
    found.filter(|_| encodings.next().is_none()).map(Some)
}

/// The response of HTTP to a request that [`check`] accepts.
pub(crate) async fn export(
    mut calls: CallService,
    path: &'static OtlpPath,
    request: Request,
) -> Response {
    let kind = BodyType::of(request.headers());
    let call = match into_call(path, kind, request) {
        Ok(call) => call,
        Err(fault) => return failed(kind, &fault.into_status(DOMAIN)),
    };
    let Ok(answer) = calls.call(call).await;
    let (parts, body) = answer.into_parts();
    if let Some(status) = status_of(&parts.headers) {
        return failed(kind, &status);
    }
    let body = match Limited::new(body, RESPONSE_BYTES_MAX).collect().await {
        Ok(body) => body,
        Err(_) => return failed(kind, &Status::internal("the response could not be read")),
    };
    match body.trailers().and_then(status_of) {
        Some(status) => failed(kind, &status),
        None => {
            let message = body.to_bytes();
            let message = message.slice(PREFIX_BYTES.min(message.len())..);
            kind.success(message, path.rejected)
        }
    }
}

/// A call of gRPC with the body as its one message.
///
/// # Errors
/// A body that is too large.
fn into_call(path: &OtlpPath, kind: BodyType, request: Request) -> Result<Request, Fault> {
    let (mut parts, body) = request.into_parts();
    parts.uri = Uri::from_static(path.method);
    let encoding = encoding_of(&parts.headers).flatten();
    // Headers of gRPC have no meaning in a request of HTTP.
    for name in [header::CONTENT_ENCODING, ENCODING, GRPC_TIMEOUT] {
        parts.headers.remove(name);
    }
    if let Some(encoding) = encoding {
        parts.headers.insert(ENCODING, HeaderValue::from_static(encoding));
    }
    // A service compresses its response to a compressed request, which a client of HTTP could not read.
    parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(IDENTITY));
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    parts.headers.insert(header::TE, HeaderValue::from_static("trailers"));
    if kind == BodyType::Json {
        parts.extensions.insert(JsonMessage(path.request));
    }
    let is_compressed = encoding.is_some();
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

/// What precedes a message of so many bytes. The service rejects one that is too large for it.
fn prefix(is_compressed: bool, length: u64) -> Result<Bytes, Fault> {
    let length = u32::try_from(length).ok();
    let mut prefix = BytesMut::with_capacity(PREFIX_BYTES);
    prefix.put_u8(is_compressed.into());
    prefix.put_u32(length.ok_or_else(|| message_too_large(EXPORT_BYTES_MAX))?);
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

/// The response to a call that failed: its status as a message, and as a status of HTTP by which clients retry or not.
fn failed(kind: BodyType, status: &Status) -> Response {
    let details = tonic_types::Status::decode(status.details()).unwrap_or_default().details;
    let code = status.code().into();
    let message = tonic_types::Status { code, message: status.message().to_owned(), details };
    let (http, is_retryable) = http_status(status);
    let mut answer = kind.failure(http, &message);
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
