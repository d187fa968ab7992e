//! Isolates a defect in one call from others: a panic becomes `INTERNAL`, and the response contains
//! nothing of it.
//!
//! The process reports the panic itself through its panic hook. tower-http's layer ends with the
//! headers; ours also covers the body, because streams do their work there.

use std::{
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures::FutureExt as _;
use http_body::{Body as _, Frame};
use tonic::body::Body;
use tower::Service;

use super::{
    Answer, Request, Response,
    frame::{Step, StepLayer},
    passage::{Next, Passage, passing},
    refusal, trailers,
};
use crate::fault::{Fault, Reason};

/// Turns panics into error responses.
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
                    let caught = |body| passing(body, Catching);
                    Ok(answer?.map(caught))
                }
                Err(_panic) => Ok(refusal(defect())),
            }
        })
    }
}

/// A panic in a body ends it.
struct Catching;

impl Passage for Catching {
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        let polled = catch_unwind(AssertUnwindSafe(|| body.poll_frame(cx).map(Next::Part)));
        polled.unwrap_or_else(|_panic| Poll::Ready(Next::Last(Frame::trailers(trailers(defect())))))
    }
}
