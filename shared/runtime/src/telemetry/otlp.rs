//! Sending to a collector: the exporters of the SDK, and for metrics one of our own, since that of
//! the SDK has no exemplars.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use opentelemetry_otlp::{ExporterBuildError, LogExporter, SpanExporter, WithExportConfig as _};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::{
        ExportMetricsServiceRequest, metrics_service_client::MetricsServiceClient,
    },
    common::v1::{KeyValue, any_value},
    metrics::v1::{self as proto, metric::Data},
};
use opentelemetry_sdk::{
    error::{OTelSdkError, OTelSdkResult},
    metrics::{Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
};
use tonic::transport::{Channel, Endpoint};
use trestle_rpc::exemplar::{Exemplar, Exemplars, Series};

use super::{
    export_errors::{ExportErrors, cause_of_status},
    logged_exporter::LoggedExporter,
};

/// Longest time that one export may take.
const EXPORT_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Exporters {
    pub(super) spans: LoggedExporter<SpanExporter>,
    pub(super) metrics: MetricExporter,
    pub(super) logs: LoggedExporter<LogExporter>,
}

impl Exporters {
    pub(super) fn new(endpoint: &str, exemplars: Exemplars) -> Result<Self, ExporterBuildError> {
        let invalid = |error: tonic::transport::Error| {
            ExporterBuildError::InternalFailure(format!("{endpoint}: {error}"))
        };
        let channel = Endpoint::from_shared(endpoint.to_owned()).map_err(invalid)?;
        let channel = channel.timeout(EXPORT_WITHIN).connect_lazy();
        let client = Mutex::new(Some(MetricsServiceClient::new(channel)));
        let errors = Arc::new(ExportErrors::new(endpoint));
        let spans = SpanExporter::builder().with_tonic().with_endpoint(endpoint);
        let spans = spans.with_timeout(EXPORT_WITHIN).build()?;
        let logs = LogExporter::builder().with_tonic().with_endpoint(endpoint);
        let logs = logs.with_timeout(EXPORT_WITHIN).build()?;
        Ok(Self {
            spans: LoggedExporter::new(spans, Arc::clone(&errors)),
            logs: LoggedExporter::new(logs, Arc::clone(&errors)),
            metrics: MetricExporter { client, exemplars, errors },
        })
    }
}

/// Sends metrics together with their exemplars.
#[derive(Debug)]
pub(super) struct MetricExporter {
    /// None after the shutdown.
    client: Mutex<Option<MetricsServiceClient<Channel>>>,
    errors: Arc<ExportErrors>,
    exemplars: Exemplars,
}

impl PushMetricExporter for MetricExporter {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut client = client.ok_or(OTelSdkError::AlreadyShutdown)?;
        let mut request = ExportMetricsServiceRequest::from(metrics);
        join(&mut request, &self.exemplars);
        if let Err(status) = client.export(request).await {
            // Logged here, and not once more by the SDK.
            self.errors.log("metrics", &cause_of_status(&status));
        }
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

/// Adds every exemplar to its data point.
fn join(request: &mut ExportMetricsServiceRequest, exemplars: &Exemplars) {
    let scopes = request.resource_metrics.iter_mut().flat_map(|of| &mut of.scope_metrics);
    for metric in scopes.flat_map(|scope| &mut scope.metrics) {
        let Some(Data::Histogram(histogram)) = &mut metric.data else { continue };
        let series = exemplars.of(&metric.name);
        for point in &mut histogram.data_points {
            if let Some(series) = series.iter().find(|series| is_of(series, &point.attributes)) {
                let exemplars = series.buckets().into_iter().flatten();
                point.exemplars.extend(exemplars.map(exemplar));
            }
        }
    }
}

fn is_of(series: &Series, attributes: &[KeyValue]) -> bool {
    let labels = series.labels();
    let has = |label: &opentelemetry::KeyValue| {
        attributes.iter().any(|attribute| {
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            let is_text = |text: &String| *text == label.value.as_str();
            attribute.key == label.key.as_str()
                && matches!(value, Some(any_value::Value::StringValue(text)) if is_text(text))
        })
    };
    labels.len() == attributes.len() && labels.iter().all(has)
}

fn exemplar(exemplar: Exemplar) -> proto::Exemplar {
    let (seconds, nanos) = exemplar.at.to_unix();
    let (seconds, nanos) = (u64::try_from(seconds), u64::try_from(nanos));
    proto::Exemplar {
        time_unix_nano: seconds.unwrap_or_default() * 1_000_000_000 + nanos.unwrap_or_default(),
        trace_id: exemplar.trace_id.to_vec(),
        span_id: exemplar.span_id.to_vec(),
        value: Some(proto::exemplar::Value::AsDouble(exemplar.value)),
        ..proto::Exemplar::default()
    }
}
