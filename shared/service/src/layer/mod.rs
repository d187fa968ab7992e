//! The layers of a call, one per file, each over HTTP requests that carry gRPC. A process puts them
//! together in the order it writes them; none knows its neighbours.
//!
//! Every layer answers in gRPC: a refusal is a response, never a transport error. The services
//! below are ready at any time, so no layer queues.

pub mod admission;
pub mod body_bytes;
mod call;
pub mod deadline;
pub mod early;
pub mod facts;
pub mod frame;
mod framing;
mod instruments;
pub mod leave;
pub mod message_size;
pub mod methods;
pub mod panic;
pub mod passage;
pub mod trace;

#[cfg(test)]
mod tests;

use std::{convert::Infallible, future::Future, pin::Pin};

use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::{Code, Status, body::Body};
use tower::util::BoxCloneSyncService;

use crate::fault::Fault;

/// A gRPC call as HTTP.
pub type Request = http::Request<Body>;

/// The answer of a gRPC call as HTTP.
pub type Response = http::Response<Body>;

/// The future of an answer. Dropping it stops the work on the call.
pub type Answer = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Any service of calls, its type forgotten.
pub type CallService = BoxCloneSyncService<Request, Response, Infallible>;

/// The headers of an answer that tell how its call ended; in trailers, where a message came first.
pub const STATUS_HEADERS: [HeaderName; 3] =
    [Status::GRPC_STATUS, Status::GRPC_MESSAGE, Status::GRPC_STATUS_DETAILS];

/// The answer of a call that is refused. Its extensions carry the reason, for the metrics.
#[must_use]
pub fn refusal(fault: Fault) -> Response {
    let reason = fault.reason;
    let mut answer: Response = Status::from(fault).into_http();
    answer.extensions_mut().insert(reason);
    answer
}

/// The trailers of a call that fails after its answer began.
#[must_use]
pub fn trailers(fault: Fault) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if Status::from(fault).add_header(&mut trailers).is_err() {
        // A message that no header can carry; the code alone is still worth sending.
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from_static("13"));
    }
    trailers
}

/// The code in headers or trailers, where it is there.
pub(crate) fn code_of(headers: &HeaderMap) -> Option<Code> {
    let value = headers.get(Status::GRPC_STATUS)?;
    Some(Code::from_bytes(value.as_bytes()))
}
