//! Metrics of what the store has: counted now and then, since a collection must not wait for a scan.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry::metrics::Meter;
use trestle_model::fault::Fault;
use trestle_rpc::semconv::Described;
use trestle_runtime::task::Task;

/// How often it is counted.
pub(crate) const EVERY: Duration = Duration::from_secs(15);
/// Most rows that are counted; the metric stays there.
const ROWS_MAX: usize = 100_000;
/// The value before the first count.
const UNKNOWN: u64 = u64::MAX;

type Counted = Pin<Box<dyn Future<Output = Result<usize, Fault>> + Send>>;

/// A task that counts, and reports the last count as `metric`.
pub(crate) fn task(
    metric: Described,
    meter: &Meter,
    count: impl Fn(usize) -> Counted + Send + 'static,
) -> Task {
    let last = Arc::new(AtomicU64::new(UNKNOWN));
    let reported = Arc::clone(&last);
    let gauge = meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
    let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
        match reported.load(Ordering::Relaxed) {
            UNKNOWN => {}
            count => observer.observe(count, &[]),
        }
    });
    let _ = gauge.build();
    Task::new(metric.name, EVERY, move || {
        let (last, counted) = (Arc::clone(&last), count(ROWS_MAX));
        async move {
            let rows = u64::try_from(counted.await?).unwrap_or(UNKNOWN);
            last.store(rows, Ordering::Relaxed);
            Ok(false)
        }
    })
}
