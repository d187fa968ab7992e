//! Short-circuit responses, which need no service: responses to CORS preflights, and to requests
//! that are not calls. They pass the layers as calls do, so that every response is counted, logged,
//! bounded and has an id.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use http::{HeaderMap, HeaderValue, Method};
use tonic::{Status, body::Body};
use tower::Service;

use super::{
    Request, Response, ResponseFuture, STATUS_HEADERS, body_bytes::Unframed, error_response,
};
use crate::propagation::trace_headers;
use trestle_model::fault::{Fault, Reason};

/// A response on its way through the layers, in the extensions of a request.
#[derive(Clone)]
pub struct ShortCircuitResponse(Arc<Mutex<Option<ResponseFuture>>>);

/// In the extensions of a short-circuit response, which distinguishes it from the error response of a
/// layer.
#[derive(Debug, Clone, Copy)]
pub struct IsShortCircuit;

impl ShortCircuitResponse {
    /// The request that the layers see instead of `request` with these `headers`: an empty call,
    /// under `path`, in the same trace and from the same peer. Its body is not read.
    #[must_use]
    pub fn request(
        request: &Request,
        headers: &HeaderMap,
        path: &'static str,
        answer: impl Future<Output = Response> + Send + 'static,
    ) -> Request {
        let answer = async move {
            let mut answer = answer.await;
            answer.extensions_mut().insert(IsShortCircuit);
            Ok(answer)
        };
        let mut empty = Request::new(Body::empty());
        *empty.method_mut() = Method::POST;
        *empty.uri_mut() = http::Uri::from_static(path);
        *empty.extensions_mut() = request.extensions().clone();
        empty.extensions_mut().insert(Unframed::default());
        empty.extensions_mut().insert(Self(Arc::new(Mutex::new(Some(Box::pin(answer))))));
        *empty.headers_mut() = trace_headers(headers);
        empty
    }

    /// The short-circuit response of a request; none if a service has to respond.
    pub fn take(request: &mut Request) -> Option<ResponseFuture> {
        let Self(answer) = request.extensions_mut().remove::<Self>()?;
        answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An HTTP response with an outcome that the layers count.
#[must_use]
pub fn with_outcome(mut answer: Response, outcome: Result<(), Fault>) -> Response {
    match outcome {
        Ok(()) => {
            answer.headers_mut().insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
        }
        Err(fault) => {
            let counted = error_response(fault);
            answer.headers_mut().extend(status_of(counted.headers()));
            answer.extensions_mut().extend(counted.extensions().clone());
        }
    }
    answer
}

fn status_of(headers: &HeaderMap) -> HeaderMap {
    let found = STATUS_HEADERS
        .into_iter()
        .filter_map(|name| Some((name.clone(), headers.get(name)?.clone())));
    found.collect()
}

/// The service behind layers that only short-circuit responses pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShortCircuitService;

impl Service<Request> for ShortCircuitService {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> ResponseFuture {
        ShortCircuitResponse::take(&mut request).unwrap_or_else(|| {
            let fault = Fault::new(Reason::InternalError, "a request without its answer");
            Box::pin(async move { Ok(error_response(fault)) })
        })
    }
}

#[cfg(test)]
mod tests;
