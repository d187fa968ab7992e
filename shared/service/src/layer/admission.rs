//! Load shedding: above a fixed number of concurrent calls, further calls are rejected at once,
//! with a retry delay.
//!
//! A call counts until the end of its response, streams included, so that the count follows memory use. Streams,
//! which may wait for their clients for long, hold at most half of the slots, so that idle streams never block other
//! calls. Calls that may wait for a message have as many slots of their own: they cost little while they wait. Bulk
//! transfers have slots of their own too, a quarter of those of calls: they last long, and must neither use up the
//! slots of calls nor be rejected because of many calls. A peer holds at most three quarters of these: one that begins
//! transfers and never ends them leaves the rest to others. Nothing is queued: a queue would only add its own waiting
//! time to every call.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

use super::{
    Request, Response, ResponseFuture,
    body_bytes::Unframed,
    body_wrapper::{BodyWrapper, wrap_body},
    error_response,
    methods::Methods,
    middleware::{Middleware, MiddlewareLayer},
    peer_counts::{CountedCall, PeerCounts},
};
use crate::{
    fault::{Fault, Reason},
    peer::Peer,
};

/// Slots of calls for each slot of a bulk transfer.
const CALLS_FOR_BULK: usize = 4;
/// When a rejected client should retry.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Admits a fixed number of concurrent calls. Clones share the number.
pub type AdmissionLayer = MiddlewareLayer<AdmissionControl>;

/// See the module.
#[derive(Debug, Clone)]
pub struct AdmissionControl {
    slots: Arc<Semaphore>,
    calls_max: usize,
    /// Slots of streams, besides their slots as calls.
    stream_slots: Arc<Semaphore>,
    streams_max: usize,
    /// Slots of calls that may wait.
    waiting_slots: Arc<Semaphore>,
    /// Slots of bulk transfers.
    bulk_slots: Arc<Semaphore>,
    bulk_max: usize,
    bulk_by_peer: Arc<PeerCounts>,
    methods: Methods,
}

impl AdmissionLayer {
    /// Admits up to `calls_max` concurrent calls, and streams among `methods` up to half of that;
    /// besides, up to `calls_max` of those that may wait, and a quarter of it of bulk transfers.
    #[must_use]
    pub fn new(calls_max: usize, methods: Methods) -> Self {
        let calls_max = calls_max.min(Semaphore::MAX_PERMITS);
        let streams_max = (calls_max / 2).max(1);
        let bulk_max = (calls_max / CALLS_FOR_BULK).max(1);
        let semaphore = |slots| Arc::new(Semaphore::new(slots));
        Self(AdmissionControl {
            slots: semaphore(calls_max),
            calls_max,
            stream_slots: semaphore(streams_max),
            streams_max,
            waiting_slots: semaphore(calls_max),
            bulk_slots: semaphore(bulk_max),
            bulk_max,
            bulk_by_peer: PeerCounts::new(),
            methods,
        })
    }
}

/// The slots of a call, released when it is dropped.
struct AdmissionPermits {
    _call: OwnedSemaphorePermit,
    _stream: Option<OwnedSemaphorePermit>,
    _of_peer: Option<CountedCall>,
}

impl AdmissionControl {
    fn admit(&self, request: &Request) -> Result<AdmissionPermits, Fault> {
        let acquire = |slots: &Arc<Semaphore>, what: &str, limit: usize| {
            Arc::clone(slots).try_acquire_owned().map_err(|_| busy(what, limit))
        };
        let method = self.methods.find(request.uri().path());
        if method.is_bulk || Unframed::is_stream(request) {
            let (of_peer, count) = self.bulk_by_peer.begin(Peer::key_of(request.extensions()));
            let share = self.bulk_max - self.bulk_max / 4;
            if count >= share {
                return Err(busy("bulk transfers of a client", share));
            }
            let slot = acquire(&self.bulk_slots, "bulk transfers", self.bulk_max)?;
            return Ok(AdmissionPermits { _call: slot, _stream: None, _of_peer: Some(of_peer) });
        }
        let call = match method.waits {
            true => acquire(&self.waiting_slots, "calls that may wait", self.calls_max)?,
            false => acquire(&self.slots, "calls", self.calls_max)?,
        };
        let stream =
            method.streams.then(|| acquire(&self.stream_slots, "streams", self.streams_max));
        Ok(AdmissionPermits { _call: call, _stream: stream.transpose()?, _of_peer: None })
    }
}

fn busy(what: &str, limit: usize) -> Fault {
    let message = format!("too many {what} at a time: limit=`{limit}`");
    Fault::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER)
}

impl Middleware for AdmissionControl {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let slots = match self.admit(&request) {
            Ok(slots) => slots,
            Err(fault) => return Box::pin(async move { Ok(error_response(fault)) }),
        };
        let answer = inner.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| wrap_body(body, slots))) })
    }
}

/// A body holds its slots until it ends or is dropped.
impl BodyWrapper for AdmissionPermits {}
