//! Drains the bodies of requests that are answered before their bodies are read.
//!
//! The next request of an HTTP/1 connection follows the body of the last one, and a client that is still sending may
//! never read the response. So the rest of a body is read and discarded, within bounds; past them the response
//! closes its connection.

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
use trestle_service::layer::Request;

/// Most bytes that are read only to be discarded: the longest body that a service accepts.
const LEFT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a client may take to send them.
const LEFT_WITHIN: Duration = Duration::from_secs(5);

/// The body of a request, which a call may read or leave unread.
#[derive(Clone)]
pub(crate) struct DrainableBody(Arc<Mutex<Shared>>);

struct Shared {
    body: Body,
    /// The client waits for `100 Continue`, which was not sent yet.
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
        let lent = Self(Arc::new(Mutex::new(Shared { body, is_waiting })));
        *request.body_mut() = Body::new(lent.clone());
        Some(lent)
    }

    /// Reads and discards the unread rest. Returns whether the body has ended.
    pub(crate) async fn drained(self) -> bool {
        if self.shared().is_waiting {
            return false;
        }
        let mut left = LEFT_BYTES_MAX;
        let drain = async {
            while let Some(frame) = poll_fn(|cx| self.poll(cx)).await {
                let Ok(frame) = frame else { return false };
                match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                    Some(rest) => left = rest,
                    None => return false,
                }
            }
            true
        };
        tokio::time::timeout(LEFT_WITHIN, drain).await.unwrap_or_default()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
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
