//! Statistics that become metrics when those are collected.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use opentelemetry::{KeyValue, metrics::Meter};
use trestle_rpc::semconv::Described;

/// Integers, each with its labels.
pub(crate) type Counts = Vec<(u64, Vec<KeyValue>)>;

/// A source of statistics that become metrics, such as an engine. It is held weakly, so that metrics keep no store
/// open.
pub(crate) struct ObservedStats<'a, E, S> {
    meter: &'a Meter,
    source: Weak<E>,
    read: fn(&Arc<E>) -> S,
}

impl<'a, E: Send + Sync + 'static, S: 'static> ObservedStats<'a, E, S> {
    /// Reads the statistics of a source at each collection.
    pub(crate) fn new(meter: &'a Meter, source: &Arc<E>, read: fn(&Arc<E>) -> S) -> Self {
        Self { meter, source: Arc::downgrade(source), read }
    }

    fn stats(&self) -> impl Fn() -> Option<S> + Send + Sync + 'static {
        let (source, read) = (Weak::clone(&self.source), self.read);
        move || source.upgrade().map(|source| read(&source))
    }

    /// What there is now.
    pub(crate) fn gauge(&self, metric: Described, read: fn(&S) -> u64) {
        let stats = self.stats();
        let gauge = self.meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            if let Some(stats) = stats() {
                observer.observe(read(&stats), &[]);
            }
        });
        let _ = gauge.build();
    }

    /// What there is now, by labels.
    pub(crate) fn gauges(&self, metric: Described, read: fn(&S) -> Counts) {
        let stats = self.stats();
        let gauge = self.meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            for (value, labels) in stats().as_ref().map(read).unwrap_or_default() {
                observer.observe(value, &labels);
            }
        });
        let _ = gauge.build();
    }

    /// How old something is.
    pub(crate) fn age(&self, metric: Described, read: fn(&S) -> Duration) {
        let stats = self.stats();
        let gauge = self.meter.f64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            if let Some(stats) = stats() {
                observer.observe(read(&stats).as_secs_f64(), &[]);
            }
        });
        let _ = gauge.build();
    }

    /// What happened since the start.
    pub(crate) fn counter(&self, metric: Described, read: fn(&S) -> u64) {
        let stats = self.stats();
        let counter = self.meter.u64_observable_counter(metric.name).with_unit(metric.unit);
        let counter = counter.with_description(metric.help).with_callback(move |observer| {
            if let Some(stats) = stats() {
                observer.observe(read(&stats), &[]);
            }
        });
        let _ = counter.build();
    }

    /// What happened since the start, by labels.
    pub(crate) fn counters(&self, metric: Described, read: fn(&S) -> Counts) {
        let stats = self.stats();
        let counter = self.meter.u64_observable_counter(metric.name).with_unit(metric.unit);
        let counter = counter.with_description(metric.help).with_callback(move |observer| {
            for (value, labels) in stats().as_ref().map(read).unwrap_or_default() {
                observer.observe(value, &labels);
            }
        });
        let _ = counter.build();
    }

    /// How much time something took since the start.
    pub(crate) fn seconds(&self, metric: Described, read: fn(&S) -> Duration) {
        let stats = self.stats();
        let counter = self.meter.f64_observable_counter(metric.name).with_unit(metric.unit);
        let counter = counter.with_description(metric.help).with_callback(move |observer| {
            if let Some(stats) = stats() {
                observer.observe(read(&stats).as_secs_f64(), &[]);
            }
        });
        let _ = counter.build();
    }
}
