//! Between tonic-web and the service: the bodies of a call in both directions, and how it fails.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use tonic::body::Body;
use tower::Service;
use trestle_service::{
    fault::{Fault, domain_of},
    layer::{CallService, Request, Response, ResponseFuture},
};

use super::{request_body::TranslatedRequest, response_body::with_status_in_body};

/// Between tonic-web and the service.
#[derive(Clone)]
pub(super) struct Translated {
    inner: CallService,
}

impl Translated {
    /// Before the service that sees gRPC.
    pub(super) fn new(inner: CallService) -> Self {
        Self { inner }
    }
}

impl Service<Request> for Translated {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let failed = Arc::new(OnceLock::new());
        let recorded = Arc::clone(&failed);
        let address = request.uri().clone();
        let answer = self
            .inner
            .call(request.map(|body| Body::new(TranslatedRequest { body, failed: recorded })));
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
