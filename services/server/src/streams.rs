//! The metrics of streams of log records.

use opentelemetry::metrics::Meter;
use trestle_log::{LogRole, StreamTotals};
use trestle_rpc::semconv;
use trestle_runtime::task::Task;

use crate::measured::{Measured, point};

/// The task that measures the streams of a role; the metrics are on `meter`.
pub(crate) fn measured(log: &LogRole, meter: &Meter) -> Task {
    let measured = Measured::<StreamTotals>::default();
    measured.observe(meter, semconv::STREAMS, |totals| point(totals.streams as f64));
    measured.observe(meter, semconv::UNSEALED_BYTES, |totals| point(totals.unsealed_bytes as f64));
    measured.observe(meter, semconv::SEAL_DELAY, |totals| point(totals.seal_delay.as_secs_f64()));
    measured.observe(meter, semconv::SEGMENTS, |totals| point(totals.segments as f64));
    measured.observe(meter, semconv::SEGMENT_BYTES, |totals| point(totals.segment_bytes as f64));
    measured
        .observe(meter, semconv::DAMAGED_SEGMENTS, |totals| point(totals.damaged_segments as f64));
    let log = log.clone();
    measured.task("log-totals", move || {
        let log = log.clone();
        async move { log.totals().await }
    })
}
