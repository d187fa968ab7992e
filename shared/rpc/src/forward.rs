//! A call that another process serves: its client span, from the first attempt to the end of the
//! response, and the statistics in the response.

use http::HeaderMap;
use tonic::Code;
use tracing::{Span, debug_span, field::Empty};

use crate::call_statistics::StatisticsRecorder;
use crate::layer::methods::Method;
use crate::layer::{Request, code_of};
use crate::status::code_name;
use crate::{propagation, semconv};

/// See the module. Ends when it is dropped; without a code by then, the client disconnected.
pub(crate) struct Forward {
    /// The span of the call.
    pub(crate) span: Span,
    recorder: StatisticsRecorder,
    code: Option<Code>,
}

impl Forward {
    /// Prepares a request for another process: sets the parent span, and requests statistics if
    /// they are recorded here.
    pub(crate) fn start(request: &mut Request, host: &str, port: Option<u16>) -> Self {
        let recorder = StatisticsRecorder::of(request.extensions());
        recorder.forward_request(request.headers_mut());
        let span = span(request, host, port);
        if span.is_disabled() {
            propagation::inject_current(request.headers_mut());
        } else {
            propagation::inject(&span, request.headers_mut());
        }
        Self { span, recorder, code: None }
    }

    /// Records the outcome in the headers or trailers of the response, and removes what is
    /// internal.
    pub(crate) fn answered(&mut self, headers: &mut HeaderMap) {
        self.recorder.take(headers);
        if let Some(code) = code_of(headers) {
            self.code = Some(code);
        }
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        if self.span.is_disabled() {
            return;
        }
        let code = self.code.unwrap_or(Code::Cancelled);
        let name = code_name(code);
        self.span.record(semconv::RPC_STATUS, name);
        // To a client of a call, every code but OK is an error.
        if code != Code::Ok {
            self.span.record(semconv::ERROR_TYPE, name);
            self.span.record(semconv::SPAN_STATUS, semconv::SPAN_ERROR);
        }
    }
}

fn span(request: &Request, host: &str, port: Option<u16>) -> Span {
    let method = request.extensions().get::<Method>();
    let label = method.map_or("", |method| &*method.label);
    if !propagation::is_sampled() {
        return Span::none();
    }
    debug_span!(
        target: semconv::SPAN_TARGET,
        "forward",
        otel.name = label,
        otel.kind = "client",
        otel.status_code = Empty,
        { semconv::RPC_SYSTEM } = semconv::GRPC,
        { semconv::RPC_METHOD } = label,
        { semconv::RPC_STATUS } = Empty,
        { semconv::ERROR_TYPE } = Empty,
        { semconv::SERVER_ADDRESS } = host,
        { semconv::SERVER_PORT } = port.map(i64::from),
    )
}
