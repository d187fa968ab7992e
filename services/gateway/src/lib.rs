//! The gateway: the layers of every call from outside, in front of the service that owns the
//! data.
//!
//! It enforces deadlines, sheds load, authenticates the caller, and picks the service by the path.
//! It owns no data and decodes no message: bodies and trailers pass as they are, but for OTLP in JSON. [`cors()`] runs
//! in front of it all and serves browsers.

mod cors;
mod grpc_only;
mod otlp_http;
mod plain_answer;
mod route;
mod short_circuit;
mod web;

use std::{convert::Infallible, time::Duration};

use tower::{Service, ServiceBuilder};
use trestle_identity::credentials::{self, Identity};
use trestle_rpc::layer::admission::AdmissionLayer;
use trestle_rpc::layer::body_bytes::{BodyBounds, BodyBytesLayer};
use trestle_rpc::layer::deadline::DeadlineLayer;
use trestle_rpc::layer::panic::PanicLayer;
use trestle_rpc::layer::trace::TraceLayer;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture};

use crate::otlp_http::{JsonTranslation, MessageFraming};

pub use cors::{AccountNames, CorsStore, cors};
pub use grpc_only::GrpcOnly;
pub use otlp_http::http_paths;
pub use route::Routes;
pub use trestle_rpc::layer::trace::CallTelemetry;

/// The bounds of calls.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    /// Most calls at a time; of these, at most half are streams.
    pub calls_max: usize,
    /// Most bytes that bodies of calls hold at a time.
    pub body_bytes_max: usize,
    /// Largest message of a request, in bytes, after decompression. A service may have a smaller one.
    pub message_bytes_max: usize,
    /// Longest time until a request of one message has arrived.
    pub request_within_max: Duration,
    /// Longest time until a response begins.
    pub answer_within_max: Duration,
}

impl CallLimits {
    /// The bounds of the bodies of calls.
    #[must_use]
    pub fn bodies(&self) -> BodyBounds {
        let Self { body_bytes_max, message_bytes_max, request_within_max, .. } = *self;
        let bounds = BodyBounds::of_services(body_bytes_max, request_within_max);
        BodyBounds { message_bytes_max, ..bounds }
    }
}

/// The layers of every call from outside, in any protocol. Clones, and the
/// services behind them, share one count of calls, one budget of bytes, and one set of metrics.
#[derive(Debug, Clone)]
pub struct IngressStack {
    trace: TraceLayer,
    deadline: DeadlineLayer,
    admission: AdmissionLayer,
    bytes: BodyBytesLayer,
    message_bytes_max: usize,
}

impl IngressStack {
    /// A stack with these bounds, whose calls are recorded.
    #[must_use]
    pub fn new(limits: CallLimits, observe: CallTelemetry) -> Self {
        let methods = observe.methods.clone();
        Self {
            trace: TraceLayer::new(observe),
            deadline: DeadlineLayer::new(limits.answer_within_max, methods.clone()),
            admission: AdmissionLayer::new(limits.calls_max, methods.clone()),
            bytes: BodyBytesLayer::new(limits.bodies(), methods),
            message_bytes_max: limits.message_bytes_max,
        }
    }

    /// The stack before `service`, which still has to authenticate the caller.
    pub fn before<S>(&self, service: S) -> CallService
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
        S: Clone + Send + Sync + 'static,
    {
        let stack = ServiceBuilder::new()
            // First, so that it sees every call and the final response.
            .layer(self.trace.clone())
            // Before anything that could fail, and after what has to record the failure.
            .layer(PanicLayer::default())
            // Before admission: a call whose deadline passed must not count.
            .layer(self.deadline.clone())
            // Before credentials: shedding has to be the cheapest work under load.
            .layer(self.admission.clone())
            // After the count of calls, which is cheaper still; before a body is read.
            .layer(self.bytes.clone())
            .service(service);
        CallService::new(stack)
    }
}

/// The gateway before `routes`: the entry of gRPC calls from outside.
#[must_use]
pub fn gateway(stack: &IngressStack, routes: Routes, identity: Identity) -> CallService {
    let service = ServiceBuilder::new()
        // Authenticates the caller; nothing below sees credentials.
        .layer(credentials::layer(identity))
        // Behind what bounds and authenticates: it reads bodies.
        .layer(MessageFraming::layer(stack.message_bytes_max))
        // Right after it: a message of JSON is translated when it is framed.
        .layer(JsonTranslation::layer(stack.message_bytes_max))
        // Last: the call goes to the upstream.
        .service(routes);
    stack.before(service)
}
