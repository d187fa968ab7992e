//! Batches: several requests in the body of one, each with its own credentials, and each with its own outcome.

use std::fmt::Write as _;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use tonic::body::Body;
use trestle_identity::{
    public_key::{AllowedPage, RequestSource},
    spec::BLOB,
};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_rpc::layer::Request;

use super::{
    BlobProtocol, fields, on_blob,
    operation::{BlobOperation, BlobPath, OnBlob},
    route,
};
use crate::{
    auth,
    error::{ErrorResponse, RestError, document},
    grpc_call::GrpcCall,
    head::RequestHead,
    reply::{self, ERROR_CODE, REQUEST_ID},
    request_body::RequestBody,
    table::batch::{embedded, multipart},
    version,
};

/// Most requests of a batch.
const REQUESTS_MAX: usize = 256;
/// Requests that are performed at a time.
const AT_ONCE: usize = 8;
/// The id of a part, which its response repeats.
const CONTENT_ID: HeaderName = HeaderName::from_static("content-id");

/// A request of a batch.
struct BatchRequest {
    content_id: Option<HeaderValue>,
    head: RequestHead,
    path: BlobPath,
    operation: OnBlob,
}

/// Blob Batch, in a container or in the account.
///
/// # Errors
/// A malformed body, too many requests, other requests than those of a batch, or those of several kinds.
pub(super) async fn perform(
    protocol: &BlobProtocol,
    container: Option<&str>,
    head: &RequestHead,
    body: RequestBody,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let body = body.collect().await?;
    let content_type = head.header(header::CONTENT_TYPE).unwrap_or_default();
    let boundary = multipart::boundary(content_type).ok_or_else(|| {
        let rule = "must be multipart/mixed with a boundary";
        let rule = format!("{rule}: value=`{}`", quoted(content_type));
        Fault::violation(Reason::InvalidInput, "content-type", rule)
    })?;
    let requests = requests(&body, boundary, container, head)?;
    let unique = call.request_id().to_owned();
    let parts = requests.into_iter().map(|request| part(protocol, request, head, call.again()));
    // In their order, which clients may expect.
    let outcomes: Vec<Vec<u8>> = stream::iter(parts).buffered(AT_ONCE).collect().await;
    let boundary = format!("batchresponse_{unique}");
    let mut out = Vec::new();
    for outcome in outcomes {
        out.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        out.extend_from_slice(&outcome);
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let mut answer = reply::whole(StatusCode::ACCEPTED, "multipart/mixed", out);
    let content_type = format!("multipart/mixed; boundary={boundary}");
    super::header::set(answer.headers_mut(), header::CONTENT_TYPE, &content_type);
    Ok(answer)
}

/// The requests in a body, all of one kind.
fn requests(
    body: &[u8],
    boundary: &str,
    container: Option<&str>,
    outer: &RequestHead,
) -> Result<Vec<BatchRequest>, RestError> {
    let invalid = |rule: &str| Fault::violation(Reason::InvalidInput, "body", rule);
    let mut requests: Vec<BatchRequest> = Vec::new();
    for part in multipart::parts(body, boundary) {
        let part = part.map_err(|_| invalid("must end with its boundary"))?;
        if requests.len() == REQUESTS_MAX {
            let rule = format!("must have at most {REQUESTS_MAX} requests");
            return Err(invalid(&rule).into());
        }
        let request = request(part, outer)?;
        if container.is_some_and(|container| container != request.path.container) {
            return Err(invalid("must have requests to the container of the batch only").into());
        }
        if requests.first().is_some_and(|first| first.operation != request.operation) {
            return Err(invalid("must have requests of one kind: deletes, or access tiers").into());
        }
        requests.push(request);
    }
    if requests.is_empty() {
        return Err(invalid("must have a request").into());
    }
    Ok(requests)
}

/// The request in a part, as if it had arrived by itself.
fn request(part: &[u8], outer: &RequestHead) -> Result<BatchRequest, RestError> {
    let invalid = |rule: &str| Fault::violation(Reason::InvalidInput, "body", rule);
    let (headers, content) = embedded::part(part)?;
    let content_id = headers.get(CONTENT_ID).cloned();
    let embedded = embedded::request(content)?;
    let mut request = Request::new(Body::empty());
    let method = embedded.method.parse();
    *request.method_mut() = method.map_err(|_| invalid("must have valid methods"))?;
    let target = embedded.target.parse();
    *request.uri_mut() = target.map_err(|_| invalid("must have valid addresses"))?;
    *request.headers_mut() = embedded.headers;
    let host = embedded.host.unwrap_or(&outer.host);
    let host = HeaderValue::from_str(host).map_err(|_| invalid("must have valid hosts"))?;
    request.headers_mut().insert(header::HOST, host);
    request.extensions_mut().insert(outer.peer.clone());
    let head = RequestHead::take(&mut request, "blob")?;
    if head.account != outer.account || head.is_secondary {
        return Err(invalid("must have requests to the account of the batch only").into());
    }
    match route::route(&head)? {
        BlobOperation::Blob(path, operation @ (OnBlob::Delete | OnBlob::SetTier)) => {
            Ok(BatchRequest { content_id, head, path, operation })
        }
        _ => Err(invalid("must have requests that delete blobs or set their access tiers").into()),
    }
}

/// Performs a request. Returns its part of the response.
async fn part(
    protocol: &BlobProtocol,
    request: BatchRequest,
    outer: &RequestHead,
    call: GrpcCall,
) -> Vec<u8> {
    let id = call.request_id().to_owned();
    let performed = authorized(protocol, &request.head, outer, call);
    let answered = match performed {
        Err(error) => Err(error),
        Ok(call) => {
            let body = RequestBody::new(&request.head, Body::empty(), 0, None);
            on_blob(request.path, request.operation, &request.head, body, call).await
        }
    };
    let answer = answered.unwrap_or_else(|error| {
        let error = error.with_fields(fields::name);
        let headers = &request.head.headers;
        let error =
            ErrorResponse::new(error, &id, protocol.identity.clock.now()).of_request(headers);
        let mut answer = document(&error);
        *answer.status_mut() = error.status;
        super::header::set(answer.headers_mut(), ERROR_CODE, &error.code);
        answer
    });
    written(answer, request.content_id.as_ref(), outer, &id).await
}

/// The call of a request, for the caller that its credentials authenticate.
fn authorized(
    protocol: &BlobProtocol,
    head: &RequestHead,
    outer: &RequestHead,
    call: GrpcCall,
) -> Result<GrpcCall, RestError> {
    let identity = &protocol.identity;
    let caller = auth::caller(head, &BLOB, identity).map_err(Fault::from)?;
    let source = RequestSource {
        method: &outer.method,
        is_read: outer.method.is_safe(),
        uri: &outer.uri,
        headers: &outer.headers,
        is_allowed_page: call.extensions.get::<AllowedPage>().is_some(),
    };
    identity.check_public_key(&caller, &source).map_err(Fault::from)?;
    if let Some(denied) = caller.authority.denied() {
        return Err(denied.clone().into());
    }
    Ok(call.for_caller(caller))
}

/// A response as a part of the one of the batch.
async fn written(
    answer: Response<Body>,
    content_id: Option<&HeaderValue>,
    outer: &RequestHead,
    id: &str,
) -> Vec<u8> {
    let (parts, body) = answer.into_parts();
    // Documents in memory, which cannot fail.
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_else(|_| Bytes::new());
    let mut head = String::from("Content-Type: application/http\r\n");
    // Writes to memory do not fail.
    if let Some(content_id) = content_id.and_then(|id| id.to_str().ok()) {
        let _ = write!(head, "Content-ID: {content_id}\r\n");
    }
    let reason = parts.status.canonical_reason().unwrap_or_default();
    let _ = write!(head, "\r\nHTTP/1.1 {} {reason}\r\n", parts.status.as_u16());
    let mut headers: HeaderMap = parts.headers;
    let version = version::negotiated(&outer.headers, Some(&outer.params));
    headers.insert(version::VERSION, version);
    super::header::set(&mut headers, REQUEST_ID, id);
    if body.is_empty() {
        // A client may take an empty line after the head for a body, and fail.
        headers.remove(header::CONTENT_LENGTH);
    }
    for (name, value) in &headers {
        if let Ok(value) = value.to_str() {
            let _ = write!(head, "{name}: {value}\r\n");
        }
    }
    head.push_str("\r\n");
    let mut out = head.into_bytes();
    if !body.is_empty() {
        out.extend_from_slice(&body);
        out.extend_from_slice(b"\r\n");
    }
    out
}
