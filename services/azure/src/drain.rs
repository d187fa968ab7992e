//! Drains the bodies of requests that are answered before their bodies are read.
//!
//! The next request of an HTTP/1 connection follows the body of the last one, and a client that is still sending may
//! never read the response. So the rest of a body is read and discarded as it arrives, within bounds; past them the
//! response closes its connection.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Version, header};
use http_body::{Body as _, Frame, SizeHint};
use tonic::{Status, body::Body};
use trestle_rpc::layer::Request;

/// Most bytes that are read only to be discarded: half as many again as the longest body that a service collects.
const DRAINED_BYTES_MAX: usize = 6 * 1024 * 1024;
/// How long a client may take to send them.
const DRAINED_WITHIN: Duration = Duration::from_secs(5);
/// How long a client may pause while it sends them. One that waits for the response before it sends its body, or
/// never sends what it declared, gets the response after this time.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The body of a request, which a call may read or not.
#[derive(Clone)]
pub(crate) struct DrainableBody(Arc<Mutex<DrainState>>);

struct DrainState {
    body: Body,
    /// The client waits for `100 Continue`, which was not sent.
    is_waiting: bool,
}

impl DrainableBody {
    /// Splits off the body of a request for its handler; none if no other request can follow it on
    /// the connection.
    pub(crate) fn of(request: &mut Request) -> Option<Self> {
        if request.version() == Version::HTTP_2 || request.body().is_end_stream() {
            return None;
        }
        let is_waiting = request.headers().contains_key(header::EXPECT);
        let body = std::mem::take(request.body_mut());
        let drainable = Self(Arc::new(Mutex::new(DrainState { body, is_waiting })));
        *request.body_mut() = Body::new(drainable.clone());
        Some(drainable)
    }

    /// Reads and discards the unread rest. Returns whether the body has ended.
    pub(crate) async fn drained(self) -> bool {
        let is_too_long = |body: &Body| body.size_hint().lower() > DRAINED_BYTES_MAX as u64;
        if self.shared().is_waiting || is_too_long(&self.shared().body) {
            return false;
        }
        let mut left = DRAINED_BYTES_MAX;
        let drain = async {
            loop {
                let frame = tokio::time::timeout(PAUSE_MAX, poll_fn(|cx| self.poll(cx)));
                let frame = match frame.await {
                    Ok(None) => return true,
                    Ok(Some(Ok(frame))) => frame,
                    Ok(Some(Err(_))) | Err(_) => return false,
                };
                match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                    Some(rest) => left = rest,
                    None => return false,
                }
            }
        };
        tokio::time::timeout(DRAINED_WITHIN, drain).await.unwrap_or_default()
    }

    fn shared(&self) -> MutexGuard<'_, DrainState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut shared = self.shared();
        shared.is_waiting = false;
        let polled = Pin::new(&mut shared.body).poll_frame(cx);
        if let Poll::Ready(None) = polled {
            // The drain of the rest polls it again.
            shared.body = Body::empty();
        }
        polled
    }
}

impl http_body::Body for DrainableBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.shared().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.shared().body.size_hint()
    }
}
