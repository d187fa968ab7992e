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
        Answer,
        passage::{Next, Passage, passing},
        trailers,
    },
};

/// A response whose stream ends after `within` at the latest.
pub(super) fn answer(answer: Answer, within: Duration) -> Answer {
    let clock = Box::pin(sleep(within));
    Box::pin(async move {
        let answer = answer.await?;
        Ok(answer.map(|body| passing(body, Expiring { clock })))
    })
}

/// See the module.
struct Expiring {
    clock: Pin<Box<Sleep>>,
}

impl Passage for Expiring {
    const SHORTENS: bool = true;

    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if self.clock.as_mut().poll(cx).is_pending() {
            return Poll::Ready(self.pass(std::task::ready!(body.poll_frame(cx))));
        }
        let message = "the signature has expired while the stream went on";
        let fault = Fault::new(Reason::AuthenticationFailed, message);
        Poll::Ready(Next::Last(Frame::trailers(trailers(fault))))
    }
}
