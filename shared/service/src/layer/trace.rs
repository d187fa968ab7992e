//! Makes each call visible: a span in the caller's trace, a request id, a duration, and a log line
//! when the server is at fault.
//!
//! Spans exist only when something collects them; without, this layer costs a timestamp, an id and
//! one histogram entry. It is the outermost layer, so what it records is what the client sees.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Frame, SizeHint};
use opentelemetry::{
    KeyValue,
    metrics::{Histogram, Meter, UpDownCounter},
};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};
use tracing::{Instrument as _, Span, debug_span, field::Empty, warn};
use uuid::Uuid;

use super::{Answer, Request, Response, code_of, methods::Methods};
use crate::{propagation, semconv};

/// The header of a request id, on requests and answers.
pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest request id that is taken from a client, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Makes calls visible.
#[derive(Debug, Clone)]
pub struct TraceLayer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    methods: Methods,
    duration: Histogram<f64>,
    active: UpDownCounter<i64>,
    random: fn() -> u128,
}

impl TraceLayer {
    /// Records into `meter`, with labels out of `methods`; `random` makes request ids.
    #[must_use]
    pub fn new(meter: &Meter, methods: Methods, random: fn() -> u128) -> Self {
        let shared = Shared {
            methods,
            duration: semconv::call_duration(meter),
            active: semconv::active_calls(meter),
            random,
        };
        Self { shared: Arc::new(shared) }
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;

    fn layer(&self, inner: S) -> Trace<S> {
        let shared = Arc::clone(&self.shared);
        Trace { inner, shared }
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Trace<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request> for Trace<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Answer {
        let id = request_id(&mut request, self.shared.random);
        let method = self.shared.methods.label(request.uri().path());
        let span = server_span(&request, &method, &id);
        let answer = span.in_scope(|| self.inner.call(request));
        let mut call = Call::start(Arc::clone(&self.shared), method, id.clone(), span.clone());
        let answering = async move {
            let mut answer = answer.await?;
            answer.headers_mut().insert(REQUEST_ID_HEADER, id);
            call.ended_by(answer.headers());
            Ok(answer.map(|body| Body::new(Traced { body, call })))
        };
        if span.is_disabled() { Box::pin(answering) } else { Box::pin(answering.instrument(span)) }
    }
}

/// The id of a request, which it carries from here on.
fn request_id(request: &mut Request, random: fn() -> u128) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID_HEADER);
    let visible = |id: &&HeaderValue| {
        let id = id.as_bytes();
        !id.is_empty() && id.len() <= REQUEST_ID_BYTES_MAX && id.iter().all(u8::is_ascii_graphic)
    };
    if let Some(id) = given.filter(visible) {
        return id.clone();
    }
    let id = uuid::Builder::from_random_bytes(random().to_ne_bytes()).into_uuid();
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    let id = Uuid::hyphenated(id).encode_lower(&mut text);
    let id = HeaderValue::from_str(id).expect("a uuid is letters, digits and hyphens");
    request.headers_mut().insert(REQUEST_ID_HEADER, id.clone());
    id
}

fn server_span(request: &Request, method: &str, id: &HeaderValue) -> Span {
    let span = debug_span!(
        target: semconv::SPAN_TARGET,
        parent: None,
        "call",
        otel.name = method,
        otel.kind = "server",
        otel.status_code = Empty,
        { semconv::RPC_SYSTEM } = "grpc",
        { semconv::RPC_METHOD } = method,
        { semconv::RPC_STATUS } = Empty,
        { semconv::REQUEST_ID } = id.to_str().unwrap_or_default(),
    );
    if !span.is_disabled() {
        propagation::adopt(&span, request.headers());
    }
    span
}

/// A call from its start to its end, recorded when it is dropped.
struct Call {
    shared: Arc<Shared>,
    method: Arc<str>,
    id: HeaderValue,
    span: Span,
    started: Instant,
    /// The code that ended it; none means that the client went away.
    code: Option<Code>,
    /// The text of the failure, for the log.
    message: Option<HeaderValue>,
}

impl Call {
    fn start(shared: Arc<Shared>, method: Arc<str>, id: HeaderValue, span: Span) -> Self {
        shared.active.add(1, &[]);
        Self { shared, method, id, span, started: Instant::now(), code: None, message: None }
    }

    /// Notes how the call ended, where these headers or trailers say so.
    fn ended_by(&mut self, headers: &HeaderMap) {
        if let Some(code) = code_of(headers) {
            self.code = Some(code);
            self.message = headers.get(Status::GRPC_MESSAGE).cloned();
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let code = self.code.unwrap_or(Code::Cancelled);
        let name = code_name(code);
        self.shared.active.add(-1, &[]);
        let labels = [
            KeyValue::new(semconv::RPC_SYSTEM, "grpc"),
            KeyValue::new(semconv::RPC_METHOD, Arc::clone(&self.method)),
            KeyValue::new(semconv::RPC_STATUS, name),
        ];
        let took = self.started.elapsed();
        self.shared.duration.record(took.as_secs_f64(), &labels);
        self.span.record(semconv::RPC_STATUS, name);
        if is_servers_fault(code) {
            self.span.record("otel.status_code", "ERROR");
            let message = self.message.as_ref().map(HeaderValue::as_bytes);
            let message = String::from_utf8_lossy(message.unwrap_or_default());
            let id = self.id.to_str().unwrap_or_default();
            let (method, took_us) = (&*self.method, took.as_micros());
            let span = self.span.enter();
            warn!(request_id = id, method, code = name, took_us, %message, "call failed");
            drop(span);
        }
    }
}

/// Whether a code says that the server, not the client, has to do something about it.
fn is_servers_fault(code: Code) -> bool {
    matches!(code, Code::Unknown | Code::Internal | Code::Unavailable | Code::DataLoss)
}

/// The name of a code as telemetry writes it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// A body that keeps its call open, and its work inside the span.
struct Traced {
    body: Body,
    call: Call,
}

impl http_body::Body for Traced {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let frame = {
            let _inside = this.call.span.enter();
            std::task::ready!(Pin::new(&mut this.body).poll_frame(cx))
        };
        match &frame {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_ref() {
                    this.call.ended_by(trailers);
                }
            }
            Some(Err(status)) => this.call.code = Some(status.code()),
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
