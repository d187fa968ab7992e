//! The body of a response, in pieces whose progress the slow-client guard sees.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};

use super::{goaway::CallInFlight, slow_client::record};

/// Largest piece of a response that is sent at once.
const PIECE_BYTES_MAX: usize = 64 * 1024;
/// Pieces under this size are not counted: a call has few of them.
const PIECE_BYTES_COUNTED: usize = 1024;
/// How many unsent bytes a connection may hold for calls that have ended.
const UNGUARDED_BYTES_MAX: usize = 1024 * 1024;

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
    /// Of a response on a connection. It waits for its client from now on, until its first part is requested: a client
    /// that grants no window at all keeps hyper from requesting it.
    pub(super) fn new(body: Body, connection: UnsentBytes, call: Option<CallInFlight>) -> Self {
        record(|progress| progress.waits_for_client = true);
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
