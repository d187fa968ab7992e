//! Metrics of OpenTelemetry.

use tonic::{Request, Response, Status};
use trestle_proto::opentelemetry::proto::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
    metrics_service_server::MetricsService,
};
use trestle_service::fault::Fault;

use super::{LogApi, export::EnteredExport};
use crate::{
    OTLP_METRICS_SERVICE,
    batch::{Rejected, batch_of_items, items_by_stream},
};

/// What the name of a stream of metrics ends with, unless the request names it.
const SUFFIX: &str = ".metrics";

impl LogApi {
    /// Stores the valid data points of a request, all or none. Returns what was rejected.
    async fn export_metrics(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Rejected, Fault> {
        let mut export = EnteredExport::of(request)?;
        let items = std::mem::take(&mut export.message.resource_metrics);
        let by_stream = items_by_stream(items, export.stream_of(SUFFIX));
        self.export_streams(&export.access, by_stream, "resource_metrics", batch_of_items).await
    }
}

#[tonic::async_trait]
impl MetricsService for LogApi {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let rejected = self.export_metrics(request).await;
        let rejected = rejected.map_err(|fault| fault.into_status(OTLP_METRICS_SERVICE))?;
        let partial_success =
            rejected.into_partial().map(|(rejected_data_points, error_message)| {
                ExportMetricsPartialSuccess { rejected_data_points, error_message }
            });
        Ok(Response::new(ExportMetricsServiceResponse { partial_success }))
    }
}
