//! The metrics of a process: read as Prometheus text, and exported.

use std::time::Duration;

use opentelemetry::{KeyValue, metrics::Meter};
use opentelemetry_sdk::{
    Resource,
    metrics::{PeriodicReader, SdkMeterProvider},
};
use prometheus::Registry;
use trestle_rpc::semconv;

use crate::build;

use super::{TelemetryError, TelemetrySettings, failed, otlp::MetricExporter};

pub(super) fn provider(
    settings: &TelemetrySettings,
    resource: Resource,
    exporter: Option<MetricExporter>,
) -> Result<(Registry, Option<SdkMeterProvider>), TelemetryError> {
    let registry = Registry::new();
    if !settings.metrics {
        return Ok((registry, None));
    }
    let reader = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build();
    let provider = SdkMeterProvider::builder().with_resource(resource);
    let mut provider = provider.with_reader(reader.map_err(|error| failed(&error))?);
    if let Some(exporter) = exporter {
        let every = Duration::from_secs(settings.metrics_every_seconds);
        provider =
            provider.with_reader(PeriodicReader::builder(exporter).with_interval(every).build());
    }
    Ok((registry, Some(provider.build())))
}

pub(super) fn observe_build(meter: &Meter) {
    let labels = [
        KeyValue::new(semconv::BUILD_VERSION, build::VERSION),
        KeyValue::new(semconv::BUILD_PROFILE, build::PROFILE),
        KeyValue::new(semconv::BUILD_REVISION, build::REVISION),
    ];
    let metric = semconv::BUILD_INFO;
    let gauge = meter.u64_observable_gauge(metric.name).with_description(metric.help);
    let _ = gauge.with_callback(move |observer| observer.observe(1, &labels)).build();
}
