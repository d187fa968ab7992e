//! Ends a call over HTTP/2 whose client does not take its answer, and only that call: others on the
//! connection, which may belong to other clients behind a gateway, go on.
//!
//! A client holds an answer up by giving it no window. Such a call waits in hyper, which offers no
//! time limit, so two things are done around it. Large answers are handed over in pieces, and once
//! a connection holds much that its client has not taken, the end of an answer only when all its
//! pieces have left the process, so that a call lasts as long as it holds memory. And the future of
//! the call runs inside one that knows whether it waits for its service or for its client, and
//! drops it when the client takes too little for too long; the client sees the call reset.
//!
//! A client that does not read its socket at all is ended below, with its connection.

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

use super::{leaving::UnderWay, patience::Patience};

/// Largest piece of an answer that is handed over at once.
const PIECE_BYTES_MAX: usize = 64 * 1024;
/// Parts of answers under this size are not counted: there are few for each call.
const PIECE_BYTES_COUNTED: usize = 1024;
/// How much a connection may hold with the calls already over: what is left when its client takes
/// no more.
const UNATTENDED_BYTES_MAX: usize = 1024 * 1024;

/// How far the answer of a call is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Progress {
    /// Parts that were handed over.
    parts: u32,
    /// Bytes of them.
    bytes: usize,
    /// Whether the client has to take one before there is more to do.
    is_with_client: bool,
}

tokio::task_local! {
    /// The progress of the call that is being polled.
    static PROGRESS: Cell<Progress>;
}

impl Progress {
    /// The client has one part more to take.
    fn part(&mut self, bytes: usize) {
        self.parts = self.parts.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
        self.is_with_client = true;
    }
}

/// Notes progress, where somebody looks at it.
fn note(change: impl FnOnce(&mut Progress)) {
    let noted = PROGRESS.try_with(|cell| {
        let mut progress = cell.get();
        change(&mut progress);
        cell.set(progress);
    });
    // Over HTTP/1 nobody does: there the socket tells.
    noted.ok();
}

/// A call that ends with the patience for its client. The call itself is behind a pointer, as what is returned is
/// moved several times on its way into a task.
pub(super) fn attend(
    call: impl Future<Output = ()>,
    patience: Duration,
) -> impl Future<Output = ()> + Unpin {
    let mut call = Box::pin(call);
    let (mut seen, mut patience) = (Progress::default(), Patience::new(patience));
    // Runs while the client has to take something.
    let mut clock: Option<(Instant, Pin<Box<Sleep>>)> = None;
    poll_fn(move |cx| {
        let (polled, progress) = PROGRESS.sync_scope(Cell::new(seen), || {
            let polled = call.as_mut().poll(cx);
            (polled, PROGRESS.with(Cell::get))
        });
        if polled.is_ready() {
            return Poll::Ready(());
        }
        if progress != seen || !progress.is_with_client {
            if let Some((since, _)) = clock.take() {
                patience.waited(since.elapsed());
            }
            patience.took(progress.bytes.wrapping_sub(seen.bytes));
        }
        seen = progress;
        if !progress.is_with_client {
            return Poll::Pending;
        }
        let (_, clock) =
            clock.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(patience.left()))));
        ready!(clock.as_mut().poll(cx));
        debug!("call reset: the client does not take its answer");
        Poll::Ready(())
    })
}

/// What the answers on a connection hold in this process. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsent(Arc<AtomicUsize>);

/// The body of an answer, in pieces.
pub(super) struct Pieces {
    body: Body,
    connection: Unsent,
    /// What is left of a part that is handed over piece by piece.
    rest: Bytes,
    /// The pieces that have not left, once there are any.
    out: Option<Arc<Out>>,
    /// The end of the answer, once it is known.
    end: Option<Option<Result<Frame<Bytes>, Status>>>,
    /// The call, until its answer is over.
    _call: Option<UnderWay>,
}

impl Pieces {
    /// Of an answer on a connection.
    pub(super) fn new(body: Body, connection: Unsent, call: Option<UnderWay>) -> Self {
        Self { body, connection, rest: Bytes::new(), out: None, end: None, _call: call }
    }

    fn piece(&mut self) -> Bytes {
        let bytes = self.rest.split_to(self.rest.len().min(PIECE_BYTES_MAX));
        if bytes.len() < PIECE_BYTES_COUNTED {
            return bytes;
        }
        let (out, connection) = (self.out.get_or_insert_default(), self.connection.clone());
        out.pieces.fetch_add(1, Ordering::AcqRel);
        connection.0.fetch_add(bytes.len(), Ordering::Relaxed);
        Bytes::from_owner(Piece { bytes, out: Arc::clone(out), connection })
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.rest.is_empty() && this.end.is_none() {
            note(|progress| progress.is_with_client = false);
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
            note(|progress| progress.part(piece.len()));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        };
        note(|progress| progress.is_with_client = true);
        let is_much = this.connection.0.load(Ordering::Relaxed) > UNATTENDED_BYTES_MAX;
        if let Some(out) = this.out.as_ref().filter(|_| is_much) {
            ready!(out.poll_gone(cx));
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

/// The pieces of an answer that have not left the process.
#[derive(Debug, Default)]
struct Out {
    pieces: AtomicUsize,
    waiting: AtomicWaker,
}

impl Out {
    fn poll_gone(&self, cx: &Context<'_>) -> Poll<()> {
        self.waiting.register(cx.waker());
        match self.pieces.load(Ordering::Acquire) {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

struct Piece {
    bytes: Bytes,
    out: Arc<Out>,
    connection: Unsent,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.connection.0.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        if self.out.pieces.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.out.waiting.wake();
        }
    }
}
