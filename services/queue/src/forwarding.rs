//! Forwarding: a call about a queue goes to the process that the queue is placed in, as it is.
//!
//! A process that does not own the queue has done nothing, and neither has one that is not reached. Then it is looked
//! again which processes there are, and the call is repeated, so that a queue that moves is a delay to its clients. A
//! call that a process forwarded is handled where it arrives, or is rejected there: it never travels in a circle.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf as _, Bytes, BytesMut};
use opentelemetry::metrics::{Counter, Meter};
use prost::Message as _;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tonic::{Status, body::Body};
use tower::Service;
use trestle_identity::{caller::Caller, store_peers::FromStorePeer};
use trestle_model::limits::MESSAGE_BYTES_MAX;
use trestle_proto::queue::v1::{GetQueueRequest, StreamMessagesRequest, stream_messages_request};
use trestle_rpc::{
    layer::{
        CallService, Request, Response, ResponseFuture,
        body_wrapper::{BodyPart, BodyWrapper, Next, wrap_body},
        compression::ACCEPT_ENCODING,
    },
    not_owner::is_not_owner,
    semconv,
    upstream::NothingChanged,
};

use crate::{QUEUE_SERVICE, placement::QueuePlacement};

/// How long a call is repeated: longer than a process that is gone counts as there.
const REPEATED_FOR: Duration = Duration::from_secs(15);
/// How long it waits before it is repeated.
const PAUSE: Duration = Duration::from_millis(100);
/// Most calls that are repeated at a time; the error of more is returned at once.
const REPEATED_MAX: usize = 512;
/// Bytes before each message: a flag, and the length.
const HEAD_BYTES: usize = 5;

/// The calls about one queue. Their requests name it in the first field, or in that of the first message.
const ABOUT_A_QUEUE: [&str; 12] = [
    "GetQueue",
    "DeleteQueue",
    "GetQueueAccessPolicies",
    "SetQueueAccessPolicies",
    "SendMessages",
    "ReceiveMessages",
    STREAM,
    "PeekMessages",
    "UpdateMessage",
    "DeleteMessages",
    "ClearMessages",
    "RedriveMessages",
];
/// The one of them whose request is a stream.
const STREAM: &str = "StreamMessages";

/// The service of queues of all processes, before the one of this process. Clones share the bound on repeated calls.
#[derive(Clone)]
pub struct QueuesOfAll {
    local: CallService,
    placement: Arc<dyn QueuePlacement>,
    repeated: Arc<Semaphore>,
    forwarded: Counter<u64>,
}

impl QueuesOfAll {
    /// Before the service of this process.
    #[must_use]
    pub fn new(local: CallService, placement: Arc<dyn QueuePlacement>, meter: &Meter) -> Self {
        let repeated = Arc::new(Semaphore::new(REPEATED_MAX));
        Self { local, placement, repeated, forwarded: semconv::forwarded(meter) }
    }
}

impl Service<Request> for QueuesOfAll {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.local.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let is_forwarded = request.extensions().get::<FromStorePeer>().is_some();
        match method(&request) {
            Some(method) if !is_forwarded => {
                let (queues, is_stream) = (self.clone(), method == STREAM);
                Box::pin(async move { Ok(queues.serve(request, is_stream).await) })
            }
            Some(_) | None => self.local.call(request),
        }
    }
}

/// The method of a call about one queue.
fn method(request: &Request) -> Option<&'static str> {
    let (service, called) = request.uri().path().strip_prefix('/')?.split_once('/')?;
    let found = ABOUT_A_QUEUE.into_iter().find(|method| *method == called);
    found.filter(|_| service == QUEUE_SERVICE)
}

impl QueuesOfAll {
    async fn serve(mut self, request: Request, is_stream: bool) -> Response {
        // Invalid headers are rejected by the service.
        let account = Caller::of_call(&request).map(|caller| caller.account.clone());
        let (parts, body) = request.into_parts();
        let mut begun = match BegunRequest::read(body, is_stream).await {
            Ok(begun) => begun,
            Err(status) => return status.into_http(),
        };
        let queue = begun.queue(is_stream).unwrap_or_default();
        let (until, mut permit) = (Instant::now() + REPEATED_FOR, None);
        loop {
            let elsewhere = |account: &_| self.placement.elsewhere(account, &queue);
            let peer = account.as_ref().and_then(|account| elsewhere(account.as_str()));
            let request = Request::from_parts(parts.clone(), begun.body());
            let answer = match peer {
                Some(mut peer) => {
                    self.forwarded.add(1, &[]);
                    peer.call(forwarded(request)).await
                }
                None => self.local.call(request).await,
            };
            let Ok(answer) = answer;
            if !begun.is_whole || !may_be_repeated(&answer) || Instant::now() >= until {
                return answer;
            }
            if permit.is_none() {
                permit = Arc::clone(&self.repeated).try_acquire_owned().ok();
            }
            if permit.is_none() {
                return answer;
            }
            drop(answer);
            sleep(PAUSE).await;
            self.placement.look().await;
        }
    }
}

/// A request to another process: its response is compressed here, if at all.
fn forwarded(mut request: Request) -> Request {
    request.headers_mut().remove(ACCEPT_ENCODING);
    request
}

/// Whether the process of the response is not the owner, or did not answer and has changed nothing.
fn may_be_repeated(answer: &Response) -> bool {
    answer.extensions().get::<NothingChanged>().is_some() || is_not_owner(answer.headers())
}

/// A request of which the first message was read.
struct BegunRequest {
    /// All that was read.
    read: Bytes,
    /// What comes behind it; none at its end, and once it was sent.
    rest: Option<Body>,
    /// Whether what was read is all of it, so that it can be sent again.
    is_whole: bool,
}

impl BegunRequest {
    /// Reads the first message; of a request that is no stream also the end.
    ///
    /// # Errors
    /// Those of the body.
    async fn read(mut body: Body, is_stream: bool) -> Result<Self, Status> {
        let mut read = BytesMut::new();
        while !has_message(&read) {
            match next_data(&mut body).await? {
                Some(data) => read.extend_from_slice(&data),
                None => return Ok(Self { read: read.freeze(), rest: None, is_whole: true }),
            }
        }
        let mut is_whole = false;
        if !is_stream {
            match next_data(&mut body).await? {
                Some(data) => read.extend_from_slice(&data),
                None => is_whole = true,
            }
        }
        Ok(Self { read: read.freeze(), rest: Some(body).filter(|_| !is_whole), is_whole })
    }

    /// The queue that the first message names.
    fn queue(&self, is_stream: bool) -> Option<String> {
        let (head, message) = self.read.split_at_checked(HEAD_BYTES)?;
        let message = message.get(..length(head)?)?;
        if is_stream {
            return match StreamMessagesRequest::decode(message).ok()?.message? {
                stream_messages_request::Message::Open(open) => Some(open.queue),
                stream_messages_request::Message::Grant(_) => None,
            };
        }
        // Each of the requests has the name in this field, and other fields are skipped.
        Some(GetQueueRequest::decode(message).ok()?.queue)
    }

    /// The body of the request: once, unless it is whole.
    fn body(&mut self) -> Body {
        let rest = self.rest.take().unwrap_or_else(Body::empty);
        wrap_body(rest, ReadBefore(self.read.clone()))
    }
}

/// The length in the head of a message.
fn length(mut head: &[u8]) -> Option<usize> {
    head.try_get_u8().ok()?;
    usize::try_from(head.try_get_u32().ok()?).ok()
}

/// Whether what was read has a message, or the head of one that is too large and is rejected.
fn has_message(read: &[u8]) -> bool {
    let Some(length) = length(read) else { return false };
    length > MESSAGE_BYTES_MAX || read.len() >= HEAD_BYTES + length
}

/// The next bytes of a body; none at its end, which some clients send as a frame without bytes.
async fn next_data(body: &mut Body) -> Result<Option<Bytes>, Status> {
    loop {
        let frame = std::future::poll_fn(|cx| {
            http_body::Body::poll_frame(std::pin::Pin::new(&mut *body), cx)
        });
        match frame.await {
            None => return Ok(None),
            Some(frame) => {
                // A request has no trailers that mean anything.
                let data = frame?.into_data().unwrap_or_default();
                if !data.is_empty() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// A body behind what was read of it before.
struct ReadBefore(Bytes);

impl BodyWrapper for ReadBefore {
    fn poll(&mut self, body: std::pin::Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if self.0.is_empty() {
            return http_body::Body::poll_frame(body, cx).map(|part: BodyPart| Next::Part(part));
        }
        let read = std::mem::take(&mut self.0);
        Poll::Ready(Next::Part(Some(Ok(http_body::Frame::data(read)))))
    }

    fn unforwarded(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests;
