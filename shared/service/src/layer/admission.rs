//! Sheds load: more than a fixed number of calls at a time are turned away at once, with advice to
//! come back.
//!
//! A call counts until the end of its answer, streams included, so that what is counted is what
//! uses memory. Nothing is queued: a queue would only add its own waiting time to every call.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Status, body::Body};
use tower::{Layer, Service};

use super::{Answer, Request, Response, refusal};
use crate::fault::{Fault, Reason};

/// When a client that was turned away should come back.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Admits a fixed number of calls. Clones share the number.
#[derive(Debug, Clone)]
pub struct AdmissionLayer {
    places: Arc<Semaphore>,
    calls_max: usize,
}

impl AdmissionLayer {
    /// Admits up to `calls_max` calls at a time.
    #[must_use]
    pub fn new(calls_max: usize) -> Self {
        let calls_max = calls_max.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(calls_max)), calls_max }
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Admission<S> {
        let limit = self.clone();
        Admission { inner, limit }
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Admission<S> {
    inner: S,
    limit: AdmissionLayer,
}

impl<S> Service<Request> for Admission<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Answer {
        let Ok(place) = Arc::clone(&self.limit.places).try_acquire_owned() else {
            let calls_max = self.limit.calls_max;
            let message = format!("too many calls at a time: limit=`{calls_max}`");
            let fault = Fault::new(Reason::ServerBusy, message).retry_after(RETRY_AFTER);
            return Box::pin(async move { Ok(refusal(fault)) });
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let held = |body| Body::new(Held { body, _place: place });
            Ok(answer.await?.map(held))
        })
    }
}

/// A body that holds a place until it ends or is dropped.
struct Held {
    body: Body,
    _place: OwnedSemaphorePermit,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
