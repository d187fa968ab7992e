//! Load shedding: above a fixed number of concurrent calls, further calls are rejected at once,
//! with a retry delay.
//!
//! A call counts until the end of its response, streams included, so that the count follows memory use. A small
//! response of a call that is no stream is read to its end at once, and the call counts no more: whether its client
//! receives it or not, what is left of the call is the response, which counts for a pool of bytes of its own. That of a
//! call that may wait is not: its service detects by the first read that the message is on its way. Streams,
//! which may wait for their clients for long, hold at most half of the slots, so that idle streams never block other
//! calls. Calls that may wait for a message have as many slots of their own: they cost little while they wait. Without
//! one of those left, such a call has the slot of a call, and may not wait: a header reports that to its service. Bulk
//! transfers have slots of their own too, a quarter of those of calls: they last long, and must neither use up the
//! slots of calls nor be rejected because of many calls. Of every pool a peer has a share, and an account once the call
//! is authenticated. Nothing is queued: a queue would only add its own waiting time to every call.

use std::{convert::Infallible, sync::Arc};

use http::{HeaderName, HeaderValue};
use tokio::sync::Semaphore;
use tonic::metadata::MetadataMap;
use tower::Service;

use super::{
    Request, Response, ResponseFuture,
    body_bytes::Unframed,
    body_wrapper::{BodyWrapper, wrap_body},
    error_response,
    finished::{FINISHED_BYTES_MAX, read_ahead},
    methods::Methods,
    middleware::{Middleware, MiddlewareLayer},
    shares::{CallHolder, RETRY_AFTER, SharePool},
};
use trestle_model::fault::{Fault, Reason};

/// Slots of calls for each slot of a bulk transfer.
const CALLS_FOR_BULK: usize = 4;

/// Marks a request, also to the next process, whose call has no slot to wait in.
pub(super) const NO_WAIT: HeaderName = HeaderName::from_static("trestle-no-wait");

/// Whether a call may wait for an event.
///
/// # Errors
/// The rejection of a call that would have to: no slot is left for it.
pub fn check_wait(headers: &MetadataMap) -> Result<(), Fault> {
    match headers.contains_key(NO_WAIT.as_str()) {
        false => Ok(()),
        true => {
            let message = "too many calls that may wait at a time: nothing was there at once";
            Err(Fault::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER))
        }
    }
}

/// Admits a fixed number of concurrent calls. Clones share the number.
pub type AdmissionLayer = MiddlewareLayer<AdmissionControl>;

/// See the module.
#[derive(Debug, Clone)]
pub struct AdmissionControl {
    calls: Arc<SharePool>,
    /// Streams, besides their slots as calls.
    streams: Arc<SharePool>,
    /// Calls that may wait.
    waiting: Arc<SharePool>,
    bulk: Arc<SharePool>,
    /// Bytes of the small responses of calls that hold no slot.
    finished: Arc<SharePool>,
    methods: Methods,
}

impl AdmissionLayer {
    /// Admits up to `calls_max` concurrent calls, and streams among `methods` up to half of that;
    /// besides, up to `calls_max` of those that may wait, and a quarter of it of bulk transfers.
    #[must_use]
    pub fn new(calls_max: usize, methods: Methods) -> Self {
        let calls_max = calls_max.min(Semaphore::MAX_PERMITS);
        Self(AdmissionControl {
            calls: SharePool::new("calls", calls_max),
            streams: SharePool::new("streams", (calls_max / 2).max(1)),
            waiting: SharePool::new("calls that may wait", calls_max),
            bulk: SharePool::new("bulk transfers", (calls_max / CALLS_FOR_BULK).max(1)),
            finished: SharePool::new(
                "bytes of responses that are not received",
                calls_max.saturating_mul(FINISHED_BYTES_MAX),
            ),
            methods,
        })
    }
}

/// The slots of a call, returned when this is dropped.
struct CallSlots(CallHolder);

/// A call with its slots.
struct AdmittedCall {
    slots: CallSlots,
    /// Whether its response is read before its client receives it.
    is_read_ahead: bool,
    may_wait: bool,
}

impl Drop for CallSlots {
    fn drop(&mut self) {
        self.0.release_slots();
    }
}

/// A body holds its slots until it ends or is dropped.
impl BodyWrapper for CallSlots {}

impl AdmissionControl {
    fn admit(&self, request: &Request) -> Result<AdmittedCall, Fault> {
        let method = self.methods.find(request.uri().path());
        let slots = CallSlots(CallHolder::of(request.extensions()));
        if method.is_bulk || Unframed::is_stream(request) {
            slots.0.take_slot(&self.bulk)?;
            return Ok(AdmittedCall { slots, is_read_ahead: false, may_wait: true });
        }
        let may_wait = match method.waits {
            true => slots.0.take_waiting_slot(&self.waiting, &self.calls)?,
            false => {
                slots.0.take_slot(&self.calls)?;
                true
            }
        };
        if method.streams {
            slots.0.take_slot(&self.streams)?;
        }
        let is_read_ahead = !method.streams && !method.waits;
        Ok(AdmittedCall { slots, is_read_ahead, may_wait })
    }
}

impl Middleware for AdmissionControl {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let AdmittedCall { slots, is_read_ahead, may_wait } = match self.admit(&request) {
            Ok(admitted) => admitted,
            Err(fault) => return Box::pin(async move { Ok(error_response(fault)) }),
        };
        request.extensions_mut().insert(slots.0.clone());
        if !may_wait {
            request.headers_mut().insert(NO_WAIT, HeaderValue::from_static("1"));
        }
        let answer = inner.call(request);
        let finished = Arc::clone(&self.finished);
        Box::pin(async move {
            let answer = answer.await?;
            if !is_read_ahead {
                return Ok(answer.map(|body| wrap_body(body, slots)));
            }
            let (head, body) = answer.into_parts();
            let body = match read_ahead(body).await.kept(&finished, slots.0.holder()) {
                Ok(body) => body,
                Err(body) => wrap_body(body, slots),
            };
            Ok(Response::from_parts(head, body))
        })
    }
}
