//! Traces of OpenTelemetry.

use tonic::{Request, Response, Status};
use trestle_model::fault::Fault;
use trestle_proto::{
    log::v1::wire::ExportTraceServiceRequest,
    opentelemetry::proto::{
        collector::trace::v1::{
            ExportTracePartialSuccess, ExportTraceServiceResponse,
            trace_service_server::TraceService,
        },
        trace::v1::ResourceSpans,
    },
};
use trestle_rpc::status::IntoStatus as _;

use super::{LogApi, export::EnteredExport};
use crate::{OTLP_TRACE_SERVICE, batch::Rejected};

/// What the name of a stream of traces ends with, unless the request names it.
const SUFFIX: &str = ".traces";

impl LogApi {
    /// Stores the valid spans of a request, all or none. Returns what was rejected.
    async fn export_spans(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Rejected, Fault> {
        let export = EnteredExport::of(request)?;
        self.export_resources::<ResourceSpans, _>(&export, &export.message.resource_spans, SUFFIX)
            .await
    }
}

#[tonic::async_trait]
impl TraceService for LogApi {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let rejected = self.export_spans(request).await;
        let rejected = rejected.map_err(|fault| fault.into_status(OTLP_TRACE_SERVICE))?;
        let partial_success = rejected.into_partial().map(|(rejected_spans, error_message)| {
            ExportTracePartialSuccess { rejected_spans, error_message }
        });
        Ok(Response::new(ExportTraceServiceResponse { partial_success }))
    }
}
