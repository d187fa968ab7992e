//! Operations on containers.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use tonic::body::Body;
use trestle_model::fault::{Fault, Reason};
use trestle_proto::blob::v1 as proto;

use super::{
    conditions::{container_conditions, lease_id},
    header::{
        self as names, DELETED_CONTAINER_NAME, DELETED_CONTAINER_VERSION, PUBLIC_ACCESS, set,
    },
    lease, list,
    operation::OnContainer,
    properties::set_lease,
};
use crate::{
    date::http_date,
    error::RestError,
    grpc_call::GrpcCall,
    head::RequestHead,
    metadata::{read_metadata, write_metadata},
    reply, xml,
};

/// Headers about what no container has here, and their values.
const CONSTANT: [(HeaderName, HeaderValue); 5] = [
    (
        HeaderName::from_static("x-ms-default-encryption-scope"),
        HeaderValue::from_static("$account-encryption-key"),
    ),
    (
        HeaderName::from_static("x-ms-deny-encryption-scope-override"),
        HeaderValue::from_static("false"),
    ),
    (HeaderName::from_static("x-ms-has-immutability-policy"), HeaderValue::from_static("false")),
    (HeaderName::from_static("x-ms-has-legal-hold"), HeaderValue::from_static("false")),
    (
        HeaderName::from_static("x-ms-immutable-storage-with-versioning-enabled"),
        HeaderValue::from_static("false"),
    ),
];

/// Performs an operation on the container of this name.
///
/// # Errors
/// Malformed headers or a malformed body, or a failed call.
pub(super) async fn perform(
    name: String,
    operation: OnContainer,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    check_conditions(operation, head)?;
    match operation {
        OnContainer::Create => create(name, head, call).await,
        OnContainer::Delete => delete(name, head, call).await,
        OnContainer::Get => get(name, head, call).await,
        OnContainer::SetMetadata => set_metadata(name, head, call).await,
        OnContainer::GetPolicies => get_policies(name, call).await,
        OnContainer::SetPolicies => set_policies(name, head, body, call).await,
        OnContainer::Lease => lease::on_container(name, head, call).await,
        OnContainer::Undelete => undelete(name, head, call).await,
        OnContainer::ListBlobs => list::blobs(name, head, call).await,
        // A batch is performed without its body in memory, and never comes here.
        OnContainer::FindBlobs | OnContainer::Batch => list::find(name, head, call).await,
    }
}

/// Rejects the conditions that no container has: a write without them would not be what its client requires.
fn check_conditions(operation: OnContainer, head: &RequestHead) -> Result<(), Fault> {
    let has = |name| head.headers.contains_key(name);
    let is_write = !operation.reads() && operation != OnContainer::Create;
    if is_write && (has(header::IF_MATCH) || has(header::IF_NONE_MATCH)) {
        let message = "a container has no conditions but those of time: if-match, if-none-match";
        return Err(Fault::new(Reason::ConditionHeadersNotSupported, message));
    }
    Ok(())
}

/// The version of a container, in a response.
pub(super) fn set_etag(headers: &mut HeaderMap, container: &proto::Container) {
    set(headers, header::ETAG, &container.etag);
    set(headers, header::LAST_MODIFIED, &http_date(container.last_modified.as_ref()));
}

fn changed(status: StatusCode, container: Option<proto::Container>) -> Response<Body> {
    let mut answer = reply::empty(status);
    set_etag(answer.headers_mut(), &container.unwrap_or_default());
    answer
}

/// The public access of a request.
fn public_access(head: &RequestHead) -> Result<proto::PublicAccess, Fault> {
    match names::text(head, &PUBLIC_ACCESS) {
        None => Ok(proto::PublicAccess::Unspecified),
        Some(text) if text.eq_ignore_ascii_case("blob") => Ok(proto::PublicAccess::Blob),
        Some(text) if text.eq_ignore_ascii_case("container") => Ok(proto::PublicAccess::Container),
        Some(text) => Err(names::invalid(&PUBLIC_ACCESS, text, "must be blob or container")),
    }
}

async fn create(
    name: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let container = proto::Container {
        name,
        metadata: read_metadata(&head.headers, &call.extensions)?,
        public_access: public_access(head)?.into(),
        ..proto::Container::default()
    };
    let request = proto::CreateContainerRequest { container: Some(container) };
    let method = OnContainer::Create.path();
    let response: proto::CreateContainerResponse = call.unary(method, &request).await?;
    Ok(changed(StatusCode::CREATED, response.container))
}

async fn delete(
    container: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let conditions = container_conditions(head)?;
    let request = proto::DeleteContainerRequest { container, conditions };
    let method = OnContainer::Delete.path();
    let _: proto::DeleteContainerResponse = call.unary(method, &request).await?;
    Ok(reply::empty(StatusCode::ACCEPTED))
}

async fn get(
    container: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::GetContainerRequest { container, lease_id: lease_id(head) };
    let response: proto::GetContainerResponse =
        call.unary(OnContainer::Get.path(), &request).await?;
    let container = response.container.unwrap_or_default();
    let mut answer = reply::empty(StatusCode::OK);
    write_metadata(&container.metadata, &mut answer);
    let headers = answer.headers_mut();
    set_etag(headers, &container);
    set_lease(headers, container.lease.as_ref());
    set_public_access(headers, &container);
    headers.extend(CONSTANT);
    Ok(answer)
}

fn set_public_access(headers: &mut HeaderMap, container: &proto::Container) {
    if let Some(access) = xml::public_access(container.public_access()) {
        headers.insert(PUBLIC_ACCESS, HeaderValue::from_static(access));
    }
}

async fn set_metadata(
    container: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::UpdateContainerRequest {
        container,
        metadata: read_metadata(&head.headers, &call.extensions)?,
        conditions: container_conditions(head)?,
    };
    let method = OnContainer::SetMetadata.path();
    let response: proto::UpdateContainerResponse = call.unary(method, &request).await?;
    Ok(changed(StatusCode::OK, response.container))
}

async fn get_policies(container: String, call: GrpcCall) -> Result<Response<Body>, RestError> {
    let request = proto::GetContainerAccessPoliciesRequest { container };
    let method = OnContainer::GetPolicies.path();
    let response: proto::GetContainerAccessPoliciesResponse = call.unary(method, &request).await?;
    let container = response.container.unwrap_or_default();
    let mut answer = reply::xml(xml::write_policies(&response.policies));
    let headers = answer.headers_mut();
    set_etag(headers, &container);
    set_public_access(headers, &container);
    Ok(answer)
}

async fn set_policies(
    container: String,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    super::upload::check_body(head, body)?;
    let request = proto::SetContainerAccessPoliciesRequest {
        container,
        policies: xml::read_policies(body)?,
        conditions: container_conditions(head)?,
        public_access: public_access(head)?.into(),
    };
    let method = OnContainer::SetPolicies.path();
    let response: proto::SetContainerAccessPoliciesResponse = call.unary(method, &request).await?;
    Ok(changed(StatusCode::OK, response.container))
}

/// Restores the container of a name; under another name than it had it would be a rename.
async fn undelete(
    container: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let text = |name: HeaderName| names::text(head, &name).ok_or_else(|| names::required(&name));
    let deleted = text(DELETED_CONTAINER_NAME)?;
    if deleted != container {
        let rule = "must be the name in the path: this server restores no other";
        return Err(names::invalid(&DELETED_CONTAINER_NAME, deleted, rule).into());
    }
    let version = text(DELETED_CONTAINER_VERSION)?.to_owned();
    let request = proto::UndeleteContainerRequest { container, version };
    let method = OnContainer::Undelete.path();
    let response: proto::UndeleteContainerResponse = call.unary(method, &request).await?;
    Ok(changed(StatusCode::CREATED, response.container))
}
