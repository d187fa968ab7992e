//! Logs, traces and metrics of a process.
//!
//! Logs go to standard error. With an OTLP endpoint, traces, metrics and logs go there too. Metrics
//! can always be read as Prometheus text. Nothing here is global until [`Telemetry::install`],
//! which `main` alone calls.

use std::{io::IsTerminal as _, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Meter, MeterProvider as _},
    trace::TracerProvider as _,
};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    logs::SdkLoggerProvider,
    metrics::{PeriodicReader, SdkMeterProvider},
    trace::{Sampler, SdkTracerProvider},
};
use prometheus::Registry;
use serde::{Deserialize, Serialize};
use tracing::{Dispatch, Level};
use tracing_subscriber::{
    EnvFilter, Layer, Registry as Spans, filter::Targets, fmt, layer::SubscriberExt as _,
};
use trestle_service::semconv;

/// What the telemetry of OTLP logs leaves out: the exporter's own work, which would feed itself.
const OWN_WORK: &str = "h2=off,hyper=off,hyper_util=off,tonic=off,tower=off,opentelemetry=off,\
    opentelemetry_sdk=off,opentelemetry-otlp=off";
/// Longest time that one export may take.
const EXPORT_WITHIN: Duration = Duration::from_secs(5);

/// The section `telemetry`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TelemetrySettings {
    /// What is logged, as `level` or `target=level`, separated by commas. Default: `info`.
    pub log_filter: String,
    /// Form of the log on standard error: `text` or `json`. Default: `text`.
    pub log_format: LogFormat,
    /// Where traces, metrics and logs are sent by OTLP over gRPC, such as `http://collector:4317`.
    /// Default: the variable `OTEL_EXPORTER_OTLP_ENDPOINT`; without it they are not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// Share of the traces that begin here and are sent, 0 to 1; others follow their caller.
    /// Default: 1.
    pub trace_sample_ratio: f64,
    /// How often metrics are sent, in seconds, at least 1. Default: 60.
    pub metrics_every_seconds: u64,
    /// Name of the process in telemetry. Default: the variable `OTEL_SERVICE_NAME`, or `trestle`.
    pub service_name: String,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line, for programs.
    Json,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            log_filter: "info".to_owned(),
            log_format: LogFormat::Text,
            otlp_endpoint: None,
            trace_sample_ratio: 1.0,
            metrics_every_seconds: 60,
            service_name: "trestle".to_owned(),
        }
    }
}

impl TelemetrySettings {
    /// What is wrong with the section, each with its key.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Err(error) = EnvFilter::try_new(&self.log_filter) {
            problems.push(format!("telemetry.log_filter: {error}"));
        }
        if !(0.0..=1.0).contains(&self.trace_sample_ratio) {
            let ratio = self.trace_sample_ratio;
            problems.push(format!("telemetry.trace_sample_ratio: must be 0 to 1: value=`{ratio}`"));
        }
        if self.metrics_every_seconds == 0 {
            problems.push("telemetry.metrics_every_seconds: must be at least 1".to_owned());
        }
        if let Some(endpoint) = &self.otlp_endpoint
            && !endpoint.starts_with("http://")
        {
            let rule = "must begin with http://";
            problems.push(format!("telemetry.otlp_endpoint: {rule}: value=`{endpoint}`"));
        }
        problems
    }
}

/// Telemetry that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("telemetry cannot start: {0}")]
pub struct TelemetryError(String);

/// Running telemetry. End it with [`Telemetry::shutdown`], else what was recorded last is lost.
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
    metrics: SdkMeterProvider,
    registry: Registry,
    dispatch: Dispatch,
}

impl Telemetry {
    /// Starts what the settings ask for. Must be called on a Tokio runtime.
    ///
    /// # Errors
    /// An exporter that cannot be built, or a filter that cannot be read.
    pub fn start(settings: &TelemetrySettings) -> Result<Self, TelemetryError> {
        let failed = |error: &dyn std::error::Error| TelemetryError(error.to_string());
        let resource = Resource::builder()
            .with_service_name(settings.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let registry = Registry::new();
        let reader = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .build()
            .map_err(|e| failed(&e))?;
        let mut metrics =
            SdkMeterProvider::builder().with_resource(resource.clone()).with_reader(reader);
        let (mut traces, mut logs) = (None, None);
        if let Some(endpoint) = &settings.otlp_endpoint {
            let exporters = Exporters::new(endpoint).map_err(|e| failed(&e))?;
            let every = Duration::from_secs(settings.metrics_every_seconds);
            let reader = PeriodicReader::builder(exporters.metrics).with_interval(every);
            metrics = metrics.with_reader(reader.build());
            let ratio = Sampler::TraceIdRatioBased(settings.trace_sample_ratio);
            let provider = SdkTracerProvider::builder()
                .with_resource(resource.clone())
                .with_sampler(Sampler::ParentBased(Box::new(ratio)))
                .with_batch_exporter(exporters.spans);
            traces = Some(provider.build());
            let provider = SdkLoggerProvider::builder()
                .with_resource(resource)
                .with_batch_exporter(exporters.logs);
            logs = Some(provider.build());
        }
        let dispatch = dispatch(settings, traces.as_ref(), logs.as_ref())?;
        Ok(Self { traces, logs, metrics: metrics.build(), registry, dispatch })
    }

    /// Where the process records its metrics.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.metrics.meter("trestle")
    }

    /// Its metrics, for Prometheus.
    #[must_use]
    pub fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Makes logs and spans of the whole process go here, and reports panics as logs. Once a
    /// process.
    ///
    /// # Errors
    /// When it was done before.
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

    /// Sends what was recorded and ends. Blocks no worker of the runtime.
    pub async fn shutdown(self) {
        let work = move || {
            // A collector that is away is no reason to fail the end of a process, and the log ends
            // here too.
            let _ = self.traces.map(|traces| traces.shutdown());
            let _ = self.metrics.shutdown();
            let _ = self.logs.map(|logs| logs.shutdown());
        };
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

struct Exporters {
    spans: SpanExporter,
    metrics: MetricExporter,
    logs: LogExporter,
}

impl Exporters {
    fn new(endpoint: &str) -> Result<Self, opentelemetry_otlp::ExporterBuildError> {
        Ok(Self {
            spans: SpanExporter::builder()
                .with_tonic()
                .with_endpoint(endpoint)
                .with_timeout(EXPORT_WITHIN)
                .build()?,
            metrics: MetricExporter::builder()
                .with_tonic()
                .with_endpoint(endpoint)
                .with_timeout(EXPORT_WITHIN)
                .build()?,
            logs: LogExporter::builder()
                .with_tonic()
                .with_endpoint(endpoint)
                .with_timeout(EXPORT_WITHIN)
                .build()?,
        })
    }
}

/// Each receiver with its own filter: spans are collected only where they are exported.
fn dispatch(
    settings: &TelemetrySettings,
    traces: Option<&SdkTracerProvider>,
    logs: Option<&SdkLoggerProvider>,
) -> Result<Dispatch, TelemetryError> {
    let filter = |text: &str| {
        EnvFilter::try_new(text).map_err(|error| TelemetryError(format!("log filter: {error}")))
    };
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match settings.log_format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let mut receivers: Vec<Box<dyn Layer<Spans> + Send + Sync>> =
        vec![lines.with_filter(filter(&settings.log_filter)?).boxed()];
    if let Some(traces) = traces {
        let spans = tracing_opentelemetry::layer()
            .with_tracer(traces.tracer("trestle"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        let ours = Targets::new().with_target(semconv::SPAN_TARGET, Level::DEBUG);
        receivers.push(spans.with_filter(ours).boxed());
    }
    if let Some(logs) = logs {
        let filter = filter(&format!("{},{OWN_WORK}", settings.log_filter))?;
        receivers.push(OpenTelemetryTracingBridge::new(logs).with_filter(filter).boxed());
    }
    Ok(Dispatch::new(Spans::default().with(receivers)))
}
