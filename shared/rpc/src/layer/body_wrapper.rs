//! The body wrapper of the layers: the HTTP body adapter, so that their files contain only what
//! they do with a body.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tonic::{Status, body::Body};

/// A part of a body; none at its end.
pub type BodyPart = Option<Result<Frame<Bytes>, Status>>;

/// What a wrapper forwards.
#[derive(Debug)]
pub enum Next {
    /// A part; others may follow.
    Part(BodyPart),
    /// The last part. The inner body is dropped, and with it its work.
    Last(Frame<Bytes>),
}

/// The body handling of a layer. It is dropped after the body.
pub trait BodyWrapper: Send + Unpin + 'static {
    /// Whether it may forward less than the inner body has, so that no length can be declared.
    const SHORTENS: bool = false;

    /// Polls the body for its next part.
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        Poll::Ready(self.map_part(ready!(body.poll_frame(cx))))
    }

    /// Parts that were read from the body and are not forwarded yet.
    fn unforwarded(&self) -> usize {
        0
    }

    /// Forwards a part.
    fn map_part(&mut self, part: BodyPart) -> Next {
        Next::Part(part)
    }
}

/// The body behind a layer.
pub fn wrap_body(body: Body, wrapper: impl BodyWrapper) -> Body {
    Body::new(WrappedBody { body: Some(body), wrapper })
}

struct WrappedBody<P> {
    /// None after the last part.
    body: Option<Body>,
    wrapper: P,
}

impl<P: BodyWrapper> http_body::Body for WrappedBody<P> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BodyPart> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        Poll::Ready(match ready!(this.wrapper.poll(Pin::new(body), cx)) {
            Next::Part(part) => part,
            Next::Last(frame) => {
                this.body = None;
                Some(Ok(frame))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.wrapper.unforwarded() == 0 && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref().filter(|_| !P::SHORTENS && self.wrapper.unforwarded() == 0);
        body.map(Body::size_hint).unwrap_or_default()
    }
}
