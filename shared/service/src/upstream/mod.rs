//! Upstreams: a service in this process, or behind a few connections to another. Only this type
//! distinguishes them.
//!
//! Both variants are the same service of calls; bodies and trailers pass untouched. To another process
//! a call is sent with its headers, which have caller and request id; the deadline becomes the rest of
//! it, the trace context that of the client span.
//!
//! What happens when the other process restarts, in the order of the files:
//! - `link`: opens a connection, checks the health of the service, watches it, and reconnects.
//! - `pool`: a call uses the least loaded connection; without one, it waits a bounded time.
//! - `retry`: a call that changed nothing is retried a few times, within a budget.
//! - `failed_call`: the error of a call states whether it may have changed something.
//!
//! No call is sent twice at the same time.

mod answer;
mod endpoint;
mod failed_call;
pub mod in_process;
pub mod kind;
mod link;
mod pool;
mod remote;
mod replay;
mod retry;
mod tls;

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use tower::Service;

use crate::layer::{CallService, Request, Response, ResponseFuture};

pub use self::{
    endpoint::{Endpoint, EndpointError},
    remote::{Remote, RemoteOptions},
    tls::{ClientPem, ClientTls, ClientTlsError},
};

/// A service, in this process or another.
#[derive(Clone)]
pub enum Upstream {
    /// In this process.
    Local(CallService),
    /// In another process.
    Remote(Remote),
}

impl Upstream {
    /// A service in this process.
    pub fn local<S>(service: S) -> Self
    where
        S: Service<Request, Response = Response, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        Self::Local(CallService::new(service))
    }
}

impl Service<Request> for Upstream {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self {
            Self::Local(service) => service.poll_ready(cx),
            Self::Remote(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        match self {
            Self::Local(service) => service.call(request),
            Self::Remote(remote) => remote.send(request),
        }
    }
}
