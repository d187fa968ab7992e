//! Deliveries on a stream: as many as the client gave credit for, as they become visible.
//!
//! One task reads grants and sends deliveries. It holds no more than the deliveries that it sends next, so a client
//! that does not read blocks only the messages that are in flight to it, until it is disconnected.

use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use trestle_model::fault::{Fault, Reason, Violations};
use trestle_model::limits::{
    RECEIVE_MESSAGES_MAX, RECEIVE_WAIT_MAX, STREAM_CREDIT_MAX, STREAM_IDLE_MAX,
};
use trestle_model::name::QueueName;
use trestle_proto::queue::v1::{
    StreamMessagesRequest, StreamMessagesResponse, StreamOpen, stream_messages_request::Message,
};
use trestle_rpc::{call_statistics::StatisticsRecorder, layer::deadline::CallDeadline};

use super::{Responses, access_log::record_returned, parse, rejected, render};
use crate::{
    authorize::QueueAccess,
    messages::MessageOperations,
    receive::Receive,
    release::{DeliveryHandover, ReceivedBatch},
};

/// Responses that wait for the client.
const WAITING_MAX: usize = 1;

/// The parsed open message of a client.
struct Opened {
    queue: QueueName,
    visibility_timeout: Duration,
    credit: u32,
}

/// The client of a stream.
pub(super) struct Consumer {
    /// Its access to the messages.
    pub(super) access: QueueAccess,
    /// When its call ends, if it set a limit.
    pub(super) deadline: Option<CallDeadline>,
    /// Records its call.
    pub(super) recorder: StatisticsRecorder,
}

/// A response and the handover of its messages, which is completed when the response is read, to be sent.
type Answer = (StreamMessagesResponse, Option<DeliveryHandover>);

/// The stream of deliveries for a stream of grants.
pub(super) fn deliveries(
    messages: MessageOperations,
    consumer: Consumer,
    requests: impl Stream<Item = Result<StreamMessagesRequest, Status>> + Send + Unpin + 'static,
) -> Responses<StreamMessagesResponse> {
    let (answers, receiver) = mpsc::channel(WAITING_MAX);
    let work = run(messages, consumer, requests, answers);
    let task = tokio::spawn(tracing::Instrument::in_current_span(work));
    // The task ends before or with the last response, so waiting for it takes no time.
    let end = stream::once(failure(task)).filter_map(|failure| async { failure.map(Err) });
    let answers = ReceiverStream::new(receiver).map(|(answer, handover): Answer| {
        handover.into_iter().for_each(DeliveryHandover::complete);
        Ok(answer)
    });
    Box::pin(answers.chain(end))
}

async fn failure(task: JoinHandle<Result<(), Status>>) -> Option<Status> {
    match task.await {
        Ok(outcome) => outcome.err(),
        Err(_) => Some(rejected(Fault::new(Reason::InternalError, "the server failed"))),
    }
}

async fn run(
    messages: MessageOperations,
    Consumer { access, deadline, recorder }: Consumer,
    mut requests: impl Stream<Item = Result<StreamMessagesRequest, Status>> + Unpin,
    answers: mpsc::Sender<Answer>,
) -> Result<(), Status> {
    // A silent client also uses one of the allowed streams.
    let first = tokio::time::timeout(STREAM_IDLE_MAX, requests.try_next()).await;
    let first = first.map_err(|_| silent("no first message came"))?;
    let first = first?.and_then(|request| request.message);
    if let Some(Message::Open(open)) = &first {
        recorder.record(|statistics| statistics.set_queue(&open.queue));
    }
    let Opened { queue, visibility_timeout, mut credit } = open(first).map_err(rejected)?;
    // A missing queue is reported at once, also without credit.
    messages.queues.open(&access, &queue).await.map_err(rejected)?;
    let mut is_open = true;
    let mut receiving = None;
    while is_open || credit > 0 {
        if receiving.is_none() && credit > 0 && !messages.shutdown.is_cancelled() {
            let max = usize::try_from(credit).unwrap_or(usize::MAX).min(RECEIVE_MESSAGES_MAX);
            let receive = Receive { max, visibility_timeout, wait: RECEIVE_WAIT_MAX, deadline };
            receiving = Some(Box::pin(messages.receive(&access, &queue, receive)));
        }
        let is_idle = receiving.is_none();
        let next = async {
            match receiving.as_mut() {
                Some(receiving) => receiving.await,
                None => std::future::pending().await,
            }
        };
        let ReceivedBatch { delivered, handover } = tokio::select! {
            // Grants first: they are the only requests of a client, and bounded by its credit. The receive in flight
            // continues: to release what it has already made invisible would cost a commit.
            biased;
            request = requests.try_next(), if is_open => {
                match request? {
                    Some(request) => credit = grant(&request, credit).map_err(rejected)?,
                    None => is_open = false,
                }
                continue;
            }
            () = answers.closed() => return Ok(()),
            // A receive in flight ends by itself then.
            () = messages.shutdown.cancelled(), if is_idle => {
                let message = "the server is about to end: open the stream again";
                return Err(rejected(Fault::new(Reason::ServerUnavailable, message)));
            }
            received = next => received.map_err(rejected)?,
        };
        receiving = None;
        if delivered.is_empty() {
            continue;
        }
        credit = credit.saturating_sub(u32::try_from(delivered.len()).unwrap_or(u32::MAX));
        let deliveries: Vec<_> = delivered.into_iter().map(render::delivery).collect();
        record_returned(&recorder, deliveries.iter().map(|delivery| delivery.message.as_ref()));
        let answer = (StreamMessagesResponse { deliveries }, handover);
        if answers.send_timeout(answer, STREAM_IDLE_MAX).await.is_err() {
            return Err(silent("no delivery was read"));
        }
    }
    Ok(())
}

/// The status with which a stream of an idle client ends.
fn silent(what: &str) -> Status {
    let message = format!("{what}: seconds=`{}`", STREAM_IDLE_MAX.as_secs());
    rejected(Fault::new(Reason::OperationTimedOut, message))
}

fn open(first: Option<Message>) -> Result<Opened, Fault> {
    let mut violations = Violations::default();
    let Some(Message::Open(StreamOpen { queue, visibility_timeout, credit })) = first else {
        let rule = "required: the first message opens the stream";
        return Err(Fault::violation(Reason::InvalidInput, "open", rule));
    };
    let queue = QueueName::parse(queue, "open.queue", &mut violations);
    let field = "open.visibility_timeout";
    let visibility_timeout = parse::visibility_timeout(visibility_timeout, field, &mut violations);
    check_credit(credit, 0, "open.credit", &mut violations);
    violations.check(())?;
    let queue = queue
        .ok_or_else(|| Fault::new(Reason::InternalError, "a rejected value has no violation"))?;
    Ok(Opened { queue, visibility_timeout, credit })
}

/// The credit after a grant.
fn grant(request: &StreamMessagesRequest, credit: u32) -> Result<u32, Fault> {
    let Some(Message::Grant(grant)) = &request.message else {
        let rule = "required: every message but the first grants credit";
        return Err(Fault::violation(Reason::InvalidInput, "grant", rule));
    };
    let mut violations = Violations::default();
    if grant.credit == 0 {
        let rule = "must be 1 or more: value=`0`";
        violations.push(Reason::OutOfRangeQueryParameterValue, "grant.credit", rule);
    }
    check_credit(grant.credit, credit, "grant.credit", &mut violations);
    violations.check(credit.saturating_add(grant.credit))
}

fn check_credit(more: u32, credit: u32, field: &str, violations: &mut Violations) {
    if credit.saturating_add(more) > STREAM_CREDIT_MAX {
        let rule = format!("credit must be at most {STREAM_CREDIT_MAX} together");
        let rule = format!("{rule}: unused=`{credit}`, value=`{more}`");
        violations.push(Reason::OutOfRangeQueryParameterValue, field, rule);
    }
}

#[cfg(test)]
mod tests;
