//! Metrics of OpenTelemetry.

use tonic::{Request, Response, Status};
use trestle_model::fault::Fault;
use trestle_proto::{
    log::v1::wire::ExportMetricsServiceRequest,
    opentelemetry::proto::{
        collector::metrics::v1::{
            ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
            metrics_service_server::MetricsService,
        },
        metrics::v1::ResourceMetrics,
    },
};
use trestle_rpc::status::IntoStatus as _;

use super::{LogApi, export::EnteredExport};
use crate::{OTLP_METRICS_SERVICE, batch::Rejected};

/// What the name of a stream of metrics ends with, unless the request names it.
const SUFFIX: &str = ".metrics";

impl LogApi {
    /// Stores the valid data points of a request, all or none. Returns what was rejected.
    async fn export_metrics(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Rejected, Fault> {
        let export = EnteredExport::of(request)?;
        self.export_resources::<ResourceMetrics, _>(
            &export,
            &export.message.resource_metrics,
            SUFFIX,
        )
        .await
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
