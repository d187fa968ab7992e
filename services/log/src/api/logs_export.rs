//! Log records of OpenTelemetry.

use std::sync::Arc;

use tonic::{Request, Response, Status, metadata::MetadataMap};
use trestle_identity::caller::Caller;
use trestle_proto::{
    log::v1::wire::ExportLogsServiceRequest,
    opentelemetry::proto::collector::logs::v1::{
        ExportLogsPartialSuccess, ExportLogsServiceResponse, logs_service_server::LogsService,
    },
};
use trestle_service::fault::{Fault, Reason, Violations};

use super::LogApi;
use crate::{
    OTLP_LOGS_SERVICE,
    append::NewBatch,
    authorize::{LogAccess, LogNeed},
    batch::{EncodedBatch, Rejected, batch_of_logs, logs_by_stream, stream_of_resource},
    names::StreamName,
    streams::OpenStream,
};

/// The metadata that names the stream of all records of a request.
const STREAM_HEADER: &str = "trestle-log-stream";
/// Most streams of a request: their batches are committed at once.
const STREAMS_MAX: usize = 1_000;
/// Most bytes of the batches of a request: many scopes may repeat a resource.
pub(super) const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The stream that the metadata of a request names; none where it does not.
///
/// # Errors
/// A name that violates the rules.
pub(super) fn named_stream(metadata: &MetadataMap) -> Result<Option<StreamName>, Fault> {
    let Some(name) = metadata.get(STREAM_HEADER) else { return Ok(None) };
    let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
    let mut violations = Violations::default();
    let name = StreamName::parse(name, STREAM_HEADER, &mut violations);
    violations.check(name)
}

/// Checks how many streams a request has records of.
///
/// # Errors
/// Too many.
pub(super) fn check_streams(count: usize, field: &str) -> Result<(), Fault> {
    if count <= STREAMS_MAX {
        return Ok(());
    }
    let rule = format!("must be of at most {STREAMS_MAX} streams: count=`{count}`");
    Err(Fault::violation(Reason::OutOfRangeInput, field, rule))
}

/// The batch of an export to a stream.
pub(super) fn export_batch(stream: &Arc<OpenStream>, encoded: EncodedBatch) -> NewBatch {
    NewBatch {
        stream: stream.record.id,
        name: stream.name.clone(),
        value: encoded.bytes,
        count: encoded.records,
        request_id: None,
        expected_next_sequence: None,
    }
}

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
        check_streams(by_stream.len(), "resource_logs")?;
        let (mut batches, mut rejected) = (Vec::new(), Rejected::default());
        let mut bytes_left = REQUEST_BYTES_MAX;
        for (name, logs) in by_stream {
            let name = StreamName::stored(name);
            let stream = self.logs.open_or_create(access.account(), &name).await?;
            let (encoded, left_out) = batch_of_logs(&logs, self.times(&stream), bytes_left);
            rejected.merge(&left_out);
            let bytes = encoded.as_ref().map_or(0, |encoded| encoded.bytes.len());
            bytes_left = bytes_left.saturating_sub(bytes);
            let batch = encoded.map(|encoded| export_batch(&stream, encoded));
            batches.extend(batch.map(|batch| (stream, batch)));
        }
        self.logs.append(batches).await?;
        Ok(rejected)
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
