//! Short-circuit responses: HTTP answers to requests that are not calls. They pass the ingress stack
//! as calls do.

use http::StatusCode;
use tower::Service as _;
use trestle_rpc::layer::short_circuit::{
    IsShortCircuit, ShortCircuitResponse, ShortCircuitService,
};
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture, STATUS_HEADERS};

use crate::IngressStack;

/// The form of a request that is not a call for the layers.
const PATH: &str = "/";

/// Sends responses through the ingress stack.
#[derive(Clone)]
pub(crate) struct ShortCircuit {
    stack: CallService,
}

impl ShortCircuit {
    /// Uses this stack.
    pub(crate) fn new(stack: &IngressStack) -> Self {
        Self { stack: stack.before(ShortCircuitService) }
    }

    /// Responds to a request, unless a layer rejects it.
    pub(crate) fn answer(
        &mut self,
        request: &Request,
        answer: impl Future<Output = Response> + Send + 'static,
    ) -> ResponseFuture {
        let answer = self.stack.call(ShortCircuitResponse::request(
            request,
            request.headers(),
            PATH,
            answer,
        ));
        Box::pin(async move {
            let mut answer = answer.await?;
            if answer.extensions().get::<IsShortCircuit>().is_none() {
                // A layer rejects in gRPC; with HTTP status 200 a browser would take it for success.
                *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            for name in STATUS_HEADERS {
                answer.headers_mut().remove(name);
            }
            Ok(answer)
        })
    }
}
