//! The metric of the hottest partitions.

use std::sync::Arc;

use opentelemetry::{KeyValue, metrics::Meter};
use trestle_rpc::semconv;

use super::Throttle;

/// Ranks that the metric has, which bounds its label.
const RANKS: usize = 10;

/// Reports the rates of the hottest partitions whenever metrics are collected; a rank without a partition
/// has none. Holds the throttle weakly: metrics keep no service alive.
pub(crate) fn observe(throttle: &Arc<Throttle>, meter: &Meter) {
    let (metric, throttle) = (semconv::HOT_PARTITIONS, Arc::downgrade(throttle));
    let gauge = meter.f64_observable_gauge(metric.name).with_unit(metric.unit);
    let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
        let Some(throttle) = throttle.upgrade() else { return };
        let hottest = throttle.hottest(None, RANKS);
        for (rank, hot) in (1_i64..).zip(&hottest) {
            observer.observe(hot.per_second, &[KeyValue::new(semconv::PARTITION_RANK, rank)]);
        }
    });
    let _ = gauge.build();
}
