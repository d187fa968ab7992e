//! The metrics of calls. The labels of each method, protocol and code are resolved once, at their first use,
//! so that a call costs no look-up by text, and what never occurred has no series.

use std::sync::{Arc, OnceLock};

use opentelemetry::{
    KeyValue,
    metrics::{BoundHistogram, BoundUpDownCounter, Counter, Histogram, Meter, UpDownCounter},
};
use tonic::Code;
use tracing::Span;

use super::methods::{Method, Methods};
use crate::call_protocol::CallProtocol;
use crate::exemplar::{Exemplars, Series};
use crate::semconv::{self, Distribution};
use crate::status::code_name;
use trestle_model::fault::{Reason, reason_name};

/// How many codes gRPC has.
const CODES: usize = 17;

/// The metrics of calls, for the methods of the contract.
#[derive(Debug)]
pub(super) struct Instruments {
    duration: Histogram<f64>,
    unary: Histogram<f64>,
    exemplars: Exemplars,
    request_size: Histogram<u64>,
    response_size: Histogram<u64>,
    active: UpDownCounter<i64>,
    active_by_protocol: [OnceLock<BoundUpDownCounter<i64>>; CallProtocol::COUNT],
    rejected: Counter<u64>,
    methods: Box<[OfMethod]>,
    is_by_method: bool,
}

/// The metrics of one method, by protocol.
type OfMethod = [OnceLock<Box<OfProtocol>>; CallProtocol::COUNT];

/// The metrics of one method in one protocol.
#[derive(Debug)]
struct OfProtocol {
    request_size: BoundHistogram<u64>,
    response_size: BoundHistogram<u64>,
    /// Of its service; none where calls of the method may last as long as their clients require.
    unary: Option<ExemplarHistogram>,
    by_code: [OnceLock<ExemplarHistogram>; CODES],
}

/// A histogram with its exemplars.
#[derive(Debug)]
struct ExemplarHistogram {
    histogram: BoundHistogram<f64>,
    exemplars: Arc<Series>,
}

impl ExemplarHistogram {
    fn record(&self, seconds: f64, span: &Span) {
        self.histogram.record(seconds);
        self.exemplars.offer(seconds, span);
    }
}

impl Instruments {
    /// Buckets of durations and sizes are of each method only with `is_by_method`: they are most of the series.
    pub(super) fn new(
        meter: &Meter,
        methods: &Methods,
        exemplars: Exemplars,
        is_by_method: bool,
    ) -> Self {
        let of = |metric| detailed(metric, is_by_method);
        Self {
            duration: of(semconv::CALL_DURATION).of_fractions(meter),
            unary: semconv::UNARY_DURATION.of_fractions(meter),
            exemplars,
            request_size: of(semconv::REQUEST_SIZE).of_counts(meter),
            response_size: of(semconv::RESPONSE_SIZE).of_counts(meter),
            active: semconv::active_calls(meter),
            active_by_protocol: Default::default(),
            rejected: semconv::rejected_calls(meter),
            methods: (0..methods.count()).map(|_| OfMethod::default()).collect(),
            is_by_method,
        }
    }

    pub(super) fn started(&self, protocol: CallProtocol) {
        self.add_active(protocol, 1);
    }

    /// The recorder of request bytes.
    pub(super) fn request_size(
        &self,
        method: &Method,
        protocol: CallProtocol,
    ) -> Option<BoundHistogram<u64>> {
        Some(self.of(method, protocol)?.request_size.clone())
    }

    /// Records the bytes of a completed response.
    pub(super) fn answered(&self, method: &Method, protocol: CallProtocol, bytes: u64) {
        if let Some(metrics) = self.of(method, protocol) {
            metrics.response_size.record(bytes);
        }
    }

    /// Records the end of a call: its code, and its time in seconds.
    pub(super) fn ended(
        &self,
        (method, protocol): (&Method, CallProtocol),
        code: Code,
        seconds: f64,
        span: &Span,
    ) {
        self.add_active(protocol, -1);
        let Some(metrics) = self.of(method, protocol) else { return };
        if let Some(unary) = &metrics.unary {
            unary.record(seconds, span);
        }
        if let Some(of_code) = metrics.by_code.get(code as usize) {
            let of_code = of_code.get_or_init(|| self.of_code(method, protocol, code));
            of_code.record(seconds, span);
        }
    }

    /// Counts a call that a layer rejected.
    pub(super) fn rejected(&self, reason: Reason, protocol: CallProtocol) {
        let reason = KeyValue::new(semconv::REJECTION_REASON, reason_name(reason));
        self.rejected.add(1, &[reason, label(protocol)]);
    }

    fn add_active(&self, protocol: CallProtocol, change: i64) {
        if let Some(active) = self.active_by_protocol.get(protocol as usize) {
            active.get_or_init(|| self.active.bind(&[label(protocol)])).add(change);
        }
    }

    fn of(&self, method: &Method, protocol: CallProtocol) -> Option<&OfProtocol> {
        let of_protocol = self.methods.get(method.index)?.get(protocol as usize)?;
        Some(of_protocol.get_or_init(|| Box::new(self.of_protocol(method, protocol))))
    }

    fn of_protocol(&self, method: &Method, protocol: CallProtocol) -> OfProtocol {
        let service = || KeyValue::new(semconv::RPC_SERVICE, service_of(method));
        // The service in both cases, so that one panel fits both.
        let mut labels = vec![service(), label(protocol)];
        if self.is_by_method {
            labels.push(KeyValue::new(semconv::RPC_METHOD, Arc::clone(&method.label)));
        }
        let unary = (!method.streams && !method.waits).then(|| {
            let exemplars = self.exemplars.series(&semconv::UNARY_DURATION, &[service()]);
            ExemplarHistogram { histogram: self.unary.bind(&[service()]), exemplars }
        });
        OfProtocol {
            request_size: self.request_size.bind(&labels),
            response_size: self.response_size.bind(&labels),
            unary,
            by_code: Default::default(),
        }
    }

    fn of_code(&self, method: &Method, protocol: CallProtocol, code: Code) -> ExemplarHistogram {
        let name = code_name(code);
        let mut labels = vec![
            KeyValue::new(semconv::RPC_SYSTEM, semconv::GRPC),
            KeyValue::new(semconv::RPC_METHOD, Arc::clone(&method.label)),
            KeyValue::new(semconv::RPC_STATUS, name),
            label(protocol),
        ];
        if is_error(code) {
            labels.push(KeyValue::new(semconv::ERROR_TYPE, name));
        }
        let metric = detailed(semconv::CALL_DURATION, self.is_by_method);
        let exemplars = self.exemplars.series(&metric, &labels);
        ExemplarHistogram { histogram: self.duration.bind(&labels), exemplars }
    }
}

fn detailed(metric: Distribution, is_by_method: bool) -> Distribution {
    if is_by_method { metric } else { metric.without_buckets() }
}

fn label(protocol: CallProtocol) -> KeyValue {
    KeyValue::new(semconv::PROTOCOL, protocol.label())
}

/// The full name of the service of a method; of unknown ones their label.
fn service_of(method: &Method) -> String {
    method.label.split('/').next().unwrap_or_default().to_owned()
}

/// Whether a code is a server error by the OpenTelemetry conventions for gRPC.
pub(super) fn is_error(code: Code) -> bool {
    let of_server = [Code::Unknown, Code::DeadlineExceeded, Code::Unimplemented];
    of_server.contains(&code) || needs_operator(code)
}

/// Whether a code means that the operator of the server, not the client, has to act.
pub(super) fn needs_operator(code: Code) -> bool {
    matches!(code, Code::Unknown | Code::Internal | Code::Unavailable | Code::DataLoss)
}
