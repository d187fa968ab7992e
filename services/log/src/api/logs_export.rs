//! Log records of OpenTelemetry.

use tonic::{Request, Response, Status};
use trestle_identity::caller::Caller;
use trestle_proto::{
    log::v1::wire::ExportLogsServiceRequest,
    opentelemetry::proto::collector::logs::v1::{
        ExportLogsPartialSuccess, ExportLogsServiceResponse, logs_service_server::LogsService,
    },
};
use trestle_service::fault::Fault;

use super::{LogApi, export::named_stream};
use crate::{
    OTLP_LOGS_SERVICE,
    authorize::{LogAccess, LogNeed},
    batch::{Rejected, batch_of_logs, logs_by_stream, stream_of_resource},
    names::StreamName,
};

impl LogApi {
    /// Stores the valid records of a request, all or none. Returns what was rejected.
    async fn export_logs(
        &self,
        access: &LogAccess,
        named: Option<StreamName>,
        request: ExportLogsServiceRequest,
    ) -> Result<Rejected, Fault> {
        let stream_of = |resource: &[u8]| match &named {
            Some(name) => name.as_str().to_owned(),
            None => stream_of_resource(resource),
        };
        let by_stream = logs_by_stream(&request.resource_logs, stream_of)?;
        self.export_streams(access, by_stream, "resource_logs", batch_of_logs).await
    }
}

#[tonic::async_trait]
impl LogsService for LogApi {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let failed = |fault: Fault| fault.into_status(OTLP_LOGS_SERVICE);
        let caller = Caller::of(&request).map_err(failed)?;
        let access = LogAccess::new(caller, LogNeed::AppendOrCreate).map_err(failed)?;
        let named = named_stream(request.metadata()).map_err(failed)?;
        let exported = self.export_logs(&access, named, request.into_inner()).await;
        let rejected = exported.map_err(failed)?;
        let partial_success = (rejected.count > 0).then(|| ExportLogsPartialSuccess {
            rejected_log_records: i64::try_from(rejected.count).unwrap_or(i64::MAX),
            error_message: rejected.message,
        });
        Ok(Response::new(ExportLogsServiceResponse { partial_success }))
    }
}
