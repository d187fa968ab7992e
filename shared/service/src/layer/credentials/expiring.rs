//! Ends a stream when the signature ends that let it in.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::{Status, body::Body};

use crate::{
    fault::{Fault, Reason},
    layer::{Answer, trailers},
};

/// An answer whose stream ends after `within` at the latest.
pub(super) fn answer(answer: Answer, within: Duration) -> Answer {
    let clock = Box::pin(sleep(within));
    Box::pin(async move {
        let answer = answer.await?;
        Ok(answer.map(|body| Body::new(Expiring { body: Some(body), clock })))
    })
}

/// See the module.
struct Expiring {
    /// Gone once the time is over, and with it the work on the stream.
    body: Option<Body>,
    clock: Pin<Box<Sleep>>,
}

impl http_body::Body for Expiring {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        if this.clock.as_mut().poll(cx).is_ready() {
            this.body = None;
            let message = "the signature has expired while the stream went on";
            let fault = Fault::new(Reason::AuthenticationFailed, message);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers(fault)))));
        }
        Pin::new(body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        // Not that of the body: it may end before.
        SizeHint::default()
    }
}
