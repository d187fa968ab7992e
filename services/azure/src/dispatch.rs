//! The authenticated dispatch behind the layers: authenticates the caller, reads the body, and lets
//! the protocol make the call.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderMap, HeaderValue};
use tonic::Status;
use tower::Service;
use trestle_identity::{
    caller::Caller,
    credentials::{Identity, end_when_revoked},
    public_key::{AllowedPage, RequestSource},
};
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::layer::short_circuit::ShortCircuitResponse;
use trestle_rpc::layer::{Request, Response, ResponseFuture};
use trestle_rpc::upstream::Upstream;

use crate::{
    auth,
    error::RestError,
    grpc_call::GrpcCall,
    head::RequestHead,
    protocol::RestProtocol,
    reply::{CallOutcome, Rendered},
    request_body::RequestBody,
};

/// What the HTTP edge parsed from a request, in its extensions.
pub(crate) struct RequestContext<P: RestProtocol> {
    pub(crate) head: Arc<RequestHead>,
    pub(crate) operation: Result<P::Operation, RestError>,
}

impl<P: RestProtocol> Clone for RequestContext<P> {
    fn clone(&self) -> Self {
        Self { head: Arc::clone(&self.head), operation: self.operation.clone() }
    }
}

/// A caller with valid credentials.
struct Admitted {
    caller: Arc<Caller>,
    /// The error that applies after the check of its stored access policy.
    denied: Option<Box<Fault>>,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Dispatch<P> {
    protocol: P,
    upstream: Upstream,
    identity: Identity,
}

impl<P: RestProtocol> Dispatch<P> {
    pub(crate) fn new(protocol: P, upstream: Upstream, identity: Identity) -> Self {
        Self { protocol, upstream, identity }
    }

    /// Puts the caller on a request with valid credentials. The service checks their stored access policy.
    fn admit(
        &self,
        head: &RequestHead,
        is_read: bool,
        request: &mut Request,
    ) -> Result<Admitted, Fault> {
        let caller = auth::caller(head, P::SIGNATURES, &self.identity).map_err(Fault::from)?;
        let source = RequestSource {
            method: &head.method,
            is_read,
            uri: &head.uri,
            headers: &head.headers,
            is_allowed_page: request.extensions().get::<AllowedPage>().is_some(),
        };
        self.identity.check_public_key(&caller, &source)?;
        caller.take_share(request, self.identity.quotas.as_ref())?;
        let denied = caller.authority.denied().cloned().map(Box::new);
        Arc::clone(&caller).insert(request);
        Ok(Admitted { caller, denied })
    }
}

impl<P: RestProtocol> Service<Request> for Dispatch<P> {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> ResponseFuture {
        if let Some(answer) = ShortCircuitResponse::take(&mut request) {
            return answer;
        }
        let context = request.extensions_mut().remove::<RequestContext<P>>();
        let Some(RequestContext { head, operation }) = context else {
            let fault = Fault::new(Reason::InternalError, "a request without its head");
            return Box::pin(async move { Ok(rejected(fault.into())) });
        };
        // Credentials first: without them an error must not disclose which operations exist.
        let is_stream = operation.as_ref().is_ok_and(|it| self.protocol.transfer(it).is_streamed);
        // Before the accounts are read, so that no change is missed between.
        let changes = is_stream.then(|| self.identity.accounts.subscribe());
        // A receive of messages is a GET that changes them.
        let reads = operation.as_ref().is_ok_and(|it| self.protocol.target(it).reads);
        let is_read = head.method.is_safe() && (reads || operation.is_err());
        let admitted = self.admit(&head, is_read, &mut request);
        let denied = admitted.as_ref().err().map(|fault| fault.reason);
        let caller = admitted.as_ref().ok().map(|admitted| Arc::clone(&admitted.caller));
        let opened = Arc::clone(&head);
        let (protocol, upstream) = (self.protocol.clone(), self.upstream.clone());
        let answer: ResponseFuture = Box::pin(async move {
            let answered = async {
                let denied = admitted?.denied;
                let (parts, body) = request.into_parts();
                let operation = operation.and_then(|operation| {
                    check_replica(&protocol, &operation, &head)?;
                    Ok(operation)
                });
                let operation = match (operation, denied.clone()) {
                    (Ok(operation), _) => operation,
                    (Err(error), None) => return Err(error),
                    (Err(_), Some(denied)) => return Err((*denied).into()),
                };
                let bytes_max = protocol.transfer(&operation).request_bytes_max;
                let body = RequestBody::new(&head, body, bytes_max, denied);
                protocol.perform(operation, &head, body, GrpcCall::of(parts, upstream)).await
            };
            let mut answer = answered.await.map_or_else(rejected, counted);
            // For the metrics, as of any layer that rejects a call.
            if let Some(reason) = denied {
                answer.extensions_mut().insert(reason);
            }
            Ok(answer)
        });
        match caller.zip(changes) {
            None => answer,
            // One that streams may run for longer than a revocation should wait.
            Some((caller, changes)) => {
                let (identity, now) = (self.identity.clone(), self.identity.clock.now());
                end_when_revoked(answer, caller, changes, move |accounts| {
                    auth::verify(&opened, P::SIGNATURES, &identity, (accounts, now)).map(drop)
                })
            }
        }
    }
}

fn check_replica<P: RestProtocol>(
    protocol: &P,
    operation: &P::Operation,
    head: &RequestHead,
) -> Result<(), RestError> {
    if head.is_secondary && !protocol.target(operation).reads {
        return Err(read_only().into());
    }
    Ok(())
}

/// The error of a write to the secondary.
pub(crate) fn read_only() -> Fault {
    let message = "Write operations are not allowed. The secondary name of an account is read-only";
    Fault::new(Reason::InsufficientAccountPermissions, message)
}

/// An error in the form of the layers.
pub(crate) fn rejected(error: RestError) -> Response {
    let mut answer: Response = error.status.clone().into_http();
    answer.extensions_mut().insert(error);
    answer
}

/// A response with the outcome that the layers count.
pub(crate) fn counted(mut answer: Response) -> Response {
    let outcome = answer.extensions_mut().remove::<CallOutcome>();
    let headers = answer.headers_mut();
    match outcome {
        None => {
            headers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
        }
        Some(CallOutcome(status)) => {
            let mut failed = HeaderMap::new();
            // Fails for a text that no header can carry; the response itself is complete without
            // it.
            let _ = status.add_header(&mut failed);
            headers.extend(failed);
        }
    }
    answer.extensions_mut().insert(Rendered);
    answer
}
