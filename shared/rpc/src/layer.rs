//! The layers of a call, one per file, each over HTTP requests that carry gRPC. A process composes
//! them in its own order; no layer depends on its neighbours.
//!
//! Every layer responds in gRPC: an error is a response, never a transport error. The services
//! below are ready at any time, so no layer queues.

pub mod admission;
pub mod body_bytes;
pub mod body_wrapper;
mod call;
pub mod call_statistics;
pub mod compression;
pub mod deadline;
mod error_domain;
mod finished;
mod framing;
mod instruments;
pub mod message_size;
pub mod methods;
pub mod middleware;
pub mod panic;
pub mod shares;
pub mod short_circuit;
pub mod shutdown;
pub mod trace;
pub mod unknown_method;

#[cfg(test)]
mod tests;

use crate::status::{DOMAIN, IntoStatus as _};
use std::{convert::Infallible, future::Future, pin::Pin};

use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::{Code, Status, body::Body};
use tower::util::BoxCloneSyncService;

use trestle_model::fault::Fault;

/// A gRPC call as HTTP.
pub type Request = http::Request<Body>;

/// The response of a gRPC call as HTTP.
pub type Response = http::Response<Body>;

/// The future of a response. Dropping it cancels the call.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Any service of calls, type-erased.
pub type CallService = BoxCloneSyncService<Request, Response, Infallible>;

/// The headers of a response that contain the outcome of its call; in trailers, after a message.
pub const STATUS_HEADERS: [HeaderName; 3] =
    [Status::GRPC_STATUS, Status::GRPC_MESSAGE, Status::GRPC_STATUS_DETAILS];

/// The response of a rejected call. Its extensions carry the reason, for the metrics.
#[must_use]
pub fn error_response(fault: Fault) -> Response {
    let reason = fault.reason;
    let mut answer: Response = fault.into_status(DOMAIN).into_http();
    answer.extensions_mut().insert(reason);
    answer
}

/// The trailers of a call that fails after its response began.
#[must_use]
pub fn trailers(fault: Fault) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if fault.into_status(DOMAIN).add_header(&mut trailers).is_err() {
        // An error text that no header can carry; the code alone is still worth sending.
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from_static("13"));
    }
    trailers
}

/// The code in headers or trailers, if they have one.
pub(crate) fn code_of(headers: &HeaderMap) -> Option<Code> {
    let value = headers.get(Status::GRPC_STATUS)?;
    Some(Code::from_bytes(value.as_bytes()))
}
