//! Appends on a stream: in order, each acknowledged, several in flight.

use std::{future::Future, task::Poll};
use trestle_rpc::status::IntoStatus as _;

use futures::{Stream, StreamExt as _, TryStreamExt as _, future::Either, stream};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::STREAM_IDLE_MAX;
use trestle_proto::log::v1::{
    self as proto, AppendRecordsRequest, append_stream_response::Outcome,
};
use trestle_rpc::response_stream::{self, ResponseSender, ResponseStream};

use super::{LogApi, failed};
use crate::{LOG_SERVICE, authorize::LogAccess, error::LogError};

/// Most appends of a call that are decided at a time. They are committed in the order of the requests, because the
/// committer takes changes in the order in which they are handed over.
const IN_FLIGHT_MAX: usize = 16;

/// The acknowledgements of a stream of appends, in the order of the requests.
pub(super) fn acknowledge(
    api: LogApi,
    access: LogAccess,
    requests: impl Stream<Item = Result<proto::AppendStreamRequest, Status>> + Send + 'static,
) -> ResponseStream<proto::AppendStreamResponse> {
    response_stream::spawn(|sender| run(api, access, requests, sender))
}

async fn run(
    api: LogApi,
    access: LogAccess,
    requests: impl Stream<Item = Result<proto::AppendStreamRequest, Status>> + Send,
    sender: ResponseSender<proto::AppendStreamResponse>,
) -> Result<(), Status> {
    let shutdown = api.logs().shutdown.clone();
    let begun = named_requests(requests, &shutdown)
        .then(|request| begin(api.clone(), access.clone(), request));
    let mut acknowledged = std::pin::pin!(begun.buffered(IN_FLIGHT_MAX));
    while let Some(response) = acknowledged.try_next().await? {
        sender.send(response).await?;
    }
    Ok(())
}

/// An append that was handed to the store: polled once, so that the next one is handed over behind it. The error of a
/// request waits in line: the appends before it are acknowledged before the call ends.
async fn begin(
    api: LogApi,
    access: LogAccess,
    request: Result<(u64, AppendRecordsRequest), Status>,
) -> impl Future<Output = Result<proto::AppendStreamResponse, Status>> + Send + 'static {
    let (append_id, append) = match request {
        Ok(request) => request,
        Err(status) => return Either::Right(std::future::ready(Err(status))),
    };
    let prepared = api.prepare(&access, append).await;
    let mut append = Box::pin(async move {
        match prepared {
            Ok(prepared) => api.commit(prepared).await,
            Err(fault) => Err(fault),
        }
    });
    let early = match futures::poll!(&mut append) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    };
    Either::Left(async move {
        let outcome = match early {
            Some(outcome) => outcome,
            None => append.await,
        };
        let outcome = match outcome {
            Ok(appended) => Outcome::Appended(appended),
            Err(fault) => Outcome::Error(fault.into_item_status(LOG_SERVICE)),
        };
        Ok(proto::AppendStreamResponse { append_id, outcome: Some(outcome) })
    })
}

/// The appends with their ids, each with the name of a stream. A client that sends nothing for long is disconnected,
/// and a process that stops takes no more.
fn named_requests(
    requests: impl Stream<Item = Result<proto::AppendStreamRequest, Status>> + Send,
    shutdown: &CancellationToken,
) -> impl Stream<Item = Result<(u64, AppendRecordsRequest), Status>> + Send {
    let start = (Box::pin(requests), None::<String>);
    stream::try_unfold(start, move |(mut requests, mut name)| async move {
        let idle = || Status::deadline_exceeded("no append came for two minutes");
        let next = tokio::select! {
            biased;
            () = shutdown.cancelled() => return Err(failed(LogError::ShuttingDown)),
            next = tokio::time::timeout(STREAM_IDLE_MAX, requests.try_next()) => next,
        };
        let Some(request) = next.map_err(|_| idle())?? else { return Ok(None) };
        let append = request.append.ok_or_else(|| {
            failed(Fault::violation(Reason::PropertiesNeedValue, "append", "required"))
        })?;
        let first = name.get_or_insert_with(|| append.stream.clone()).clone();
        let stream = if append.stream.is_empty() { first } else { append.stream };
        let append = AppendRecordsRequest { stream, ..append };
        Ok(Some(((request.append_id, append), (requests, name))))
    })
}
