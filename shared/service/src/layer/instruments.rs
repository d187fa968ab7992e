//! The metrics of calls. The labels of each method and code are resolved once, at their first use,
//! so that a call costs no look-up by text.

use std::sync::{Arc, OnceLock};

use opentelemetry::{
    KeyValue,
    metrics::{BoundHistogram, BoundUpDownCounter, Counter, Histogram, Meter, UpDownCounter},
};
use tonic::Code;
use tracing::Span;

use super::methods::{Method, Methods};
use crate::{
    exemplar::{Exemplars, Series},
    fault::{Reason, code_name, reason_name},
    semconv,
};

/// How many codes gRPC has.
const CODES: usize = 17;

/// The metrics of calls, for the methods of the contract.
#[derive(Debug)]
pub(super) struct Instruments {
    duration: Histogram<f64>,
    exemplars: Exemplars,
    request_size: Histogram<u64>,
    response_size: Histogram<u64>,
    active: BoundUpDownCounter<i64>,
    rejected: Counter<u64>,
    methods: Box<[OfMethod]>,
}

/// The metrics of one method. Methods without calls are not reported.
#[derive(Debug, Default)]
struct OfMethod {
    request_size: OnceLock<BoundHistogram<u64>>,
    response_size: OnceLock<BoundHistogram<u64>>,
    by_code: [OnceLock<OfCode>; CODES],
}

/// The metrics of one method that ended with one code.
#[derive(Debug)]
struct OfCode {
    duration: BoundHistogram<f64>,
    exemplars: Arc<Series>,
}

impl Instruments {
    pub(super) fn new(meter: &Meter, methods: &Methods, exemplars: Exemplars) -> Self {
        let active: UpDownCounter<i64> = semconv::active_calls(meter);
        Self {
            duration: semconv::CALL_DURATION.of_fractions(meter),
            exemplars,
            request_size: semconv::REQUEST_SIZE.of_counts(meter),
            response_size: semconv::RESPONSE_SIZE.of_counts(meter),
            active: active.bind(&[]),
            rejected: semconv::rejected_calls(meter),
            methods: (0..methods.count()).map(|_| OfMethod::default()).collect(),
        }
    }

    pub(super) fn started(&self) {
        self.active.add(1);
    }

    /// The recorder of request bytes.
    pub(super) fn request_size(&self, method: &Method) -> Option<BoundHistogram<u64>> {
        let of_method = self.methods.get(method.index)?;
        Some(of_method.request_size.get_or_init(|| sized(&self.request_size, method)).clone())
    }

    /// Records the bytes of a completed response.
    pub(super) fn answered(&self, method: &Method, bytes: u64) {
        if let Some(of_method) = self.methods.get(method.index) {
            let size = of_method.response_size.get_or_init(|| sized(&self.response_size, method));
            size.record(bytes);
        }
    }

    /// Records the end of a call: its code, and its time in seconds.
    pub(super) fn ended(&self, method: &Method, code: Code, seconds: f64, span: &Span) {
        self.active.add(-1);
        let of_method = self.methods.get(method.index);
        if let Some(bound_metrics) =
            of_method.and_then(|of_method| of_method.by_code.get(code as usize))
        {
            let of_code = bound_metrics.get_or_init(|| self.of_code(method, code));
            of_code.duration.record(seconds);
            of_code.exemplars.offer(seconds, span);
        }
    }

    /// Counts a call that a layer rejected.
    pub(super) fn rejected(&self, reason: Reason) {
        let reason = KeyValue::new(semconv::REJECTION_REASON, reason_name(reason));
        self.rejected.add(1, &[reason]);
    }

    fn of_code(&self, method: &Method, code: Code) -> OfCode {
        let name = code_name(code);
        let mut labels = vec![
            KeyValue::new(semconv::RPC_SYSTEM, semconv::GRPC),
            KeyValue::new(semconv::RPC_METHOD, Arc::clone(&method.label)),
            KeyValue::new(semconv::RPC_STATUS, name),
        ];
        if is_error(code) {
            labels.push(KeyValue::new(semconv::ERROR_TYPE, name));
        }
        let exemplars = self.exemplars.series(&semconv::CALL_DURATION, &labels);
        OfCode { duration: self.duration.bind(&labels), exemplars }
    }
}

fn sized(size: &Histogram<u64>, method: &Method) -> BoundHistogram<u64> {
    size.bind(&[KeyValue::new(semconv::RPC_METHOD, Arc::clone(&method.label))])
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
