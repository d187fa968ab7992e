//! Metrics of a measurement that a task makes now and then, since a collection must not wait for a scan.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use opentelemetry::{KeyValue, metrics::Meter};
use trestle_model::fault::Fault;
use trestle_rpc::semconv::Described;
use trestle_runtime::task::Task;

use crate::count;

/// Values with their labels.
pub(crate) type Points = Vec<(f64, Vec<KeyValue>)>;

/// The last measurement; none before the first. Clones share it.
pub(crate) struct Measured<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Measured<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Measured<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + 'static> Measured<T> {
    /// The last measurement.
    pub(crate) fn last(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the last measurement.
    pub(crate) fn set(&self, measured: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
    }

    /// Reports what `read` returns of the last measurement as `metric`.
    pub(crate) fn observe(&self, meter: &Meter, metric: Described, read: fn(&T) -> Points) {
        let measured = self.clone();
        let gauge = meter.f64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            if let Some(last) = &*measured.0.lock().unwrap_or_else(PoisonError::into_inner) {
                for (value, labels) in read(last) {
                    observer.observe(value, &labels);
                }
            }
        });
        let _ = gauge.build();
    }

    /// A task that measures.
    pub(crate) fn task<A>(
        &self,
        name: &'static str,
        measure: impl Fn() -> A + Send + 'static,
    ) -> Task
    where
        A: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let measured = self.clone();
        Task::new(name, count::EVERY, move || {
            let (measured, last) = (measured.clone(), measure());
            async move {
                measured.set(last.await?);
                Ok(false)
            }
        })
    }
}

/// One value without labels.
pub(crate) fn point(value: f64) -> Points {
    vec![(value, Vec::new())]
}
