//! Where a service lives: in this process, or behind a few connections to another. The only type
//! that knows.
//!
//! Both variants are the same service of calls; bodies and trailers pass untouched. To the other
//! process a call takes its headers along, so caller and request id arrive; the deadline becomes
//! what is left of it, the trace context that of the client span.
//!
//! What happens when the other process restarts, in the order of the files:
//! - `link`: a connection is made, asked whether the service serves, watched, and made anew.
//! - `pool`: a call takes the least loaded connection; while there is none, it waits a bounded time.
//! - `retry`: a call that changed nothing is sent again, a few times, within a budget.
//! - `failure`: a call that cannot be saved says whether it may have changed something.
//!
//! Nothing is ever sent twice at the same time.

mod answer;
mod endpoint;
mod failure;
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

use crate::layer::{Answer, CallService, Request, Response};

pub use self::{
    endpoint::{Endpoint, EndpointError},
    remote::{Remote, RemoteOptions},
    tls::{ClientPem, ClientTls, ClientTlsError},
};

/// A service, wherever it lives.
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
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self {
            Self::Local(service) => service.poll_ready(cx),
            Self::Remote(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: Request) -> Answer {
        match self {
            Self::Local(service) => service.call(request),
            Self::Remote(remote) => remote.send(request),
        }
    }
}
