//! Logs, traces and metrics of a process.
//!
//! Logs are written to standard error. With an OTLP endpoint, traces, metrics and logs are exported to it too. Metrics
//! can always be read as Prometheus text. Nothing here is global until [`Telemetry::install`],
//! which `main` alone calls.

mod access_log;
mod colors;
mod export_errors;
mod in_trace;
mod logged_exporter;
mod logs;
mod metrics;
mod otlp;
mod process;
mod settings;
mod subscriber;

use opentelemetry::{
    KeyValue,
    metrics::{Meter, MeterProvider as _, noop::NoopMeterProvider},
};
use opentelemetry_sdk::{
    Resource,
    logs::SdkLoggerProvider,
    metrics::SdkMeterProvider,
    trace::{Sampler, SdkTracerProvider},
};
use prometheus::Registry;
use tracing::Dispatch;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::{Registry as Spans, layer::SubscriberExt as _};
use trestle_rpc::{access::AccessLog, propagation::Traces};

pub use self::access_log::salt_problem;
use self::otlp::Exporters;
pub use self::settings::{AccessKeys, AccessOutput, LogFormat, TelemetrySettings};
use crate::openmetrics::Exposition;

/// An error at the start of telemetry.
#[derive(Debug, thiserror::Error)]
#[error("telemetry cannot start: {0}")]
pub struct TelemetryError(String);

/// Running telemetry. End it with [`Telemetry::shutdown`], or the last records are lost.
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
    metrics: Option<SdkMeterProvider>,
    meter: Meter,
    registry: Registry,
    sampling: Traces,
    access: AccessLog,
    access_guard: Option<WorkerGuard>,
    dispatch: Dispatch,
}

impl Telemetry {
    /// Starts the telemetry of the settings; `random` generates a salt where none is configured. Must be called on a
    /// Tokio runtime.
    ///
    /// # Errors
    /// An exporter that cannot be built, a malformed filter, or a file that cannot be opened.
    pub fn start(
        settings: &TelemetrySettings,
        random: fn() -> u128,
    ) -> Result<Self, TelemetryError> {
        let resource = Resource::builder()
            .with_service_name(settings.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let endpoint = settings.otlp_endpoint.as_ref();
        let sampling = Traces {
            ratio: endpoint.map(|_| settings.trace_sample_ratio),
            exemplars: Default::default(),
        };
        let exporters =
            endpoint.map(|endpoint| Exporters::new(endpoint, sampling.exemplars.clone()));
        let exporters = exporters.transpose().map_err(|error| failed(&error))?;
        let (spans, exported, records) = match exporters {
            Some(Exporters { spans, metrics, logs }) => (Some(spans), Some(metrics), Some(logs)),
            None => (None, None, None),
        };
        let traces = spans.map(|exporter| {
            // Traces that are not sampled have no spans, so the sampler accepts all.
            let provider = SdkTracerProvider::builder().with_resource(resource.clone());
            provider.with_sampler(Sampler::AlwaysOn).with_batch_exporter(exporter).build()
        });
        let logs = records.map(|exporter| {
            let provider = SdkLoggerProvider::builder().with_resource(resource.clone());
            provider.with_batch_exporter(exporter).build()
        });
        let (registry, metrics) = metrics::provider(settings, resource, exported)?;
        let meter = match &metrics {
            Some(provider) => provider.meter("trestle"),
            None => NoopMeterProvider::new().meter("trestle"),
        };
        metrics::observe_build(&meter);
        process::observe(&meter);
        let access = logs::access(settings).map_err(|error| failed(&error))?;
        let mut receivers = subscriber::receivers(settings, traces.as_ref(), logs.as_ref())?;
        let access_guard = access.map(|access| {
            receivers.push(access.receiver);
            access_log::observe_dropped(&meter, access.errors);
            access.guard
        });
        let dispatch = Dispatch::new(Spans::default().with(receivers));
        let access = access_log::writer(settings, random)?;
        Ok(Self {
            traces,
            logs,
            metrics,
            meter,
            registry,
            sampling,
            access,
            access_guard,
            dispatch,
        })
    }

    /// The meter of the process.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// The sampling of traces, and their exemplars.
    #[must_use]
    pub fn traces(&self) -> Traces {
        self.sampling.clone()
    }

    /// The writer of the access log.
    #[must_use]
    pub fn access(&self) -> AccessLog {
        self.access.clone()
    }

    /// The metrics for Prometheus.
    #[must_use]
    pub fn exposition(&self) -> Exposition {
        Exposition::new(self.registry.clone(), self.sampling.exemplars.clone())
    }

    /// Installs the subscriber of the whole process, and logs panics. Call it once per process.
    ///
    /// # Errors
    /// When a subscriber is installed already.
    pub fn install(&self) -> Result<(), TelemetryError> {
        tracing::dispatcher::set_global_default(self.dispatch.clone())
            .map_err(|error| TelemetryError(error.to_string()))?;
        std::panic::set_hook(Box::new(|panic| {
            let location = panic.location().map(ToString::to_string);
            let message = panic.payload_as_str().unwrap_or("no text");
            tracing::error!(location, message, "panic");
        }));
        Ok(())
    }

    /// Exports the pending records and shuts down. Blocks no worker of the runtime.
    pub async fn shutdown(self) {
        let work = move || {
            // An unreachable collector must not fail the shutdown of a process, and the log ends with it.
            let _ = self.traces.map(|traces| traces.shutdown());
            let _ = self.metrics.map(|metrics| metrics.shutdown());
            let _ = self.logs.map(|logs| logs.shutdown());
            drop(self.access_guard);
        };
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

fn failed(error: &dyn std::error::Error) -> TelemetryError {
    TelemetryError(error.to_string())
}
