//! Says who calls. Credentials will be read here; until then every call works in the development
//! account.
//!
//! What a client claims to be is removed: only the gateway vouches.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use tower::{Layer, Service};

use super::{Request, Response};
use crate::caller::Caller;

/// Puts a caller on every request.
#[derive(Debug, Clone)]
pub struct CallerLayer {
    caller: Arc<Caller>,
}

impl CallerLayer {
    /// Vouches for `caller`, whatever the request says.
    #[must_use]
    pub fn new(caller: Caller) -> Self {
        Self { caller: Arc::new(caller) }
    }
}

impl<S> Layer<S> for CallerLayer {
    type Service = Identify<S>;

    fn layer(&self, inner: S) -> Identify<S> {
        let caller = Arc::clone(&self.caller);
        Identify { inner, caller }
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Identify<S> {
    inner: S,
    caller: Arc<Caller>,
}

impl<S> Service<Request> for Identify<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> S::Future {
        Arc::clone(&self.caller).insert(&mut request);
        self.inner.call(request)
    }
}
