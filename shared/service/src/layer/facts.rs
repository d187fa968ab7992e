//! Tells a gateway the facts about a call, where it asks for them.
//!
//! They go with the headers of the answer, and again with its trailers if more became known
//! meanwhile, as with a stream. A gateway removes both.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};
use tower::Service;

use super::{
    Answer, Request, Response,
    frame::{Step, StepLayer},
};
use crate::facts::{Facts, Work};

/// Tells facts.
pub type FactsLayer = StepLayer<TellFacts>;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct TellFacts;

impl Step for TellFacts {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> Answer
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = Answer>,
    {
        if !Facts::asked(request.headers()) {
            return inner.call(request);
        }
        let facts = Facts::kept();
        request.extensions_mut().insert(facts.clone());
        let answer = inner.call(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            let told = facts.noted().work;
            Facts::answer(&told, answer.headers_mut());
            Ok(answer.map(|body| Body::new(Telling { body, facts, told })))
        })
    }
}

/// A body that tells at its end what was not told before.
struct Telling {
    body: Body,
    facts: Facts,
    told: Work,
}

impl http_body::Body for Telling {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            let work = self.facts.noted().work;
            if work != self.told {
                Facts::answer(&work, trailers);
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
