//! The gRPC interface of the service: parse the request, call the domain, render the response. It contains no
//! decisions.

mod append;
mod append_stream;
mod export;
mod logs_export;
mod metrics_export;
mod parse;
mod read;
mod render;
mod streams;
mod summarize;
mod tail;
#[cfg(test)]
mod tests;
mod trace_export;

use std::sync::Arc;
use trestle_rpc::status::IntoStatus as _;

use opentelemetry::metrics::Meter;
use tonic::{Request, Response, Status, Streaming};
use trestle_identity::caller::Caller;
use trestle_model::fault::Fault;
use trestle_proto::log::v1::{self as proto, log_service_server::LogService};
use trestle_rpc::{call_statistics::StatisticsRecorder, response_stream::ResponseStream};

use crate::{
    LOG_SERVICE,
    authorize::{LogAccess, LogNeed},
    logs::Logs,
    rejections::Rejections,
    sweep::LogSweeper,
};

/// The implementation of `trestle.log.v1.LogService` and of the services that receive telemetry.
#[derive(Clone)]
pub struct LogApi {
    logs: Logs,
    sweeper: Arc<LogSweeper>,
    /// Items of exports that are not stored.
    rejections: Arc<Rejections>,
}

impl LogApi {
    /// Serves these streams. What exports lose is counted on `meter`.
    pub(crate) fn new(logs: Logs, meter: &Meter) -> Self {
        let sweeper = Arc::new(LogSweeper::new(logs.clone()));
        Self { logs, sweeper, rejections: Arc::new(Rejections::new(meter)) }
    }

    /// The background work.
    pub(crate) fn sweeper(&self) -> &LogSweeper {
        &self.sweeper
    }

    /// The streams.
    pub(crate) fn logs(&self) -> &Logs {
        &self.logs
    }
}

/// The access of a caller, and the message.
///
/// Only this function returns the message.
fn enter<T>(request: Request<T>, need: LogNeed) -> Result<(LogAccess, T), Status> {
    let caller = Caller::of(&request).map_err(failed)?;
    let access = LogAccess::new(caller, need).map_err(failed)?;
    Ok((access, request.into_inner()))
}

/// The status of a failed call.
fn failed(error: impl Into<Fault>) -> Status {
    error.into().into_status(LOG_SERVICE)
}

/// Implements a method by the one of [`LogApi`] with the same name, for a caller with a permission.
macro_rules! by_domain {
    ($($method:ident($request:ident) -> $response:ident: $need:ident => $work:ident;)+) => {
        #[tonic::async_trait]
        impl LogService for LogApi {
            type AppendStreamStream = ResponseStream<proto::AppendStreamResponse>;
            type ReadRecordsStream = ResponseStream<proto::ReadRecordsResponse>;
            type SummarizeRecordsStream = ResponseStream<proto::SummarizeRecordsResponse>;
            type TailRecordsStream = ResponseStream<proto::TailRecordsResponse>;

            $(async fn $method(
                &self,
                request: Request<proto::$request>,
            ) -> Result<Response<proto::$response>, Status> {
                let (access, message) = enter(request, LogNeed::$need)?;
                self.$work(&access, message).await.map(Response::new).map_err(failed)
            })+

            async fn append_stream(
                &self,
                request: Request<Streaming<proto::AppendStreamRequest>>,
            ) -> Result<Response<Self::AppendStreamStream>, Status> {
                let (access, messages) = enter(request, LogNeed::Append)?;
                Ok(Response::new(append_stream::acknowledge(self.clone(), access, messages)))
            }

            async fn read_records(
                &self,
                request: Request<proto::ReadRecordsRequest>,
            ) -> Result<Response<Self::ReadRecordsStream>, Status> {
                let recorder = StatisticsRecorder::of(request.extensions());
                let (access, message) = enter(request, LogNeed::Read)?;
                self.read(&access, message, recorder).await.map(Response::new).map_err(failed)
            }

            async fn summarize_records(
                &self,
                request: Request<proto::SummarizeRecordsRequest>,
            ) -> Result<Response<Self::SummarizeRecordsStream>, Status> {
                let recorder = StatisticsRecorder::of(request.extensions());
                let (access, message) = enter(request, LogNeed::Read)?;
                self.summarize(&access, message, recorder).await.map(Response::new).map_err(failed)
            }

            async fn tail_records(
                &self,
                request: Request<proto::TailRecordsRequest>,
            ) -> Result<Response<Self::TailRecordsStream>, Status> {
                let (access, message) = enter(request, LogNeed::Read)?;
                self.tail(&access, message).await.map(Response::new).map_err(failed)
            }
        }
    };
}

by_domain! {
    create_stream(CreateStreamRequest) -> CreateStreamResponse: Create => create;
    get_stream(GetStreamRequest) -> GetStreamResponse: ReadStream => get;
    update_stream(UpdateStreamRequest) -> UpdateStreamResponse: WriteStream => update;
    list_streams(ListStreamsRequest) -> ListStreamsResponse: List => list;
    delete_stream(DeleteStreamRequest) -> DeleteStreamResponse: Delete => delete;
    append_records(AppendRecordsRequest) -> AppendRecordsResponse: Append => append;
    flush_stream(FlushStreamRequest) -> FlushStreamResponse: WriteStream => flush;
    list_segments(ListSegmentsRequest) -> ListSegmentsResponse: ReadStream => segments;
    undelete_segments(UndeleteSegmentsRequest) -> UndeleteSegmentsResponse: WriteStream => undelete;
    verify_segment(VerifySegmentRequest) -> VerifySegmentResponse: Read => verify_segment;
    drop_segment(DropSegmentRequest) -> DropSegmentResponse: Delete => drop_segment;
}
