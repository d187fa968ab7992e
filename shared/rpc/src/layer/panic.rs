//! Isolates a defect in one call from others: a panic becomes `INTERNAL`, and the response contains
//! nothing of it.
//!
//! The process reports the panic itself through its panic hook. tower-http's layer ends with the
//! headers; ours also covers the body, because streams run in it.

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
    Request, Response, ResponseFuture,
    body_wrapper::{BodyWrapper, Next, wrap_body},
    error_response,
    middleware::{Middleware, MiddlewareLayer},
    trailers,
};
use trestle_model::fault::{Fault, Reason};

/// Converts panics into error responses.
pub type PanicLayer = MiddlewareLayer<CatchPanic>;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct CatchPanic;

fn defect() -> Fault {
    Fault::new(Reason::InternalError, "internal error")
}

impl Middleware for CatchPanic {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let Ok(answer) = catch_unwind(AssertUnwindSafe(|| inner.call(request))) else {
            return Box::pin(async { Ok(error_response(defect())) });
        };
        Box::pin(async move {
            match AssertUnwindSafe(answer).catch_unwind().await {
                Ok(answer) => {
                    let caught = |body| wrap_body(body, Catching);
                    Ok(answer?.map(caught))
                }
                Err(_panic) => Ok(error_response(defect())),
            }
        })
    }
}

/// A panic in a body ends it.
struct Catching;

impl BodyWrapper for Catching {
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        let polled = catch_unwind(AssertUnwindSafe(|| body.poll_frame(cx).map(Next::Part)));
        polled.unwrap_or_else(|_panic| Poll::Ready(Next::Last(Frame::trailers(trailers(defect())))))
    }
}
