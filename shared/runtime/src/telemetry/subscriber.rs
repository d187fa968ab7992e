//! What receives log lines and spans, each with its own filter.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::{logs::SdkLoggerProvider, trace::SdkTracerProvider};
use tracing::{Metadata, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{FilterExt as _, filter_fn},
};
use trestle_rpc::semconv;

use super::{
    TelemetryError, TelemetrySettings, export_errors,
    logs::{self, Receiver},
};

/// The targets that OTLP logs exclude: the exporter itself, whose lines would cause further exports.
const OWN_WORK: &str = "h2=off,hyper=off,hyper_util=off,tonic=off,tower=off,opentelemetry=off,\
    opentelemetry_sdk=off,opentelemetry-otlp=off";

/// Each with its own filter: spans are made only where they are exported.
pub(super) fn receivers(
    settings: &TelemetrySettings,
    traces: Option<&SdkTracerProvider>,
    logs: Option<&SdkLoggerProvider>,
) -> Result<Vec<Receiver>, TelemetryError> {
    let filter = |more: &str| {
        let text = format!("{},{more}", settings.directives());
        EnvFilter::try_new(text).map_err(|error| TelemetryError(format!("log filter: {error}")))
    };
    let no_access = format!("{}=off", semconv::ACCESS_TARGET);
    let mut receivers =
        vec![logs::lines(settings, filter(&no_access)?.and(export_errors::collapsed()))];
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
