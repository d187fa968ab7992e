//! Statistics that become metrics when those are collected.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{AsyncInstrumentBuilder, Meter},
};
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

    /// What there is now.
    pub(crate) fn gauge(&self, metric: Described, read: fn(&S) -> u64) {
        self.gauges(metric, move |stats| vec![(read(stats), Vec::new())]);
    }

    /// What there is now, by labels.
    pub(crate) fn gauges(
        &self,
        metric: Described,
        read: impl Fn(&S) -> Counts + Send + Sync + 'static,
    ) {
        let gauge = self.meter.u64_observable_gauge(metric.name);
        let _ = self.observed(gauge, metric, read).build();
    }

    /// How old something is.
    pub(crate) fn age(&self, metric: Described, read: fn(&S) -> Duration) {
        let gauge = self.meter.f64_observable_gauge(metric.name);
        let _ = self.observed(gauge, metric, move |stats| seconds_of(read(stats))).build();
    }

    /// What happened since the start.
    pub(crate) fn counter(&self, metric: Described, read: fn(&S) -> u64) {
        self.counters(metric, move |stats| vec![(read(stats), Vec::new())]);
    }

    /// What happened since the start, by labels.
    pub(crate) fn counters(
        &self,
        metric: Described,
        read: impl Fn(&S) -> Counts + Send + Sync + 'static,
    ) {
        let counter = self.meter.u64_observable_counter(metric.name);
        let _ = self.observed(counter, metric, read).build();
    }

    /// How much time something took since the start.
    pub(crate) fn seconds(&self, metric: Described, read: fn(&S) -> Duration) {
        let counter = self.meter.f64_observable_counter(metric.name);
        let _ = self.observed(counter, metric, move |stats| seconds_of(read(stats))).build();
    }

    fn observed<'m, I, V: 'static>(
        &self,
        instrument: AsyncInstrumentBuilder<'m, I, V>,
        metric: Described,
        read: impl Fn(&S) -> Vec<(V, Vec<KeyValue>)> + Send + Sync + 'static,
    ) -> AsyncInstrumentBuilder<'m, I, V> {
        let (source, stats_of) = (Weak::clone(&self.source), self.read);
        let instrument = instrument.with_unit(metric.unit).with_description(metric.help);
        instrument.with_callback(move |observer| {
            let Some(source) = source.upgrade() else { return };
            for (value, labels) in read(&stats_of(&source)) {
                observer.observe(value, &labels);
            }
        })
    }
}

fn seconds_of(duration: Duration) -> Vec<(f64, Vec<KeyValue>)> {
    vec![(duration.as_secs_f64(), Vec::new())]
}
