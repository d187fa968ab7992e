//! Between tonic-web and the service: the bodies of a call in both directions, and how it fails.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};
use trestle_rpc::status::IntoStatus as _;

use tonic::body::Body;
use tower::Service;
use trestle_model::fault::Fault;
use trestle_rpc::layer::middleware::{Middleware, MiddlewareLayer};
use trestle_rpc::layer::{Request, Response, ResponseFuture};
use trestle_rpc::status::domain_of;

use super::{request_body::TranslatedRequest, response_body::with_status_in_body};

/// Between tonic-web and the service that sees gRPC.
pub(super) type TranslationLayer = MiddlewareLayer<TranslateBodies>;

/// See [`TranslationLayer`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TranslateBodies;

impl Middleware for TranslateBodies {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let failed = Arc::new(OnceLock::new());
        let recorded = Arc::clone(&failed);
        let address = request.uri().clone();
        let answer =
            inner.call(request.map(|body| Body::new(TranslatedRequest { body, failed: recorded })));
        Box::pin(async move {
            let mut answer = answer.await?;
            if let Some(fault) = failed.get() {
                // Another process saw a broken stream only, and reported an unknown outcome.
                answer = ended_by(answer, fault, domain_of(address.path()));
            }
            Ok(with_status_in_body(answer))
        })
    }
}

/// A response that fails before it begins, from the called service.
fn ended_by(mut answer: Response, fault: &Fault, domain: &str) -> Response {
    let status: Response = fault.clone().into_status(domain).into_http();
    answer.headers_mut().extend(status.headers().clone());
    answer.map(|_| Body::empty())
}
