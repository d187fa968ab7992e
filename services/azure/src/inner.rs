//! The half of a front behind the layers: finds out who calls, reads the body, and has the
//! protocol make the call.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt as _;
use tonic::{Status, body::Body};
use tonic_types::StatusExt as _;
use tower::Service;
use trestle_identity::{caller::Denied, credentials::Identity};
use trestle_service::{
    fault::{Fault, Reason},
    layer::{Answer, Request, Response, early::Early},
    upstream::Upstream,
};

use crate::{
    auth,
    call::Upcall,
    failure::Refusal,
    gather::Gathered,
    gzip::Encoding,
    head::Head,
    protocol::Protocol,
    reply::{Answered, Outcome},
};

/// Most bytes that are set aside for a body before they arrive: nobody has to send what he announces.
const ROOM_BYTES_MAX: usize = 256 * 1024;

/// What the outer half found in a request, in its extensions.
pub(crate) struct Asked<P: Protocol> {
    pub(crate) head: Arc<Head>,
    pub(crate) operation: Result<P::Operation, Refusal>,
}

impl<P: Protocol> Clone for Asked<P> {
    fn clone(&self) -> Self {
        Self { head: Arc::clone(&self.head), operation: self.operation.clone() }
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Inner<P> {
    protocol: P,
    upstream: Upstream,
    identity: Identity,
}

impl<P: Protocol> Inner<P> {
    pub(crate) fn new(protocol: P, upstream: Upstream, identity: Identity) -> Self {
        Self { protocol, upstream, identity }
    }

    /// Puts the caller on a request whose credentials are good. What they are refused for after
    /// their stored access policy was asked, which is the service's to do, comes out.
    fn admit(&self, head: &Head, request: &mut Request) -> Result<Option<Denied>, Fault> {
        let caller = auth::caller(head, P::SIGNING, &self.identity).map_err(Fault::from)?;
        let denied = caller.authority.denied().cloned();
        Arc::new(caller).insert(request);
        Ok(denied)
    }
}

impl<P: Protocol> Service<Request> for Inner<P> {
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Answer {
        if let Some(answer) = Early::take(&mut request) {
            return answer;
        }
        let asked = request.extensions_mut().remove::<Asked<P>>();
        let Some(Asked { head, operation }) = asked else {
            let fault = Fault::new(Reason::InternalError, "a request without its head");
            return Box::pin(async move { Ok(refused(fault.into())) });
        };
        // Credentials first: nobody learns without them what operations there are.
        let admitted = self.admit(&head, &mut request);
        let denied = admitted.as_ref().err().map(|fault| fault.reason);
        let (protocol, upstream) = (self.protocol.clone(), self.upstream.clone());
        Box::pin(async move {
            let answered = async {
                let denied = admitted?;
                let (parts, body) = request.into_parts();
                let understood: Result<_, Refusal> = async {
                    let operation = operation?;
                    check_replica(&protocol, &operation, &head)?;
                    Ok((operation, read::<P>(&head, body).await?))
                }
                .await;
                let (operation, body) = match (understood, denied) {
                    (Ok(understood), _) => understood,
                    (Err(refusal), None) => return Err(refusal),
                    (Err(_), Some(denied)) => return Err(Fault::from(denied).into()),
                };
                protocol.perform(operation, &head, body, Upcall::of(parts, upstream)).await
            };
            let mut answer = answered.await.map_or_else(refused, counted);
            // For the metrics, as of any layer that turns a call away.
            if let Some(reason) = denied {
                answer.extensions_mut().insert(reason);
            }
            Ok(answer)
        })
    }
}

fn check_replica<P: Protocol>(
    protocol: &P,
    operation: &P::Operation,
    head: &Head,
) -> Result<(), Refusal> {
    if head.is_secondary && !protocol.target(operation).reads {
        return Err(read_only().into());
    }
    Ok(())
}

/// The refusal of a change at the secondary.
pub(crate) fn read_only() -> Fault {
    let message = "the secondary name of an account is read-only";
    Fault::new(Reason::InsufficientAccountPermissions, message)
}

/// The whole body of a request.
async fn read<P: Protocol>(head: &Head, body: Body) -> Result<Bytes, Refusal> {
    let limit = P::BODY_BYTES_MAX;
    let encoding = Encoding::of(head.headers.get(header::CONTENT_ENCODING))?;
    let too_large = || {
        let rule = format!("must have at most {limit} bytes");
        let fault = Fault::violation(Reason::RequestBodyTooLarge, "body", rule);
        Refusal::from(fault).with("MaxLimit", limit.to_string())
    };
    let declared = head.header(header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let body = collect(body, limit, declared.unwrap_or_default()).await?.ok_or_else(too_large)?;
    encoding.decode(body, limit)?.ok_or_else(too_large)
}

/// The bytes of a body; none where there are more than the limit. So many more are read and
/// dropped then: a client that is still sending when the answer comes may never look at it.
async fn collect(body: Body, limit: usize, declared: usize) -> Result<Option<Bytes>, Refusal> {
    let mut body = std::pin::pin!(body);
    let (mut kept, mut read, mut is_too_large) = (Gathered::default(), 0_usize, declared > limit);
    let room = declared.min(ROOM_BYTES_MAX);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        read = read.saturating_add(data.len());
        is_too_large |= read > limit;
        if is_too_large {
            kept = Gathered::default();
        } else {
            kept.add(data, room);
        }
        if read > limit.saturating_mul(2) {
            break;
        }
    }
    Ok((!is_too_large).then(|| kept.bytes()))
}

/// A body that breaks off: what a layer says of it, or that the client went away.
fn broken(status: Status) -> Refusal {
    if status.get_error_details().error_info().is_some() {
        return status.into();
    }
    Fault::violation(Reason::InvalidInput, "body", "ended too early").into()
}

/// A refusal, as the layers know them.
pub(crate) fn refused(refusal: Refusal) -> Response {
    let mut answer: Response = refusal.status.clone().into_http();
    answer.extensions_mut().insert(refusal);
    answer
}

/// An answer with the outcome that the layers count.
pub(crate) fn counted(mut answer: Response) -> Response {
    let outcome = answer.extensions_mut().remove::<Outcome>();
    let headers = answer.headers_mut();
    match outcome {
        None => {
            headers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
        }
        Some(Outcome(status)) => {
            let mut failed = HeaderMap::new();
            // Fails for a text that no header can carry; the answer itself is complete without.
            let _ = status.add_header(&mut failed);
            headers.extend(failed);
        }
    }
    answer.extensions_mut().insert(Answered);
    answer
}
