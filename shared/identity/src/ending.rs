//! Ends a call whose caller loses, while the call runs, the access that it began with.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body as _, Frame};
use tonic::body::Body;

use trestle_model::fault::Fault;
use trestle_rpc::layer::body_wrapper::{BodyWrapper, Next, wrap_body};
use trestle_rpc::layer::{ResponseFuture, error_response, trailers};

/// Completes with the error of a call, when the call has to end.
pub(crate) type End = Pin<Box<dyn Future<Output = Fault> + Send>>;

/// The response of a call that `end` ends: before its response begins, and during the response. The work of the call is
/// dropped then, as when its client disconnects.
pub(crate) fn end_call(answer: ResponseFuture, mut end: End) -> ResponseFuture {
    Box::pin(async move {
        tokio::select! {
            biased;
            answer = answer => Ok(answer?.map(|body| wrap_body(body, Ending { end }))),
            fault = &mut end => Ok(error_response(fault)),
        }
    })
}

/// A response that `end` ends once it has begun: a call that did not respond yet goes on.
pub(crate) fn end_response(answer: ResponseFuture, end: End) -> ResponseFuture {
    Box::pin(async move { Ok(answer.await?.map(|body| wrap_body(body, Ending { end }))) })
}

/// See the module.
struct Ending {
    end: End,
}

impl BodyWrapper for Ending {
    const SHORTENS: bool = true;

    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        // First: a body that always has its next part must end too.
        match self.end.as_mut().poll(cx) {
            Poll::Ready(fault) => Poll::Ready(Next::Last(Frame::trailers(trailers(fault)))),
            Poll::Pending => body.poll_frame(cx).map(Next::Part),
        }
    }
}
