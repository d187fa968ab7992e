//! Between tonic-web and the service: the bodies of a call in both directions, and how it fails.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use tonic::{Status, body::Body};
use tower::Service;
use trestle_service::{
    fault::Fault,
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
        let answer = self
            .inner
            .call(request.map(|body| Body::new(TranslatedRequest { body, failed: recorded })));
        Box::pin(async move {
            let mut answer = answer.await?;
            if let Some(fault) = failed.get() {
                // Another process saw a broken stream only, and reported an unknown outcome.
                answer = ended_by(answer, fault);
            }
            Ok(with_status_in_body(answer))
        })
    }
}

/// A response that fails before it begins.
fn ended_by(mut answer: Response, fault: &Fault) -> Response {
    let status: Response = Status::from(fault.clone()).into_http();
    answer.headers_mut().extend(status.headers().clone());
    answer.map(|_| Body::empty())
}
