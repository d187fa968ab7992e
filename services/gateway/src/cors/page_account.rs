//! The account that the call of a page was authenticated for: only its rules let the page read the response.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use tower::Service;
use trestle_identity::caller::Caller;
use trestle_service::{
    layer::{
        Request, Response, ResponseFuture,
        middleware::{Middleware, MiddlewareLayer},
    },
    name::AccountName,
};

/// The account of a request from a page, once it is authenticated.
#[derive(Debug, Clone, Default)]
pub(super) struct PageAccount(pub(super) Arc<OnceLock<AccountName>>);

/// Stores the account of a request from a page. Placed behind authentication.
pub(crate) type PageAccountLayer = MiddlewareLayer<StorePageAccount>;

/// See [`PageAccountLayer`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StorePageAccount;

impl Middleware for StorePageAccount {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let extensions = request.extensions();
        if let Some(page) = extensions.get::<PageAccount>()
            && let Some(caller) = Caller::in_process(extensions)
        {
            page.0.get_or_init(|| caller.account.clone());
        }
        inner.call(request)
    }
}
