//! Observability of each call: a span in the caller's trace, a request id, metrics, a line in the
//! access log, and a log line for a server error.
//!
//! Spans exist only for sampled traces; without, this layer costs a timestamp, an id, and an entry
//! in each of four metrics. It is the outermost layer, so it records what the client sees.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderName, HeaderValue};
use http_body::Body as _;
use opentelemetry::{
    context::FutureExt as _,
    metrics::{BoundHistogram, Meter},
};
use tonic::{Code, body::Body};
use tower::Service;
use tracing::{Instrument as _, Span, debug_span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use uuid::Uuid;

use super::{
    Request, Response, ResponseFuture,
    body_wrapper::{BodyPart, BodyWrapper, Next, wrap_body},
    call::{AccessContext, ObservedCall, TraceScope},
    instruments::Instruments,
    methods::{Method, Methods},
    middleware::{Middleware, MiddlewareLayer},
};
use crate::access::AccessLog;
use crate::call_protocol::CallProtocol;
use crate::log_rate::LogRate;
use crate::peer::Peer;
use crate::propagation::{Traces, Tracing};
use crate::semconv;
use trestle_model::fault::{Reason, quoted};

/// The header of a request id, on requests and responses.
pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest request id that is accepted from a client, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// The destinations of the records of calls.
#[derive(Debug, Clone)]
pub struct CallTelemetry {
    /// The meter of the metrics.
    pub meter: Meter,
    /// Which traces are sampled.
    pub traces: Traces,
    /// The methods of the contract, as labels.
    pub methods: Methods,
    /// Generates request ids, and the random numbers for sampling.
    pub random: fn() -> u128,
    /// The writer of the line of each call.
    pub access: AccessLog,
    /// Whether histograms have buckets for each method, and not only for each service.
    pub is_by_method: bool,
}

/// Records calls.
pub type TraceLayer = MiddlewareLayer<Trace>;

/// See the module.
#[derive(Debug, Clone)]
pub struct Trace {
    shared: Arc<TraceShared>,
}

#[derive(Debug)]
pub(super) struct TraceShared {
    pub(super) instruments: Instruments,
    pub(super) access: AccessLog,
    /// Lines of failed calls, by method and code.
    pub(super) failures: LogRate<(usize, Code)>,
    methods: Methods,
    traces: Traces,
    random: fn() -> u128,
}

impl TraceLayer {
    /// Records the calls through it.
    #[must_use]
    pub fn new(observe: CallTelemetry) -> Self {
        let CallTelemetry { meter, traces, methods, random, access, is_by_method } = observe;
        let instruments =
            Instruments::new(&meter, &methods, traces.exemplars.clone(), is_by_method);
        let shared = Arc::new(TraceShared {
            instruments,
            access,
            failures: LogRate::default(),
            methods,
            traces,
            random,
        });
        Self(Trace { shared })
    }
}

impl Middleware for Trace {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let shared = &self.shared;
        let id = request_id(&mut request, shared.random);
        let method = shared.methods.of(request.uri().path());
        let path = request.uri().path();
        let scope = match shared.traces.decide(path, request.headers(), shared.random) {
            Tracing::None => TraceScope::None,
            Tracing::Unsampled(context) => TraceScope::Unsampled(context),
            Tracing::Sampled(parent) => {
                let span = server_span(&request, &method, shared.methods.contains(&method), &id);
                if let Some(parent) = parent {
                    // Fails if no subscriber takes spans; then the call belongs to no trace.
                    let _ = span.set_parent(parent);
                }
                // For the span of the call to another process.
                request.extensions_mut().insert(method.clone());
                TraceScope::Span(span)
            }
        };
        let access_context = AccessContext::of(&mut request, &shared.access);
        let protocol = CallProtocol::of(request.extensions());
        if let Some(size) = shared.instruments.request_size(&method, protocol) {
            request = request.map(|body| wrap_body(body, RequestSize { bytes: 0, size }));
        }
        let mut call = ObservedCall::start(
            Arc::clone(shared),
            (method, protocol),
            id,
            scope.clone(),
            access_context,
        );
        call.path = request.uri().path_and_query().cloned();
        let answer = scope.within(|| inner.call(request));
        let answering = async move {
            let mut answer = answer.await?;
            answer.headers_mut().insert(REQUEST_ID_HEADER, call.id.clone());
            call.ended_by(answer.headers_mut());
            if let Some(reason) = answer.extensions().get::<Reason>() {
                call.rejected(*reason);
            }
            Ok(answer.map(|body| wrap_body(body, call)))
        };
        match scope {
            TraceScope::None => Box::pin(answering),
            TraceScope::Unsampled(context) => Box::pin(answering.with_context(context)),
            TraceScope::Span(span) => Box::pin(answering.instrument(span)),
        }
    }
}

/// The id of a request, which it carries from this layer on.
fn request_id(request: &mut Request, random: fn() -> u128) -> HeaderValue {
    let sent = request.headers().get(REQUEST_ID_HEADER);
    let visible = |id: &&HeaderValue| {
        let id = id.as_bytes();
        !id.is_empty() && id.len() <= REQUEST_ID_BYTES_MAX && id.iter().all(u8::is_ascii_graphic)
    };
    if let Some(id) = sent.filter(visible) {
        return alone(id.clone());
    }
    let id = uuid::Builder::from_random_bytes(random().to_ne_bytes()).into_uuid();
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    let id = Uuid::hyphenated(id).encode_lower(&mut text);
    let id = HeaderValue::from_str(id).expect("a uuid is letters, digits and hyphens");
    let id = alone(id);
    request.headers_mut().insert(REQUEST_ID_HEADER, id.clone());
    id
}

/// The same id, excluded from the HPACK tables of HTTP/2: it never repeats, and would only be compared with those
/// before it and evict headers that repeat.
fn alone(mut id: HeaderValue) -> HeaderValue {
    id.set_sensitive(true);
    id
}

fn server_span(request: &Request, method: &Method, is_method: bool, id: &HeaderValue) -> Span {
    let label = &*method.label;
    let peer = request.extensions().get::<Peer>();
    let address = peer.map(|peer| tracing::field::display(peer.ip()));
    // Signed, because unsigned numbers would be exported as text.
    let port = peer.map(|peer| i64::from(peer.address.port()));
    let path = request.uri().path().trim_start_matches('/');
    let original = (!is_method).then(|| quoted(path).into_owned());
    debug_span!(
        target: semconv::SPAN_TARGET,
        parent: None,
        semconv::SERVER_SPAN,
        otel.name = label,
        otel.kind = "server",
        otel.status_code = Empty,
        { semconv::RPC_SYSTEM } = semconv::GRPC,
        { semconv::RPC_METHOD } = label,
        { semconv::RPC_METHOD_ORIGINAL } = original,
        { semconv::RPC_STATUS } = Empty,
        { semconv::ERROR_TYPE } = Empty,
        { semconv::REQUEST_ID } = id.to_str().unwrap_or_default(),
        { semconv::PEER_ADDRESS } = address,
        { semconv::PEER_PORT } = port,
    )
}

/// The body of a request, whose bytes are recorded when it is dropped.
struct RequestSize {
    bytes: u64,
    size: BoundHistogram<u64>,
}

impl Drop for RequestSize {
    fn drop(&mut self) {
        self.size.record(self.bytes);
    }
}

impl BodyWrapper for RequestSize {
    fn map_part(&mut self, part: BodyPart) -> Next {
        self.bytes += data_bytes(&part);
        Next::Part(part)
    }
}

/// A body keeps its call open, and its work inside the trace.
impl BodyWrapper for ObservedCall {
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        let polled = self.scope.within(|| body.poll_frame(cx));
        Poll::Ready(self.map_part(std::task::ready!(polled)))
    }

    fn map_part(&mut self, mut part: BodyPart) -> Next {
        self.sent(data_bytes(&part));
        match &mut part {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    self.ended_by(trailers);
                }
            }
            Some(Err(status)) => self.broken_by(status),
            None => {}
        }
        Next::Part(part)
    }
}

fn data_bytes(part: &BodyPart) -> u64 {
    let data = part.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
    data.map_or(0, |data| data.len() as u64)
}
