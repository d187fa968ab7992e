//! The frame of a body that passes a layer: what HTTP asks of each, so that the files of the
//! layers hold only what they do with it.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tonic::{Status, body::Body};

/// A part of a body, or none at its end.
pub type Part = Option<Result<Frame<Bytes>, Status>>;

/// What a layer hands on.
#[derive(Debug)]
pub enum Next {
    /// A part; others may follow.
    Part(Part),
    /// The last part there is. What is below is dropped, and with it the work on it.
    Last(Frame<Bytes>),
}

/// What a layer does with a body. It is dropped after the body.
pub trait Passage: Send + Unpin + 'static {
    /// Whether it may hand on less than there is, so that nobody can be told the length ahead.
    const SHORTENS: bool = false;

    /// Asks the body for its next part.
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        Poll::Ready(self.pass(ready!(body.poll_frame(cx))))
    }

    /// Hands a part on.
    fn pass(&mut self, part: Part) -> Next {
        Next::Part(part)
    }
}

/// The body behind a layer.
pub fn passing(body: Body, passage: impl Passage) -> Body {
    Body::new(Passing { body: Some(body), passage })
}

struct Passing<P> {
    /// Gone after the last part.
    body: Option<Body>,
    passage: P,
}

impl<P: Passage> http_body::Body for Passing<P> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Part> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        Poll::Ready(match ready!(this.passage.poll(Pin::new(body), cx)) {
            Next::Part(part) => part,
            Next::Last(frame) => {
                this.body = None;
                Some(Ok(frame))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref().filter(|_| !P::SHORTENS);
        body.map(Body::size_hint).unwrap_or_default()
    }
}
