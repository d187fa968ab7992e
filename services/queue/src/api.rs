//! The gRPC interface of the service: parse the request, call the domain, render the response. It contains no
//! decisions.

mod access_log;
mod handover;
mod parse;
mod render;
mod settings;
mod stream;

use std::{pin::Pin, sync::Arc, time::Duration};
use trestle_proto::google::rpc::Status as ItemStatus;
use trestle_rpc::status::IntoStatus as _;

use futures::Stream;
use tonic::{Request, Response, Status, Streaming};
use trestle_identity::{access_policy::recheck::PolicyRechecks, caller::Caller};
use trestle_kv::Engine;
use trestle_model::{fault::Fault, name::AccountName, time::Ticks};
use trestle_proto::queue::v1::{self as proto, queue_service_server::QueueService};
use trestle_rpc::call_statistics::StatisticsRecorder;
use trestle_rpc::layer::admission::check_wait;
use trestle_rpc::layer::deadline::CallDeadline;
use trestle_rpc::served_store::StoreProcesses;

pub use self::handover::Handovers;
use self::{
    access_log::{NamedRequest, record_returned},
    handover::ResponseHandover,
};
use crate::{
    QUEUE_SERVICE, QueueDeps,
    authorize::{self, Need, QueueAccess},
    backlog::Backlogs,
    delivery::{OwnershipPolicy, TakeOverAlways},
    error::QueueError,
    messages::MessageOperations,
    placement::TakeOverPlaced,
    receive::Receive,
    release::ReceivedBatch,
    sweep::Sweeper,
};

/// A stream of responses.
type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The implementation of `trestle.queue.v1.QueueService`.
#[derive(Clone)]
pub struct QueueApi {
    engine: Arc<dyn Engine>,
    messages: MessageOperations,
    sweeper: Arc<Sweeper>,
    processes: StoreProcesses,
    started_at: Ticks,
}

impl QueueApi {
    /// Serves the queues in the engine.
    pub(crate) fn new(deps: QueueDeps) -> Self {
        let started_at = deps.clock.now();
        let policy: Arc<dyn OwnershipPolicy> = match deps.placement {
            Some(placement) => Arc::new(TakeOverPlaced(placement)),
            None => Arc::new(TakeOverAlways),
        };
        let engine = Arc::clone(&deps.engine);
        let mut messages = MessageOperations::new(engine, deps.clock, deps.random, policy);
        messages.queues = messages.queues.with_quotas(deps.storage);
        let sweeper = Arc::new(Sweeper::new(messages.clone()));
        Self { engine: deps.engine, messages, sweeper, processes: deps.processes, started_at }
    }

    /// Ends the wait of every consumer, now and later.
    pub(crate) fn shut_down(&self) {
        self.messages.shutdown.cancel();
    }

    /// See [`MessageOperations::backlogs`].
    pub(crate) async fn backlogs(
        &self,
        each: impl FnMut(&str, &str) + Send,
    ) -> Result<Backlogs, QueueError> {
        self.messages.backlogs(each).await
    }

    /// Measures what accounts store.
    pub(crate) async fn measure(&self) -> Result<(), Fault> {
        self.messages.queues.measure().await
    }

    /// See [`MessageOperations::follow_owners`].
    pub(crate) async fn follow_owners(&self) -> Result<(), QueueError> {
        self.messages.follow_owners().await
    }

    /// The background work.
    pub(crate) fn sweeper(&self) -> &Sweeper {
        &self.sweeper
    }

    /// Ends streams, and receives that wait, whose stored access policy stops granting them.
    pub(crate) fn rechecks(&self) -> PolicyRechecks {
        let queues = self.messages.queues.clone();
        PolicyRechecks::new(move |caller| {
            let queues = queues.clone();
            Box::pin(async move { queues.admit(&caller).await.map_err(Fault::from) })
        })
    }

    /// The account that a request works in, and the message, for a caller with the required permission.
    ///
    /// Only this function and [`QueueApi::enter`] return the message.
    async fn open<T: NamedRequest>(
        &self,
        request: Request<T>,
        need: Need,
    ) -> Result<(AccountName, T), Status> {
        let caller = caller_of(&request).map_err(rejected)?;
        self.messages.queues.admit(&caller).await.map_err(rejected)?;
        authorize::check(&caller, need).map_err(rejected)?;
        Ok((caller.account.clone(), request.into_inner()))
    }

    /// The access of a caller to the messages of queues, and the message. The lookup of a queue checks with the access
    /// that it is the right one.
    async fn enter<T: NamedRequest>(
        &self,
        request: Request<T>,
        need: Need,
    ) -> Result<(QueueAccess, T), Status> {
        let caller = caller_of(&request).map_err(rejected)?;
        self.messages.queues.admit(&caller).await.map_err(rejected)?;
        let access = QueueAccess::new(caller, need).map_err(rejected)?;
        Ok((access, request.into_inner()))
    }
}

/// The caller of a request, whose names are recorded before anything is checked.
fn caller_of<T: NamedRequest>(request: &Request<T>) -> Result<Arc<Caller>, Fault> {
    StatisticsRecorder::of(request.extensions())
        .record(|statistics| request.get_ref().record_names(statistics));
    Caller::of(request)
}

/// The status of a failed call.
fn rejected(error: impl Into<Fault>) -> Status {
    error.into().into_status(QUEUE_SERVICE)
}

/// The response to a call.
fn answer<T>(outcome: Result<T, Fault>) -> Result<Response<T>, Status> {
    outcome.map(Response::new).map_err(rejected)
}

/// An error as part of a response.
fn item_error(error: impl Into<Fault>) -> ItemStatus {
    error.into().into_item_status(QUEUE_SERVICE)
}

#[tonic::async_trait]
impl QueueService for QueueApi {
    type StreamMessagesStream = Responses<proto::StreamMessagesResponse>;

    async fn create_queue(
        &self,
        request: Request<proto::CreateQueueRequest>,
    ) -> Result<Response<proto::CreateQueueResponse>, Status> {
        let (account, message) = self.open(request, Need::CreateQueue).await?;
        answer(self.create(&account, message).await)
    }

    async fn get_queue(
        &self,
        request: Request<proto::GetQueueRequest>,
    ) -> Result<Response<proto::GetQueueResponse>, Status> {
        let (access, message) = self.enter(request, Need::ReadQueue).await?;
        answer(self.get(&access, message).await)
    }

    async fn update_queue(
        &self,
        request: Request<proto::UpdateQueueRequest>,
    ) -> Result<Response<proto::UpdateQueueResponse>, Status> {
        let (account, message) = self.open(request, Need::WriteQueue).await?;
        answer(self.update(&account, message).await)
    }

    async fn list_queues(
        &self,
        request: Request<proto::ListQueuesRequest>,
    ) -> Result<Response<proto::ListQueuesResponse>, Status> {
        let (account, message) = self.open(request, Need::ListQueues).await?;
        answer(self.list(&account, message).await)
    }

    async fn delete_queue(
        &self,
        request: Request<proto::DeleteQueueRequest>,
    ) -> Result<Response<proto::DeleteQueueResponse>, Status> {
        let (account, message) = self.open(request, Need::DeleteQueue).await?;
        let name = parse::queue(message.queue).map_err(rejected)?;
        self.messages.queues.delete(&account, name).await.map_err(rejected)?;
        answer(Ok(proto::DeleteQueueResponse {}))
    }

    async fn get_queue_access_policies(
        &self,
        request: Request<proto::GetQueueAccessPoliciesRequest>,
    ) -> Result<Response<proto::GetQueueAccessPoliciesResponse>, Status> {
        let (account, message) = self.open(request, Need::AccessPolicies).await?;
        answer(self.policies(&account, message).await)
    }

    async fn set_queue_access_policies(
        &self,
        request: Request<proto::SetQueueAccessPoliciesRequest>,
    ) -> Result<Response<proto::SetQueueAccessPoliciesResponse>, Status> {
        let (account, message) = self.open(request, Need::AccessPolicies).await?;
        answer(self.set_policies(&account, message).await)
    }

    async fn send_messages(
        &self,
        request: Request<proto::SendMessagesRequest>,
    ) -> Result<Response<proto::SendMessagesResponse>, Status> {
        let (access, message) = self.enter(request, Need::Add).await?;
        let send = parse::send(message).map_err(rejected)?;
        let parse::Send { queue, request_id, messages } = send;
        let sent = self.messages.send(&access, &queue, messages, request_id).await;
        answer(sent.map(render::sent).map_err(Fault::from))
    }

    async fn receive_messages(
        &self,
        request: Request<proto::ReceiveMessagesRequest>,
    ) -> Result<Response<proto::ReceiveMessagesResponse>, Status> {
        let recorder = StatisticsRecorder::of(request.extensions());
        let may_wait = check_wait(request.metadata());
        let deadline = CallDeadline::of(request.extensions());
        let (access, message) = self.enter(request, Need::Process).await?;
        let (queue, mut receive) = parse::receive(message).map_err(rejected)?;
        let waits = !receive.wait.is_zero();
        if may_wait.is_err() {
            receive.wait = Duration::ZERO;
        }
        let receive = Receive { deadline, ..receive };
        let received = self.messages.receive(&access, &queue, receive).await.map_err(rejected)?;
        let ReceivedBatch { delivered, handover } = received;
        if waits && delivered.is_empty() {
            may_wait.map_err(rejected)?;
        }
        let deliveries: Vec<_> = delivered.into_iter().map(render::delivery).collect();
        record_returned(&recorder, deliveries.iter().map(|delivery| delivery.message.as_ref()));
        let mut answer = Response::new(proto::ReceiveMessagesResponse { deliveries });
        if let Some(handover) = handover {
            answer.extensions_mut().insert(ResponseHandover::new(handover));
        }
        Ok(answer)
    }

    async fn stream_messages(
        &self,
        request: Request<Streaming<proto::StreamMessagesRequest>>,
    ) -> Result<Response<Self::StreamMessagesStream>, Status> {
        let recorder = StatisticsRecorder::of(request.extensions());
        let deadline = CallDeadline::of(request.extensions());
        let (access, requests) = self.enter(request, Need::Process).await?;
        let consumer = stream::Consumer { access, deadline, recorder };
        answer(Ok(stream::deliveries(self.messages.clone(), consumer, requests)))
    }

    async fn peek_messages(
        &self,
        request: Request<proto::PeekMessagesRequest>,
    ) -> Result<Response<proto::PeekMessagesResponse>, Status> {
        let recorder = StatisticsRecorder::of(request.extensions());
        let (access, message) = self.enter(request, Need::Peek).await?;
        let (queue, peek) = parse::peek(message).map_err(rejected)?;
        let page = self.messages.peek(&access, &queue, &peek).await.map_err(rejected)?;
        let messages = page.messages.into_iter().map(render::peeked);
        let messages: Vec<_> = messages.collect();
        record_returned(&recorder, messages.iter().map(Some));
        let next_page_token = page.next_page_token.unwrap_or_default();
        answer(Ok(proto::PeekMessagesResponse { messages, next_page_token }))
    }

    async fn update_message(
        &self,
        request: Request<proto::UpdateMessageRequest>,
    ) -> Result<Response<proto::UpdateMessageResponse>, Status> {
        let (access, message) = self.enter(request, Need::Update).await?;
        // Without a body it only extends the time of a consumer, so the layer in front of the service cannot reject the
        // call.
        if message.body.is_some() {
            self.messages.queues.check_bytes(access.account()).map_err(rejected)?;
        }
        let (queue, update) = parse::update(message).map_err(rejected)?;
        let update = match update {
            Ok(update) => update,
            Err(fault) => {
                self.messages.queues.open(&access, &queue).await.map_err(rejected)?;
                return Err(rejected(fault));
            }
        };
        let receipt = self.messages.update(&access, &queue, update).await.map_err(rejected)?;
        answer(Ok(proto::UpdateMessageResponse {
            pop_receipt: receipt.to_text(),
            next_visible_time: Some(receipt.slot.visible_at.into()),
        }))
    }

    async fn delete_messages(
        &self,
        request: Request<proto::DeleteMessagesRequest>,
    ) -> Result<Response<proto::DeleteMessagesResponse>, Status> {
        let (access, message) = self.enter(request, Need::Process).await?;
        let (queue, receipts) = parse::delete(message).map_err(rejected)?;
        let claimed = receipts.iter().filter_map(|receipt| receipt.clone().ok()).collect();
        let deleted = self.messages.delete(&access, &queue, claimed).await.map_err(rejected)?;
        let mut deleted = deleted.into_iter();
        let results = receipts.into_iter().map(|receipt| {
            let error = match receipt {
                Err(fault) => Some(item_error(fault)),
                Ok(_) if deleted.next() == Some(true) => None,
                Ok(claimed) => Some(item_error(QueueError::MessageNotFound(claimed.message_id))),
            };
            proto::DeleteResult { error }
        });
        answer(Ok(proto::DeleteMessagesResponse { results: results.collect() }))
    }

    async fn clear_messages(
        &self,
        request: Request<proto::ClearMessagesRequest>,
    ) -> Result<Response<proto::ClearMessagesResponse>, Status> {
        let (account, message) = self.open(request, Need::Clear).await?;
        let name = parse::queue(message.queue).map_err(rejected)?;
        self.messages.queues.clear(&account, name).await.map_err(rejected)?;
        answer(Ok(proto::ClearMessagesResponse {}))
    }

    async fn redrive_messages(
        &self,
        request: Request<proto::RedriveMessagesRequest>,
    ) -> Result<Response<proto::RedriveMessagesResponse>, Status> {
        let (access, message) = self.enter(request, Need::Redrive).await?;
        let (queue, destination, max) = parse::redrive(message).map_err(rejected)?;
        let moved = self.messages.redrive(&access, &queue, destination, max).await;
        let moved = u32::try_from(moved.map_err(rejected)?).unwrap_or(u32::MAX);
        answer(Ok(proto::RedriveMessagesResponse { moved }))
    }

    async fn get_service_properties(
        &self,
        request: Request<proto::GetServicePropertiesRequest>,
    ) -> Result<Response<proto::GetServicePropertiesResponse>, Status> {
        let (account, _) = self.open(request, Need::ReadProperties).await?;
        answer(self.properties(&account).await)
    }

    async fn set_service_properties(
        &self,
        request: Request<proto::SetServicePropertiesRequest>,
    ) -> Result<Response<proto::SetServicePropertiesResponse>, Status> {
        let (account, message) = self.open(request, Need::WriteProperties).await?;
        answer(self.set_properties(&account, message).await)
    }

    async fn get_service_stats(
        &self,
        request: Request<proto::GetServiceStatsRequest>,
    ) -> Result<Response<proto::GetServiceStatsResponse>, Status> {
        let (account, _) = self.open(request, Need::ReadStats).await?;
        let pending = self.sweeper.pending().await.map_err(rejected)?;
        let quotas = self.messages.queues.quotas(&account);
        let stats = render::service_stats(&self.engine.status(), self.started_at, pending);
        let processes = self.processes.list();
        answer(Ok(proto::GetServiceStatsResponse { quotas, processes, ..stats }))
    }
}
