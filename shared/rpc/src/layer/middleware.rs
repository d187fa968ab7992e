//! The tower adapter of the layers, so that their files contain only their decisions.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use tower::{Layer, Service};

use super::{Request, Response, ResponseFuture};

/// The middleware of a layer. Clones share its counters.
pub trait Middleware: Clone {
    /// Responds to a call, mostly by passing it to `inner`.
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>;
}

/// Adds a middleware to a service.
#[derive(Debug, Clone, Copy, Default)]
pub struct MiddlewareLayer<T>(pub T);

/// A service with a middleware.
#[derive(Debug, Clone)]
pub struct MiddlewareService<T, S> {
    middleware: T,
    inner: S,
}

impl<T, S> MiddlewareService<T, S> {
    /// `inner` behind `middleware`.
    pub fn new(middleware: T, inner: S) -> Self {
        Self { middleware, inner }
    }
}

impl<T: Middleware, S> Layer<S> for MiddlewareLayer<T> {
    type Service = MiddlewareService<T, S>;

    fn layer(&self, inner: S) -> MiddlewareService<T, S> {
        MiddlewareService::new(self.0.clone(), inner)
    }
}

impl<T, S> Service<Request> for MiddlewareService<T, S>
where
    T: Middleware,
    S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        self.middleware.call(request, &mut self.inner)
    }
}
