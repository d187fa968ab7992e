//! The slow-client guard: resets a call over HTTP/2 whose client does not receive its response, and
//! only that call. Others on the connection, which may belong to other clients behind a gateway, go
//! on.
//!
//! A client stops a response by granting no flow-control window. Such a call waits in hyper, which has
//! no time limit, so two things are done around it. Large responses are sent in pieces, and once a
//! connection holds many bytes that its client has not received, a response ends only when all its
//! pieces have left the process: a call lasts as long as it holds memory. And the future of the call
//! is polled inside one that distinguishes waiting for the service from waiting for the client, and
//! drops the call when the client exceeds its slow-writer budget; the client gets RST_STREAM.
//!
//! The connection of a client that does not read its socket at all is closed, by the budget of the socket.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use tonic::{Status, body::Body};
use tracing::debug;

use super::{goaway::CallInFlight, slow_writer::WriteBudget};

/// Largest piece of a response that is sent at once.
const PIECE_BYTES_MAX: usize = 64 * 1024;
/// Pieces under this size are not counted: a call has few of them.
const PIECE_BYTES_COUNTED: usize = 1024;
/// How many unsent bytes a connection may hold for calls that have ended.
const UNGUARDED_BYTES_MAX: usize = 1024 * 1024;

/// The progress of the response of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ResponseProgress {
    /// Pieces that were sent.
    parts: u32,
    /// Bytes of them.
    bytes: usize,
    /// Whether the call waits for the client to receive one.
    waits_for_client: bool,
}

tokio::task_local! {
    /// Of the call that is being polled.
    static PROGRESS: Cell<ResponseProgress>;
}

impl ResponseProgress {
    /// The client has one more piece to receive.
    fn sent(&mut self, bytes: usize) {
        self.parts = self.parts.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
        self.waits_for_client = true;
    }
}

/// Records progress, where the call is guarded.
fn record(change: impl FnOnce(&mut ResponseProgress)) {
    let recorded = PROGRESS.try_with(|cell| {
        let mut progress = cell.get();
        change(&mut progress);
        cell.set(progress);
    });
    // Calls over HTTP/1 are not: the budget of the socket applies to them.
    recorded.ok();
}

/// A call that ends when its client has spent the budget. The call itself is boxed, as the returned
/// future is moved several times on its way into a task.
pub(super) fn guard(
    call: impl Future<Output = ()>,
    budget: Duration,
) -> impl Future<Output = ()> + Unpin {
    let mut call = Box::pin(call);
    let (mut seen, mut budget) = (ResponseProgress::default(), WriteBudget::new(budget));
    // Runs while the call waits for the client.
    let mut clock: Option<(Instant, Pin<Box<Sleep>>)> = None;
    poll_fn(move |cx| {
        let (polled, progress) = PROGRESS.sync_scope(Cell::new(seen), || {
            let polled = call.as_mut().poll(cx);
            (polled, PROGRESS.with(Cell::get))
        });
        if polled.is_ready() {
            return Poll::Ready(());
        }
        if progress != seen || !progress.waits_for_client {
            if let Some((since, _)) = clock.take() {
                budget.spend(since.elapsed());
            }
            budget.refill(progress.bytes.wrapping_sub(seen.bytes));
        }
        seen = progress;
        if !progress.waits_for_client {
            return Poll::Pending;
        }
        let (_, clock) =
            clock.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(budget.left()))));
        ready!(clock.as_mut().poll(cx));
        debug!("call reset: the client receives its response too slowly");
        Poll::Ready(())
    })
}

/// The bytes of responses on a connection that have not left the process. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(super) struct UnsentBytes(Arc<AtomicUsize>);

/// The body of a response, in pieces.
pub(super) struct PiecedBody {
    body: Body,
    connection: UnsentBytes,
    /// The rest of a frame that is sent piece by piece.
    rest: Bytes,
    /// The pieces that have not left the process, once one exists.
    unsent: Option<Arc<UnsentPieces>>,
    /// The end of the response (trailers, an error or neither), once it was read.
    end: Option<Option<Result<Frame<Bytes>, Status>>>,
    /// The call, until its response has ended.
    _call: Option<CallInFlight>,
}

impl PiecedBody {
    /// Of a response on a connection.
    pub(super) fn new(body: Body, connection: UnsentBytes, call: Option<CallInFlight>) -> Self {
        Self { body, connection, rest: Bytes::new(), unsent: None, end: None, _call: call }
    }

    fn piece(&mut self) -> Bytes {
        let bytes = self.rest.split_to(self.rest.len().min(PIECE_BYTES_MAX));
        if bytes.len() < PIECE_BYTES_COUNTED {
            return bytes;
        }
        let (unsent, connection) = (self.unsent.get_or_insert_default(), self.connection.clone());
        unsent.pieces.fetch_add(1, Ordering::AcqRel);
        connection.0.fetch_add(bytes.len(), Ordering::Relaxed);
        Bytes::from_owner(ResponsePiece { bytes, unsent: Arc::clone(unsent), connection })
    }
}

impl http_body::Body for PiecedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.rest.is_empty() && this.end.is_none() {
            record(|progress| progress.waits_for_client = false);
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => this.end = Some(Some(Ok(trailers))),
                },
                end => this.end = Some(end),
            }
        }
        let Some(end) = &mut this.end else {
            let piece = this.piece();
            record(|progress| progress.sent(piece.len()));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        };
        record(|progress| progress.waits_for_client = true);
        let is_much = this.connection.0.load(Ordering::Relaxed) > UNGUARDED_BYTES_MAX;
        if let Some(unsent) = this.unsent.as_ref().filter(|_| is_much) {
            ready!(unsent.poll_empty(cx));
        }
        Poll::Ready(end.take())
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.end.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// The pieces of a response that have not left the process.
#[derive(Debug, Default)]
struct UnsentPieces {
    pieces: AtomicUsize,
    waiting: AtomicWaker,
}

impl UnsentPieces {
    fn poll_empty(&self, cx: &Context<'_>) -> Poll<()> {
        self.waiting.register(cx.waker());
        match self.pieces.load(Ordering::Acquire) {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

struct ResponsePiece {
    bytes: Bytes,
    unsent: Arc<UnsentPieces>,
    connection: UnsentBytes,
}

impl AsRef<[u8]> for ResponsePiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ResponsePiece {
    fn drop(&mut self) {
        self.connection.0.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        if self.unsent.pieces.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.unsent.waiting.wake();
        }
    }
}
