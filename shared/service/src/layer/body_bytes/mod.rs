//! Bounds the memory of bodies: requests without a response, and responses that are
//! not yet read by their client.
//!
//! Both count against one budget. A call that arrives while it is used up, and one whose request
//! does not fit, is rejected with a retry delay, before its message is complete and so before
//! anything was executed. A large response of a call that only reads is rejected too; the response
//! of a call that may have written never is. The memory that a service derives from a message is
//! proportional to it; what it reads to respond is bounded by its own limits.
//!
//! A request that is one message must also arrive in time: it holds memory and a slot. While many are incomplete, each
//! peer has a share of them.

mod arrival;
mod bodies;
mod budget;
mod held_bytes;

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::header;
use tower::Service;

pub(in crate::layer) use self::held_bytes::HeldBytes;
use self::{
    arrival::{ArrivalDeadline, Arrivals},
    bodies::{CountedPieces, CountedRequest, CountedResponse},
    budget::Budget,
};
use super::{
    Request, Response, ResponseFuture,
    body_wrapper::wrap_body,
    compression::ENCODING,
    error_response,
    framing::Framing,
    methods::Methods,
    middleware::{Middleware, MiddlewareLayer},
};
use crate::{fault::message_too_large, limits::MESSAGE_BYTES_MAX, peer::Peer};

/// Most bytes that a request of one message may declare: the largest message as text in base64, with room to spare.
const DECLARED_BYTES_MAX: u64 = 2 * MESSAGE_BYTES_MAX as u64;

/// Bounds the bytes of bodies. Clones share the budget.
pub type BodyBytesLayer = MiddlewareLayer<BodyBytes>;

/// See the module.
#[derive(Debug, Clone)]
pub struct BodyBytes {
    budget: Arc<Budget>,
    arrivals: Arc<Arrivals>,
    arrives_within: Duration,
    methods: Methods,
}

/// The bounds of bodies.
#[derive(Debug, Clone, Copy)]
pub struct BodyBounds {
    /// Most bytes at a time.
    pub bytes_max: usize,
    /// Most calls at a time. While more than half as many requests are incomplete, a peer may have a quarter.
    pub calls_max: usize,
    /// Longest time until a request of one message has arrived.
    pub arrives_within: Duration,
}

impl BodyBytesLayer {
    /// Keeps bodies within `bounds`.
    #[must_use]
    pub fn new(bounds: BodyBounds, methods: Methods) -> Self {
        let BodyBounds { bytes_max, calls_max, arrives_within } = bounds;
        let budget = Arc::new(Budget::new(bytes_max));
        let arrivals = Arc::new(Arrivals::new(calls_max));
        Self(BodyBytes { budget, arrivals, arrives_within, methods })
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

/// The budget of bodies, in the extensions of a request whose messages are decompressed behind it.
#[derive(Debug, Clone)]
pub(in crate::layer) struct BodyBudget(Arc<Budget>);

impl BodyBudget {
    /// The budget of a request; without bound where no layer has one.
    pub(in crate::layer) fn of(extensions: &http::Extensions) -> Self {
        let unbounded = || Self(Arc::new(Budget::new(usize::MAX)));
        extensions.get::<Self>().cloned().unwrap_or_else(unbounded)
    }

    /// Bytes that are reserved from it.
    pub(in crate::layer) fn held(self) -> HeldBytes {
        HeldBytes::new(self.0)
    }
}

impl Middleware for BodyBytes {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        if self.budget.is_used_up() {
            let fault = self.budget.fault();
            return Box::pin(async move { Ok(error_response(fault)) });
        }
        let method = self.methods.find(request.uri().path());
        let unframed = request.extensions().get::<Unframed>().copied();
        let is_bulk = unframed.is_some_and(|unframed| unframed.is_stream);
        let (is_stream, reads) = (method.streams_in || is_bulk, method.reads);
        if !is_stream
            && DeclaredLength::of(&request).is_some_and(|length| length.0 > DECLARED_BYTES_MAX)
        {
            let fault = message_too_large(MESSAGE_BYTES_MAX);
            return Box::pin(async move { Ok(error_response(fault)) });
        }
        let deadline = match is_stream {
            true => None,
            false => match self.arrivals.begin(Peer::key_of(request.extensions())) {
                Ok(arriving) => Some(ArrivalDeadline::new(self.arrives_within, arriving)),
                Err(fault) => return Box::pin(async move { Ok(error_response(fault)) }),
            },
        };
        let held_bytes = Arc::new(HeldBytes::new(Arc::clone(&self.budget)));
        let (budget, arriving) = (Arc::clone(&self.budget), Arc::clone(&held_bytes));
        let framing = match unframed {
            Some(Unframed { is_compressed, .. }) => Framing::none(is_compressed),
            None => Framing::default(),
        };
        let mut request = request.map(|body| match is_bulk {
            true => wrap_body(body, CountedPieces { budget: Arc::clone(&budget) }),
            false => wrap_body(body, CountedRequest::new(framing, arriving, deadline)),
        });
        if request.headers().contains_key(ENCODING) {
            request.extensions_mut().insert(BodyBudget(Arc::clone(&self.budget)));
        }
        let answer = inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            // The message that did not fit never reached the service, through any layer.
            if !is_stream && let Some(fault) = held_bytes.rejected() {
                return Ok(error_response(fault));
            }
            Ok(answer.map(|body| wrap_body(body, CountedResponse { budget, reads })))
        })
    }
}
