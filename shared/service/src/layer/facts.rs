//! Reports the statistics of a call to a gateway that requests them.
//!
//! They are sent with the headers of the response, and again with its trailers if they changed
//! since, as with a stream. A gateway removes both.

use std::convert::Infallible;

use tower::Service;

use super::{
    Answer, Request, Response,
    frame::{Step, StepLayer},
    passage::{Next, Part, Passage, passing},
};
use crate::facts::{Facts, Work};

/// Reports statistics.
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
            Ok(answer.map(|body| passing(body, Telling { facts, told })))
        })
    }
}

/// A body that reports at its end what its headers did not contain.
struct Telling {
    facts: Facts,
    told: Work,
}

impl Passage for Telling {
    fn pass(&mut self, mut part: Part) -> Next {
        if let Some(Ok(frame)) = &mut part
            && let Some(trailers) = frame.trailers_mut()
        {
            let work = self.facts.noted().work;
            if work != self.told {
                Facts::answer(&work, trailers);
            }
        }
        Next::Part(part)
    }
}
