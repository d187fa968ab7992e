//! Logs, traces and metrics of a process.
//!
//! Logs go to standard error. With an OTLP endpoint, traces, metrics and logs go there too. Metrics
//! can always be read as Prometheus text. Nothing here is global until [`Telemetry::install`],
//! which `main` alone calls.

mod logs;
mod otlp;
mod settings;

use std::{io, path::Path, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Meter, MeterProvider as _, noop::NoopMeterProvider},
    trace::TracerProvider as _,
};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::{
    Resource,
    logs::SdkLoggerProvider,
    metrics::{PeriodicReader, SdkMeterProvider},
    trace::{Sampler, SdkTracerProvider},
};
use prometheus::Registry;
use tracing::{Dispatch, Metadata, level_filters::LevelFilter};
use tracing_appender::non_blocking::{ErrorCounter, WorkerGuard};
use tracing_subscriber::{
    EnvFilter, Layer as _, Registry as Spans, filter::filter_fn, layer::SubscriberExt as _,
};
use trestle_service::{access::AccessLog, propagation::Traces, semconv};

pub use self::settings::{AccessKeys, AccessOutput, LogFormat, TelemetrySettings};
use self::{logs::Receiver, otlp::Exporters};
use crate::openmetrics::Exposition;

/// The targets that OTLP logs exclude: the exporter itself, whose lines would cause further exports.
const OWN_WORK: &str = "h2=off,hyper=off,hyper_util=off,tonic=off,tower=off,opentelemetry=off,\
    opentelemetry_sdk=off,opentelemetry-otlp=off";
/// Shortest salt of hashes, in bytes.
const SALT_BYTES_MIN: usize = 16;

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
    kept: Traces,
    access: AccessLog,
    access_guard: Option<WorkerGuard>,
    dispatch: Dispatch,
}

impl Telemetry {
    /// Starts the telemetry of the settings; `random` generates a salt where none is given. Must be called on a Tokio
    /// runtime.
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
        let kept = Traces {
            ratio: endpoint.map(|_| settings.trace_sample_ratio),
            exemplars: Default::default(),
        };
        let exporters = endpoint.map(|endpoint| Exporters::new(endpoint, kept.exemplars.clone()));
        let exporters = exporters.transpose().map_err(|error| failed(&error))?;
        let (spans, metrics, records) = match exporters {
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
        let (registry, metrics) = metrics_of(settings, resource, metrics)?;
        let meter = match &metrics {
            Some(provider) => provider.meter("trestle"),
            None => NoopMeterProvider::new().meter("trestle"),
        };
        observe_build(&meter);
        let access = logs::access(settings).map_err(|error| failed(&error))?;
        let mut receivers = receivers(settings, traces.as_ref(), logs.as_ref())?;
        let access_guard = access.map(|access| {
            receivers.push(access.receiver);
            observe_lost(&meter, access.lost);
            access.guard
        });
        let dispatch = Dispatch::new(Spans::default().with(receivers));
        let access = access_log(settings, random)?;
        Ok(Self { traces, logs, metrics, meter, registry, kept, access, access_guard, dispatch })
    }

    /// The meter of the process.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// The sampling of traces, and their exemplars.
    #[must_use]
    pub fn traces(&self) -> Traces {
        self.kept.clone()
    }

    /// The writer of the access log.
    #[must_use]
    pub fn access(&self) -> AccessLog {
        self.access.clone()
    }

    /// The metrics for Prometheus.
    #[must_use]
    pub fn exposition(&self) -> Exposition {
        Exposition::new(self.registry.clone(), self.kept.exemplars.clone())
    }

    /// Installs the subscriber of the whole process, and logs panics. Call it once per process.
    ///
    /// # Errors
    /// When a subscriber is installed already.
    pub fn install(&self) -> Result<(), TelemetryError> {
        tracing::dispatcher::set_global_default(self.dispatch.clone())
            .map_err(|error| TelemetryError(error.to_string()))?;
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string);
            let message = panic.payload_as_str().unwrap_or("no text");
            tracing::error!(place, message, "panic");
        }));
        Ok(())
    }

    /// Exports the pending records and shuts down. Blocks no worker of the runtime.
    pub async fn shutdown(self) {
        let work = move || {
            // An unreachable collector must not fail the shutdown of a process, and the log ends here too.
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

fn metrics_of(
    settings: &TelemetrySettings,
    resource: Resource,
    exporter: Option<otlp::MetricExporter>,
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

fn observe_build(meter: &Meter) {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let mut labels = vec![
        KeyValue::new(semconv::BUILD_VERSION, env!("CARGO_PKG_VERSION")),
        KeyValue::new(semconv::BUILD_PROFILE, profile),
    ];
    let revision = option_env!("TRESTLE_REVISION");
    labels.extend(revision.map(|revision| KeyValue::new(semconv::BUILD_REVISION, revision)));
    let metric = semconv::BUILD_INFO;
    let gauge = meter.u64_observable_gauge(metric.name).with_description(metric.help);
    let _ = gauge.with_callback(move |observer| observer.observe(1, &labels)).build();
}

fn observe_lost(meter: &Meter, lost: ErrorCounter) {
    let metric = semconv::ACCESS_LOST;
    let counter = meter.u64_observable_counter(metric.name).with_unit(metric.unit);
    let counter = counter.with_description(metric.help);
    let _ = counter
        .with_callback(move |observer| observer.observe(lost.dropped_lines() as u64, &[]))
        .build();
}

fn access_log(
    settings: &TelemetrySettings,
    random: fn() -> u128,
) -> Result<AccessLog, TelemetryError> {
    match (&settings.access_log, settings.access_log_keys, &settings.access_log_salt_file) {
        (AccessOutput::Off, _, _) => Ok(AccessLog::off()),
        (_, AccessKeys::Clear, _) => Ok(AccessLog::clear()),
        (_, AccessKeys::Hashed, Some(path)) => {
            salt(path).map(|salt| AccessLog::hashed(&salt)).map_err(|error| failed(&error))
        }
        (_, AccessKeys::Hashed, None) => {
            let salt = [random().to_ne_bytes(), random().to_ne_bytes()];
            Ok(AccessLog::hashed(salt.as_flattened()))
        }
    }
}

fn salt(path: &Path) -> io::Result<Vec<u8>> {
    let wrong = |kind, what: &dyn std::fmt::Display| {
        let path = path.display();
        io::Error::new(kind, format!("telemetry.access_log_salt_file: path=`{path}`, {what}"))
    };
    let salt = std::fs::read(path).map_err(|error| wrong(error.kind(), &error))?;
    if salt.len() < SALT_BYTES_MIN {
        let rule = format!("must have at least {SALT_BYTES_MIN} bytes");
        return Err(wrong(io::ErrorKind::InvalidData, &rule));
    }
    Ok(salt)
}

/// Each with its own filter: spans are made only where they are exported.
fn receivers(
    settings: &TelemetrySettings,
    traces: Option<&SdkTracerProvider>,
    logs: Option<&SdkLoggerProvider>,
) -> Result<Vec<Receiver>, TelemetryError> {
    let filter = |more: &str| {
        let text = format!("{},{more}", settings.directives());
        EnvFilter::try_new(text).map_err(|error| TelemetryError(format!("log filter: {error}")))
    };
    let no_access = format!("{}=off", semconv::ACCESS_TARGET);
    let mut receivers = vec![logs::lines(settings, filter(&no_access)?)];
    if let Some(traces) = traces {
        let spans = tracing_opentelemetry::layer()
            .with_tracer(traces.tracer("trestle"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        // The spans of the layers, which create one only where its trace is sampled.
        let ours = filter_fn(is_ours).with_max_level_hint(LevelFilter::DEBUG);
        receivers.push(spans.with_filter(ours).boxed());
    }
    if let Some(logs) = logs {
        let bridge = OpenTelemetryTracingBridge::new(logs).with_filter(filter(OWN_WORK)?);
        receivers.push(bridge.boxed());
    }
    Ok(receivers)
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target() == semconv::SPAN_TARGET
}
