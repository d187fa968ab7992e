//! Metrics of OpenTelemetry.

use tonic::{Request, Response, Status};
use trestle_identity::caller::Caller;
use trestle_proto::opentelemetry::proto::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
    metrics_service_server::MetricsService,
};
use trestle_service::fault::Fault;

use super::{LogApi, export::named_stream};
use crate::{
    OTLP_METRICS_SERVICE,
    authorize::{LogAccess, LogNeed},
    batch::{Rejected, batch_of_metrics, metrics_by_stream, stream_of_resource},
    names::{STREAM_NAME_CHARS_MAX, StreamName},
};

/// What the name of a stream of metrics ends with, unless the request names it.
const SUFFIX: &str = ".metrics";

impl LogApi {
    /// Stores the valid data points of a request, all or none. Returns what was rejected.
    async fn export_metrics(
        &self,
        access: &LogAccess,
        named: Option<StreamName>,
        request: ExportMetricsServiceRequest,
    ) -> Result<Rejected, Fault> {
        let stream_of = |resource: &[u8]| match &named {
            Some(name) => name.as_str().to_owned(),
            None => {
                let mut name = stream_of_resource(resource);
                name.truncate(STREAM_NAME_CHARS_MAX - SUFFIX.len());
                name + SUFFIX
            }
        };
        let by_stream = metrics_by_stream(request.resource_metrics, stream_of);
        self.export_streams(access, by_stream, "resource_metrics", batch_of_metrics).await
    }
}

#[tonic::async_trait]
impl MetricsService for LogApi {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let failed = |fault: Fault| fault.into_status(OTLP_METRICS_SERVICE);
        let caller = Caller::of(&request).map_err(failed)?;
        let access = LogAccess::new(caller, LogNeed::AppendOrCreate).map_err(failed)?;
        let named = named_stream(request.metadata()).map_err(failed)?;
        let exported = self.export_metrics(&access, named, request.into_inner()).await;
        let rejected = exported.map_err(failed)?;
        let partial_success = (rejected.count > 0).then(|| ExportMetricsPartialSuccess {
            rejected_data_points: i64::try_from(rejected.count).unwrap_or(i64::MAX),
            error_message: rejected.message,
        });
        Ok(Response::new(ExportMetricsServiceResponse { partial_success }))
    }
}
