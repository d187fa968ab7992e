//! Log records of OpenTelemetry.

use tonic::{Request, Response, Status};
use trestle_model::fault::Fault;
use trestle_proto::{
    log::v1::wire::ExportLogsServiceRequest,
    opentelemetry::proto::{
        collector::logs::v1::{
            ExportLogsPartialSuccess, ExportLogsServiceResponse, logs_service_server::LogsService,
        },
        logs::v1::ResourceLogs,
    },
};
use trestle_rpc::status::IntoStatus as _;

use super::{LogApi, export::EnteredExport};
use crate::{OTLP_LOGS_SERVICE, batch::Rejected};

impl LogApi {
    /// Stores the valid records of a request, all or none. Returns what was rejected.
    async fn export_logs(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Rejected, Fault> {
        let export = EnteredExport::of(request)?;
        self.export_resources::<ResourceLogs, _>(&export, &export.message.resource_logs, "").await
    }
}

#[tonic::async_trait]
impl LogsService for LogApi {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let rejected = self.export_logs(request).await;
        let rejected = rejected.map_err(|fault| fault.into_status(OTLP_LOGS_SERVICE))?;
        let partial_success =
            rejected.into_partial().map(|(rejected_log_records, error_message)| {
                ExportLogsPartialSuccess { rejected_log_records, error_message }
            });
        Ok(Response::new(ExportLogsServiceResponse { partial_success }))
    }
}
