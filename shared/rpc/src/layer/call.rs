//! One call from its start to its end, which is recorded when it is dropped: that covers responses
//! that complete, responses that fail, and clients that disconnect.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use http::{HeaderMap, HeaderValue, uri::PathAndQuery};
use opentelemetry::Context;
use tonic::{Code, Status};
use tracing::{Span, debug, warn};

use super::{
    Request, code_of, error_domain,
    instruments::{is_error, needs_operator},
    methods::Method,
    trace::TraceShared,
};
use crate::access::{AccessLog, AccessLogLine, reason_of};
use crate::call_protocol::CallProtocol;
use crate::call_statistics::StatisticsRecorder;
use crate::peer::Peer;
use crate::semconv;
use crate::status::code_name;
use trestle_model::fault::{Reason, reason_name};

/// The trace context of the work on a call.
#[derive(Debug, Clone)]
pub(super) enum TraceScope {
    /// In a span.
    Span(Span),
    /// In a trace that this process does not sample; logs name it.
    Unsampled(Context),
    /// In no trace.
    None,
}

impl TraceScope {
    /// Runs work in this context.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Span(span) => span.in_scope(work),
            Self::Unsampled(context) => {
                let _inside = context.clone().attach();
                work()
            }
            Self::None => work(),
        }
    }
}

/// What the access log needs of a request; nothing if it is disabled.
#[derive(Debug, Default)]
pub(super) struct AccessContext {
    recorder: StatisticsRecorder,
    peer: Option<SocketAddr>,
}

impl AccessContext {
    /// Starts to record statistics of a request if its line will be written.
    pub(super) fn of(request: &mut Request, access: &AccessLog) -> Self {
        if access.is_off() {
            return Self::default();
        }
        let recorder = StatisticsRecorder::enabled();
        request.extensions_mut().insert(recorder.clone());
        let peer = request.extensions().get::<Peer>();
        Self { recorder, peer: peer.map(|peer| SocketAddr::new(peer.ip(), peer.address.port())) }
    }
}

/// See the module.
pub(super) struct ObservedCall {
    pub(super) id: HeaderValue,
    pub(super) scope: TraceScope,
    shared: Arc<TraceShared>,
    method: Method,
    protocol: CallProtocol,
    /// The path of the request, for the domain of an error.
    pub(super) path: Option<PathAndQuery>,
    access_context: AccessContext,
    started: Instant,
    /// Bytes of the response so far.
    bytes: u64,
    /// The code that ended it; none means that the client disconnected.
    code: Option<Code>,
    /// The text of the error, for the log.
    message: Option<HeaderValue>,
    /// The reason of the error, for the access log.
    details: Option<HeaderValue>,
}

impl ObservedCall {
    pub(super) fn start(
        shared: Arc<TraceShared>,
        (method, protocol): (Method, CallProtocol),
        id: HeaderValue,
        scope: TraceScope,
        access_context: AccessContext,
    ) -> Self {
        shared.instruments.started(protocol);
        let started = Instant::now();
        let (code, message, details) = (None, None, None);
        let path = None;
        Self {
            id,
            scope,
            shared,
            method,
            protocol,
            path,
            access_context,
            started,
            bytes: 0,
            code,
            message,
            details,
        }
    }

    /// Records the outcome of the call, if these headers or trailers contain it, and sets the domain of
    /// its error.
    pub(super) fn ended_by(&mut self, headers: &mut HeaderMap) {
        error_domain::set(headers, self.path.as_ref());
        if let Some(code) = code_of(headers) {
            self.code = Some(code);
            if code != Code::Ok {
                self.message = headers.get(Status::GRPC_MESSAGE).cloned();
                self.details = headers.get(Status::GRPC_STATUS_DETAILS).cloned();
            }
        }
    }

    /// Records that the response failed midway.
    pub(super) fn broken_by(&mut self, status: &Status) {
        self.code = Some(status.code());
    }

    /// Records that a layer rejected the call.
    pub(super) fn rejected(&self, reason: Reason) {
        self.shared.instruments.rejected(reason, self.protocol);
    }

    /// Records bytes of the response.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    fn record(&self) {
        let code = self.code.unwrap_or(Code::Cancelled);
        let name = code_name(code);
        let took = self.started.elapsed();
        let none = Span::none();
        let span = if let TraceScope::Span(span) = &self.scope { span } else { &none };
        let instruments = &self.shared.instruments;
        instruments.answered(&self.method, self.protocol, self.bytes);
        instruments.ended((&self.method, self.protocol), code, took.as_secs_f64(), span);
        span.record(semconv::RPC_STATUS, name);
        if is_error(code) {
            span.record(semconv::ERROR_TYPE, name);
            span.record(semconv::SPAN_STATUS, semconv::SPAN_ERROR);
        }
        let method = &*self.method.label;
        if needs_operator(code) && !is_of_upload(self.details.as_ref()) {
            let error = self.message.as_ref().map(decoded).unwrap_or_default();
            let id = self.id.to_str().unwrap_or_default();
            let took_us = took.as_micros();
            match self.shared.failures.may_log((self.method.index, code), Instant::now()) {
                // A store that stopped fails every write.
                Some(omitted) => warn!(
                    request_id = id,
                    method,
                    code = name,
                    took_us,
                    error,
                    omitted,
                    "call failed"
                ),
                None => {
                    debug!(request_id = id, method, code = name, took_us, error, "call failed");
                }
            }
        }
        if !self.shared.access.is_off() {
            self.shared.access.write(&AccessLogLine {
                request_id: self.id.to_str().unwrap_or_default(),
                method,
                status: name,
                details: self.details.as_ref(),
                took,
                response_bytes: self.bytes,
                peer: self.access_context.peer,
                statistics: self.access_context.recorder.recorded(),
            });
        }
    }
}

/// Reasons of DATA_LOSS that say that the data which a client sent is not what it states, and not that stored data is
/// damaged.
const OF_UPLOADS: [Reason; 2] = [Reason::Md5Mismatch, Reason::Crc64Mismatch];

/// Whether these are the details of a failure for one of [`OF_UPLOADS`].
pub(super) fn is_of_upload(details: Option<&HeaderValue>) -> bool {
    let reason = details.and_then(reason_of);
    reason.is_some_and(|reason| OF_UPLOADS.into_iter().any(|it| reason == reason_name(it)))
}

/// The text of an error, which headers carry percent-encoded.
fn decoded(message: &HeaderValue) -> String {
    let mut headers = HeaderMap::new();
    headers.insert(Status::GRPC_STATUS, HeaderValue::from_static("2"));
    headers.insert(Status::GRPC_MESSAGE, message.clone());
    let status = Status::from_header_map(&headers);
    status.map(|status| status.message().to_owned()).unwrap_or_default()
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        self.scope.within(|| self.record());
    }
}
