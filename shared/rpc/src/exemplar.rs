//! Exemplars of histograms: for each bucket the last value whose trace is sampled, so that a slow
//! bucket leads to the trace of a slow call.
//!
//! The OpenTelemetry SDK for Rust has a field for exemplars and never fills it, so they are stored
//! here and joined to the metrics when those are read or exported. Bounded: one for each bucket of
//! series whose labels are bounded sets. A value without a trace costs nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use opentelemetry::{KeyValue, trace::TraceContextExt as _};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::semconv::Distribution;
use trestle_model::time::{Clock as _, SystemClock, Ticks};

/// A recorded value, and the trace that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exemplar {
    /// The value, in the unit of its metric.
    pub value: f64,
    /// When it was recorded.
    pub at: Ticks,
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span within it.
    pub span_id: [u8; 8],
}

/// Every exemplar of a process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Exemplars {
    series: Arc<Mutex<ByMetric>>,
}

/// The series of each metric by its name.
type ByMetric = HashMap<&'static str, Vec<Arc<Series>>>;

/// The exemplars of one metric with one set of labels.
#[derive(Debug)]
pub struct Series {
    labels: Vec<KeyValue>,
    bounds: &'static [f64],
    buckets: Mutex<Box<[Option<Exemplar>]>>,
}

impl Exemplars {
    /// The series of a metric with these labels; created if it does not exist.
    pub(crate) fn series(&self, metric: &Distribution, labels: &[KeyValue]) -> Arc<Series> {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let of_metric = all.entry(metric.name).or_default();
        if let Some(series) = of_metric.iter().find(|series| series.labels == labels) {
            return Arc::clone(series);
        }
        let buckets = vec![None; metric.bounds.len() + 1].into_boxed_slice();
        let (labels, buckets) = (labels.to_vec(), Mutex::new(buckets));
        let series = Arc::new(Series { labels, bounds: metric.bounds, buckets });
        of_metric.push(Arc::clone(&series));
        series
    }

    /// The series of the metric `name`, as OpenTelemetry spells it.
    #[must_use]
    pub fn of(&self, name: &str) -> Vec<Arc<Series>> {
        let all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).cloned().unwrap_or_default()
    }

    /// The names of the metrics that have series.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        all.keys().copied().collect()
    }
}

impl Series {
    /// The labels.
    #[must_use]
    pub fn labels(&self) -> &[KeyValue] {
        &self.labels
    }

    /// One slot for each bucket, the one without a bound last.
    #[must_use]
    pub fn buckets(&self) -> Vec<Option<Exemplar>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).to_vec()
    }

    /// Stores `value` as an exemplar if `span` belongs to a sampled trace.
    pub(crate) fn offer(&self, value: f64, span: &Span) {
        if span.is_disabled() {
            return;
        }
        let context = span.context();
        let context = context.span().span_context().clone();
        if context.is_sampled() {
            self.keep(Exemplar {
                value,
                at: SystemClock.now(),
                trace_id: context.trace_id().to_bytes(),
                span_id: context.span_id().to_bytes(),
            });
        }
    }

    fn keep(&self, exemplar: Exemplar) {
        // Upper bounds are included, as in the histograms.
        let bucket = self.bounds.partition_point(|bound| *bound < exemplar.value);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = buckets.get_mut(bucket) {
            *slot = Some(exemplar);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semconv::CALL_DURATION;

    fn exemplar(value: f64) -> Exemplar {
        Exemplar { value, at: SystemClock.now(), trace_id: [1; 16], span_id: [2; 8] }
    }

    #[test]
    fn each_bucket_stores_its_last_value() {
        let exemplars = Exemplars::default();
        let labels = [KeyValue::new("a", "b")];
        let series = exemplars.series(&CALL_DURATION, &labels);

        for value in [0.000_05, 0.000_06, 0.000_07, 11.0] {
            series.keep(exemplar(value));
        }

        let found = exemplars.of(CALL_DURATION.name);
        let buckets = found[0].buckets();
        let values: Vec<_> = buckets.iter().map(|kept| kept.map(|kept| kept.value)).collect();
        assert_eq!(values.len(), CALL_DURATION.bounds.len() + 1);
        assert_eq!((values[0], values[1]), (Some(0.000_05), Some(0.000_07)));
        assert_eq!(values.last(), Some(&Some(11.0)));
        assert_eq!(values.iter().flatten().count(), 3);
    }

    #[test]
    fn the_same_labels_are_the_same_series() {
        let exemplars = Exemplars::default();
        let (one, two) = (KeyValue::new("a", "b"), KeyValue::new("a", "c"));

        let first = exemplars.series(&CALL_DURATION, std::slice::from_ref(&one));
        let again = exemplars.series(&CALL_DURATION, &[one]);
        let other = exemplars.series(&CALL_DURATION, &[two]);

        assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &other));
        assert_eq!(exemplars.of(CALL_DURATION.name).len(), 2);
    }

    #[test]
    fn a_value_without_a_trace_is_no_exemplar() {
        let exemplars = Exemplars::default();
        let series = exemplars.series(&CALL_DURATION, &[]);

        series.offer(1.0, &Span::none());

        assert!(series.buckets().iter().all(Option::is_none));
    }
}
