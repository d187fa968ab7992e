//! Bounds the memory of bodies: requests without a response, and responses that are
//! not yet read by their client.
//!
//! Both count against one pool, of which each holder has a share. A call that arrives while it is used up, and one
//! whose request does not fit, is rejected with a retry delay, before its message is complete and so before
//! anything was executed. A large response of a call that only reads is rejected too; the response
//! of a call that may have written never is. The memory that a service derives from a message is
//! proportional to it; what it reads to respond is bounded by its own limits.
//!
//! A request that is one message must also arrive in time: it holds memory and a slot. So must each message of a
//! stream, where that has a bound.

mod arrival;
mod bodies;
mod counted;
mod held_bytes;
mod throttle;

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::header;
use tower::Service;

pub(in crate::layer) use self::held_bytes::HeldBytes;
use self::{
    arrival::ArrivalDeadline,
    bodies::{ANSWER_BYTES_LARGE, CountedPieces, CountedRequest, CountedResponse},
    throttle::BodyThrottle,
};
use super::{
    Request, Response, ResponseFuture,
    body_wrapper::wrap_body,
    compression::ENCODING,
    error_response,
    framing::Framing,
    methods::Methods,
    middleware::{Middleware, MiddlewareLayer},
    shares::{CallHolder, SharePool},
};
use trestle_model::fault::{Fault, message_too_large};
use trestle_model::limits::MESSAGE_BYTES_MAX;

/// Bytes of which a request without a pool may hold three quarters when it is decompressed: a message where no layer
/// bounds it is small.
const UNPOOLED_BYTES_MAX: usize = 128 * 1024;
const WHAT: &str = "bytes of messages";

/// Bounds the bytes of bodies. Clones share the pool.
pub type BodyBytesLayer = MiddlewareLayer<BodyBytes>;

/// See the module.
#[derive(Debug, Clone)]
pub struct BodyBytes {
    pool: Arc<SharePool>,
    bounds: BodyBounds,
    methods: Methods,
}

/// The bounds of bodies.
#[derive(Debug, Clone, Copy)]
pub struct BodyBounds {
    /// Most bytes at a time.
    pub bytes_max: usize,
    /// Largest message of a request.
    pub message_bytes_max: usize,
    /// Longest time until a request of one message has arrived.
    pub arrives_within: Duration,
    /// Longest time until the next message of a stream has arrived; its first one must in the above. None: the service
    /// has a bound of its own.
    pub next_message_within: Option<Duration>,
}

impl BodyBounds {
    /// The bounds of services, whose messages have up to [`MESSAGE_BYTES_MAX`].
    #[must_use]
    pub fn of_services(bytes_max: usize, arrives_within: Duration) -> Self {
        let (message_bytes_max, next_message_within) = (MESSAGE_BYTES_MAX, None);
        Self { bytes_max, message_bytes_max, arrives_within, next_message_within }
    }

    /// The deadline of a request.
    fn deadline(self, is_stream: bool) -> Option<ArrivalDeadline> {
        let next = self.next_message_within.filter(|_| is_stream);
        (!is_stream || next.is_some()).then(|| ArrivalDeadline::new(self.arrives_within, next))
    }

    /// Most bytes that a request of one message may declare: the largest message as text in base64, with room to spare.
    fn declared_bytes_max(self) -> u64 {
        u64::try_from(self.message_bytes_max.saturating_mul(2)).unwrap_or(u64::MAX)
    }
}

impl BodyBytesLayer {
    /// Keeps bodies within `bounds`.
    #[must_use]
    pub fn new(bounds: BodyBounds, methods: Methods) -> Self {
        Self(BodyBytes { pool: SharePool::new(WHAT, bounds.bytes_max), bounds, methods })
    }
}

/// Marks a request, in its extensions, whose body has no gRPC framing: one message, or a stream of
/// bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unframed {
    /// Whether it is compressed and so becomes larger when it is read.
    pub is_compressed: bool,
    /// Whether it, or the body of its response, is a stream: a transfer of bulk data.
    pub is_stream: bool,
}

impl Unframed {
    /// Whether a request is marked as a stream.
    pub(super) fn is_stream(request: &Request) -> bool {
        request.extensions().get::<Self>().is_some_and(|unframed| unframed.is_stream)
    }
}

/// The length that a request declares, in its extensions: a translation of its body removes the header.
#[derive(Debug, Clone, Copy)]
pub struct DeclaredLength(u64);

impl DeclaredLength {
    /// Keeps the declared length of a request, if it has one.
    pub fn keep(request: &mut Request) {
        if let Some(length) = Self::of(request) {
            request.extensions_mut().insert(length);
        }
    }

    fn of(request: &Request) -> Option<Self> {
        let kept = request.extensions().get::<Self>().copied();
        let length = || request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
        kept.or_else(|| length().map(Self))
    }
}

/// The pool of bodies, in the extensions of a request whose messages are decompressed or collected behind it.
#[derive(Debug, Clone)]
pub(in crate::layer) struct BodyPool(Arc<SharePool>);

impl BodyPool {
    /// The pool of a request; a small one of its own where no layer has put one on it.
    fn of(extensions: &http::Extensions) -> Self {
        let small = || Self(SharePool::new(WHAT, UNPOOLED_BYTES_MAX));
        extensions.get::<Self>().cloned().unwrap_or_else(small)
    }

    /// Bytes of the pool of a request.
    pub(in crate::layer) fn held(extensions: &http::Extensions) -> HeldBytes {
        let Self(pool) = Self::of(extensions);
        HeldBytes::new(pool, CallHolder::of(extensions))
    }
}

/// What a call holds of responses that are collected before they are sent.
#[derive(Debug)]
pub struct CollectedResponses {
    pool: Arc<SharePool>,
    holder: CallHolder,
    reads: bool,
}

impl CollectedResponses {
    /// Of the calls of a request, which only reads or not.
    #[must_use]
    pub fn of(extensions: &http::Extensions, reads: bool) -> Self {
        let BodyPool(pool) = BodyPool::of(extensions);
        Self { pool, holder: CallHolder::of(extensions), reads }
    }

    /// Counts a response of so many bytes until the call has ended, if it is large.
    ///
    /// # Errors
    /// The holder has its share, and the call may be repeated: it only reads.
    pub fn add(&self, bytes: usize) -> Result<(), Fault> {
        if bytes < ANSWER_BYTES_LARGE {
            return Ok(());
        }
        let holder = self.holder.holder();
        let share = match self.pool.take(holder, bytes) {
            Err(fault) if self.reads => return Err(fault),
            share => share.unwrap_or_else(|_| self.pool.overdraw(holder, bytes)),
        };
        self.holder.keep(share);
        Ok(())
    }
}

impl Middleware for BodyBytes {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let Self { pool, bounds, methods } = self;
        if pool.is_used_up() {
            let fault = pool.used_up();
            return Box::pin(async move { Ok(error_response(fault)) });
        }
        let method = methods.find(request.uri().path());
        let unframed = request.extensions().get::<Unframed>().copied();
        let is_bulk = unframed.is_some_and(|unframed| unframed.is_stream);
        let (is_stream, reads) = (method.streams_in || is_bulk, method.reads);
        let is_larger = |length: DeclaredLength| length.0 > bounds.declared_bytes_max();
        if !is_stream && DeclaredLength::of(&request).is_some_and(is_larger) {
            let fault = message_too_large(bounds.message_bytes_max);
            return Box::pin(async move { Ok(error_response(fault)) });
        }
        let (holder, deadline) = (CallHolder::of(request.extensions()), bounds.deadline(is_stream));
        let held_bytes = Arc::new(HeldBytes::new(Arc::clone(pool), holder.clone()));
        let (pool, arriving) = (Arc::clone(pool), Arc::clone(&held_bytes));
        let framing = match unframed {
            Some(Unframed { is_compressed, .. }) => {
                Framing::none(is_compressed, bounds.message_bytes_max)
            }
            None => Framing::of_messages(bounds.message_bytes_max),
        };
        // Both bodies count for the quota of the account, which is not known yet.
        let throttle = |delays| BodyThrottle::new(holder.clone(), delays);
        let (throttle, throttled) = (throttle(is_stream), throttle(method.streams || is_bulk));
        let counted = CountedResponse {
            pool: Arc::clone(&pool),
            holder: holder.clone(),
            throttle: throttled,
            reads,
        };
        if unframed.is_some() || request.headers().contains_key(ENCODING) {
            request.extensions_mut().insert(BodyPool(Arc::clone(&pool)));
        }
        let request = request.map(|body| match is_bulk {
            true => wrap_body(body, CountedPieces { pool, holder, throttle }),
            false => wrap_body(body, CountedRequest::new(framing, arriving, deadline, throttle)),
        });
        let answer = inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            // The message that did not fit never reached the service, through any layer.
            if !is_stream && let Some(fault) = held_bytes.rejected() {
                return Ok(error_response(fault));
            }
            Ok(answer.map(|body| wrap_body(body, counted)))
        })
    }
}
