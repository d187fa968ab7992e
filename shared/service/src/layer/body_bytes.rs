//! Bounds the memory of bodies: requests that are read and not yet answered, and responses that are
//! not yet read by their client.
//!
//! Both count against one budget. A call that arrives while it is used up, and one whose request
//! does not fit, is rejected with a retry delay, before its message is complete and so before
//! anything was executed. A large response of a call that only reads is rejected too; the response
//! of a call that may have written never is. The memory that a service derives from a message is
//! proportional to it; what it reads to respond is bounded by its own limits.
//!
//! A request that is one message must also arrive in time: it holds memory and a slot.

use std::{
    convert::Infallible,
    future::Future as _,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::{Status, body::Body};
use tower::Service;

use super::{
    Answer, Request, Response,
    frame::{Step, StepLayer},
    framing::Framing,
    methods::Methods,
    passage::{Next, Part, Passage, passing},
    refusal, trailers,
};
use crate::fault::{Fault, Reason};

/// When a rejected client should retry.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// Parts of responses under this size are not counted: there are few for each call.
const ANSWER_BYTES_COUNTED: usize = 1024;
/// Parts of responses from this size on are rejected when they do not fit.
const ANSWER_BYTES_LARGE: usize = 64 * 1024;

/// Bounds the bytes of bodies. Clones share the budget.
pub type BodyBytesLayer = StepLayer<BodyBytes>;

/// See the module.
#[derive(Debug, Clone)]
pub struct BodyBytes {
    budget: Arc<Budget>,
    arrives_within: Duration,
    methods: Methods,
}

impl BodyBytesLayer {
    /// Lets bodies hold up to `bytes_max` at a time, and requires a request that is one message to
    /// arrive completely within `arrives_within`.
    #[must_use]
    pub fn new(bytes_max: usize, arrives_within: Duration, methods: Methods) -> Self {
        let budget = Arc::new(Budget { bytes_max, used: AtomicUsize::new(0) });
        Self(BodyBytes { budget, arrives_within, methods })
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

impl Step for BodyBytes {
    fn call<S>(&self, request: Request, inner: &mut S) -> Answer
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = Answer>,
    {
        if self.budget.is_used_up() {
            let fault = self.budget.fault();
            return Box::pin(async move { Ok(refusal(fault)) });
        }
        let method = self.methods.find(request.uri().path());
        let unframed = request.extensions().get::<Unframed>().copied();
        let is_bulk = unframed.is_some_and(|unframed| unframed.is_stream);
        let (is_stream, reads) = (method.streams_in || is_bulk, method.reads);
        let tally = Arc::new(Tally::new(Arc::clone(&self.budget)));
        let late = (!is_stream).then(|| Late::new(self.arrives_within));
        let (budget, arriving) = (Arc::clone(&self.budget), Arc::clone(&tally));
        let framing = match unframed {
            Some(Unframed { is_compressed, .. }) => Framing::none(is_compressed),
            None => Framing::default(),
        };
        let request = request.map(|body| match is_bulk {
            true => passing(body, ArrivingPieces { budget: Arc::clone(&budget) }),
            false => passing(body, Arriving { framing, tally: arriving, late }),
        });
        let answer = inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            // The message that did not fit never reached the service, whatever is between.
            if !is_stream && let Some(fault) = tally.refused() {
                return Ok(refusal(fault));
            }
            Ok(answer.map(|body| passing(body, Leaving { budget, reads })))
        })
    }
}

/// Bytes that bodies may hold.
#[derive(Debug)]
struct Budget {
    bytes_max: usize,
    used: AtomicUsize,
}

impl Budget {
    fn is_used_up(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.bytes_max
    }

    /// Reserves bytes of the budget if enough remain.
    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Reserves bytes that cannot be rejected; new calls are rejected as long as the budget is
    /// overdrawn.
    fn overdraw(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes reserved from the budget, as a part that releases them when it is dropped.
    fn counted(self: &Arc<Self>, data: Bytes) -> Frame<Bytes> {
        Frame::data(Bytes::from_owner(Counted { data, budget: Arc::clone(self) }))
    }

    fn fault(&self) -> Fault {
        let limit = self.bytes_max;
        let message = format!("messages under way hold too many bytes: limit=`{limit}`");
        Fault::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER)
    }
}

/// The bytes that one request holds, released when the request and its response are dropped.
#[derive(Debug)]
struct Tally {
    budget: Arc<Budget>,
    held: AtomicUsize,
    /// Why the request was rejected: it did not fit, or was late.
    is_over: AtomicBool,
    is_late: AtomicBool,
}

impl Tally {
    fn new(budget: Arc<Budget>) -> Self {
        let [is_over, is_late] = [false; 2].map(AtomicBool::new);
        Self { budget, held: AtomicUsize::new(0), is_over, is_late }
    }

    /// Holds so many bytes from now on, if they fit. Only the body of the request calls this.
    fn hold(&self, bytes: usize) -> bool {
        let before = self.held.load(Ordering::Relaxed);
        if bytes > before && !self.budget.take(bytes - before) {
            self.is_over.store(true, Ordering::Relaxed);
            return false;
        }
        if bytes < before {
            self.budget.give_back(before - bytes);
        }
        self.held.store(bytes, Ordering::Relaxed);
        true
    }

    /// Why the request was rejected, if it was.
    fn refused(&self) -> Option<Fault> {
        if self.is_over.load(Ordering::Relaxed) {
            return Some(self.budget.fault());
        }
        let message = "the request took too long to arrive";
        let is_late = self.is_late.load(Ordering::Relaxed);
        is_late.then(|| Fault::new(Reason::OperationTimedOut, message))
    }

    /// The error that a reader of the body gets.
    fn status(&self) -> Status {
        self.refused().unwrap_or_else(|| self.budget.fault()).into()
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.budget.give_back(self.held.load(Ordering::Relaxed));
    }
}

/// The time by which a request must have arrived. The timer is armed only to wait.
struct Late {
    at: Instant,
    clock: Option<Pin<Box<Sleep>>>,
}

impl Late {
    fn new(within: Duration) -> Self {
        Self { at: Instant::now() + within, clock: None }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        self.clock.get_or_insert_with(|| Box::pin(sleep_until(at))).as_mut().poll(cx)
    }
}

/// The body of a request, counted as it is read.
struct Arriving {
    framing: Framing,
    tally: Arc<Tally>,
    late: Option<Late>,
}

impl Passage for Arriving {
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Poll::Ready(part) = body.poll_frame(cx) {
            return Poll::Ready(self.pass(part));
        }
        let Some(late) = &mut self.late else {
            return Poll::Pending;
        };
        std::task::ready!(late.poll(cx));
        self.tally.is_late.store(true, Ordering::Relaxed);
        Poll::Ready(Next::Part(Some(Err(self.tally.status()))))
    }

    fn pass(&mut self, part: Part) -> Next {
        if let Some(Ok(frame)) = &part
            && let Some(data) = frame.data_ref()
        {
            let held = self.framing.take(data);
            if !self.tally.hold(held) {
                return Next::Part(Some(Err(self.tally.status())));
            }
        }
        Next::Part(part)
    }
}

/// The body of a request that is read in pieces, each counted until its last reader has dropped it.
/// A piece is never rejected: a transfer that has been admitted continues, and as its pieces are
/// read only as fast as they are used, few are in memory at a time.
struct ArrivingPieces {
    budget: Arc<Budget>,
}

impl Passage for ArrivingPieces {
    fn pass(&mut self, part: Part) -> Next {
        let data = match part.map(|part| part.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(other))) => return Next::Part(Some(Ok(other))),
            Some(Err(status)) => return Next::Part(Some(Err(status))),
            None => return Next::Part(None),
        };
        self.budget.overdraw(data.len());
        Next::Part(Some(Ok(self.budget.counted(data))))
    }
}

/// The body of a response, whose parts count until their last reader has dropped them.
struct Leaving {
    budget: Arc<Budget>,
    reads: bool,
}

impl Passage for Leaving {
    const SHORTENS: bool = true;

    fn pass(&mut self, part: Part) -> Next {
        let data = match part.map(|part| part.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(other))) => return Next::Part(Some(Ok(other))),
            Some(Err(status)) => return Next::Part(Some(Err(status))),
            None => return Next::Part(None),
        };
        let bytes = data.len();
        if bytes < ANSWER_BYTES_COUNTED {
            return Next::Part(Some(Ok(Frame::data(data))));
        }
        if !self.budget.take(bytes) {
            if self.reads && bytes >= ANSWER_BYTES_LARGE {
                return Next::Last(Frame::trailers(trailers(self.budget.fault())));
            }
            self.budget.overdraw(bytes);
        }
        Next::Part(Some(Ok(self.budget.counted(data))))
    }
}

/// A part of a response that releases its bytes to the budget when it is dropped.
struct Counted {
    data: Bytes,
    budget: Arc<Budget>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.budget.give_back(self.data.len());
    }
}
