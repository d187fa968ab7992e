//! Ends a stream when the signature of its call expires.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http_body::{Body as _, Frame};
use tokio::time::{Sleep, sleep};
use tonic::body::Body;

use trestle_service::{
    fault::{Fault, Reason},
    layer::{
        ResponseFuture,
        body_wrapper::{BodyWrapper, Next, wrap_body},
        trailers,
    },
};

/// A response whose stream ends after `within` at the latest.
pub(super) fn answer(answer: ResponseFuture, within: Duration) -> ResponseFuture {
    let clock = Box::pin(sleep(within));
    Box::pin(async move {
        let answer = answer.await?;
        Ok(answer.map(|body| wrap_body(body, Expiring { clock })))
    })
}

/// See the module.
struct Expiring {
    clock: Pin<Box<Sleep>>,
}

impl BodyWrapper for Expiring {
    const SHORTENS: bool = true;

    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if self.clock.as_mut().poll(cx).is_pending() {
            return Poll::Ready(self.map_part(std::task::ready!(body.poll_frame(cx))));
        }
        let message = "the signature expired during the stream";
        let fault = Fault::new(Reason::AuthenticationFailed, message);
        Poll::Ready(Next::Last(Frame::trailers(trailers(fault))))
    }
}
