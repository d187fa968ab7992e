//! The tower adapter of the layers, so that their files contain only their decisions.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use tower::{Layer, Service};

use super::{Answer, Request, Response};

/// The middleware of a layer. Clones share its counters.
pub trait Step: Clone {
    /// Responds to a call, mostly by passing it to `inner`.
    fn call<S>(&self, request: Request, inner: &mut S) -> Answer
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = Answer>;
}

/// Adds a middleware to a service.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepLayer<T>(pub T);

/// A service with a middleware.
#[derive(Debug, Clone)]
pub struct Stepped<T, S> {
    step: T,
    inner: S,
}

impl<T: Step, S> Layer<S> for StepLayer<T> {
    type Service = Stepped<T, S>;

    fn layer(&self, inner: S) -> Stepped<T, S> {
        Stepped { step: self.0.clone(), inner }
    }
}

impl<T, S> Service<Request> for Stepped<T, S>
where
    T: Step,
    S: Service<Request, Response = Response, Error = Infallible, Future = Answer>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Answer {
        self.step.call(request, &mut self.inner)
    }
}
