//! Keeps a defect in one call from harming others: a panic becomes `INTERNAL`, with nothing of it
//! in the answer.
//!
//! The process reports the panic itself through its panic hook. tower-http's layer ends with the
//! headers; ours also covers the body, because streams do their work there.

use std::{
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::FutureExt as _;
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};
use tower::Service;

use super::{
    Answer, Request, Response,
    frame::{Step, StepLayer},
    refusal, trailers,
};
use crate::fault::{Fault, Reason};

/// Turns panics into answers.
pub type PanicLayer = StepLayer<CatchPanic>;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct CatchPanic;

fn defect() -> Fault {
    Fault::new(Reason::InternalError, "internal error")
}

impl Step for CatchPanic {
    fn call<S>(&self, request: Request, inner: &mut S) -> Answer
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = Answer>,
    {
        let Ok(answer) = catch_unwind(AssertUnwindSafe(|| inner.call(request))) else {
            return Box::pin(async { Ok(refusal(defect())) });
        };
        Box::pin(async move {
            match AssertUnwindSafe(answer).catch_unwind().await {
                Ok(answer) => {
                    let caught = |body| Body::new(Caught { body: Some(body) });
                    Ok(answer?.map(caught))
                }
                Err(_panic) => Ok(refusal(defect())),
            }
        })
    }
}

/// A body whose panics end it.
struct Caught {
    /// Gone after a panic.
    body: Option<Body>,
}

impl http_body::Body for Caught {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx)));
        polled.unwrap_or_else(|_panic| {
            self.body = None;
            Poll::Ready(Some(Ok(Frame::trailers(trailers(defect())))))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}
