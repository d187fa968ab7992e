//! Lists: containers, blobs, and blobs by their tags.

use http::Response;
use tonic::body::Body;
use trestle_model::limits::{PAGE_BLOBS_MAX, PAGE_CONTAINERS_MAX};
use trestle_proto::blob::v1 as proto;

use super::operation::{OnBlobAccount, OnContainer};
use crate::{
    error::RestError,
    grpc_call::GrpcCall,
    head::RequestHead,
    number::{count, missing},
    reply,
    xml::{self, Echo},
};

/// The page size of a request: one that is larger than the largest is the largest.
///
/// # Errors
/// Another value than a number of 1 or more.
pub(super) fn page_size(head: &RequestHead, max: usize) -> Result<Option<u32>, RestError> {
    let stated = count(&head.params, "maxresults", u32::MAX as usize)?;
    let max = u32::try_from(max).unwrap_or(u32::MAX);
    Ok(stated.map(|stated| stated.min(max)))
}

/// The page size as the contract has it.
fn page_size_of(max_results: Option<u32>) -> Option<i32> {
    max_results.and_then(|max| i32::try_from(max).ok())
}

/// A parameter of the request, unless it is empty.
fn some<'a>(head: &'a RequestHead, name: &str) -> Option<&'a str> {
    head.params.get(name).filter(|text| !text.is_empty())
}

/// Whether the request includes something. Other parts are ignored: clients request what only some accounts
/// have.
fn includes(head: &RequestHead, name: &str) -> bool {
    let included = head.params.get("include").unwrap_or_default();
    included.split(',').any(|part| part.trim().eq_ignore_ascii_case(name))
}

/// List Containers.
///
/// # Errors
/// Malformed parameters, or a failed call.
pub(super) async fn containers(
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let max_results = page_size(head, PAGE_CONTAINERS_MAX)?;
    let request = proto::ListContainersRequest {
        prefix: head.param("prefix"),
        page_size: page_size_of(max_results),
        page_token: head.param("marker"),
        include_metadata: includes(head, "metadata"),
        include_deleted: includes(head, "deleted"),
        include_system: includes(head, "system"),
    };
    let method = OnBlobAccount::ListContainers.path();
    let response: proto::ListContainersResponse = call.unary(method, &request).await?;
    Ok(reply::xml(xml::write_containers(&xml::ContainersDocument {
        echo: echo(head, max_results),
        has_metadata: request.include_metadata,
        containers: &response.containers,
        next_marker: &response.next_page_token,
    })))
}

fn echo(head: &RequestHead, max_results: Option<u32>) -> Echo<'_> {
    Echo {
        endpoint: &head.base,
        prefix: some(head, "prefix"),
        marker: some(head, "marker"),
        max_results,
        ..Echo::default()
    }
}

/// List Blobs.
///
/// # Errors
/// Malformed parameters, or a failed call.
pub(super) async fn blobs(
    container: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let max_results = page_size(head, PAGE_BLOBS_MAX)?;
    let has_deleted = includes(head, "deleted") || includes(head, "deletedwithversions");
    let request = proto::ListBlobsRequest {
        container: container.clone(),
        prefix: head.param("prefix"),
        delimiter: head.param("delimiter"),
        page_size: page_size_of(max_results),
        page_token: head.param("marker"),
        include_metadata: includes(head, "metadata"),
        include_uncommitted: includes(head, "uncommittedblobs"),
        start_from: head.param("startfrom"),
        end_before: head.param("endbefore"),
        include_snapshots: includes(head, "snapshots"),
        include_deleted: has_deleted,
        include_versions: includes(head, "versions") || includes(head, "deletedwithversions"),
        include_tags: includes(head, "tags"),
    };
    let method = OnContainer::ListBlobs.path();
    let response: proto::ListBlobsResponse = call.unary(method, &request).await?;
    let of_blobs = Echo {
        container: Some(&container),
        delimiter: some(head, "delimiter"),
        ..echo(head, max_results)
    };
    Ok(reply::xml(xml::write_blobs(&xml::BlobsDocument {
        echo: of_blobs,
        has_metadata: request.include_metadata,
        has_copies: includes(head, "copy"),
        has_tags: request.include_tags,
        items: &response.items,
        next_marker: &response.next_page_token,
    })))
}

/// Find Blobs by Tags, in a container or, without a name, in the account.
///
/// # Errors
/// Malformed parameters, or a failed call.
pub(super) async fn find(
    container: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let max_results = page_size(head, PAGE_BLOBS_MAX)?;
    let filter = some(head, "where").ok_or_else(|| missing("where"))?;
    let request = proto::FindBlobsRequest {
        filter: filter.to_owned(),
        container,
        page_size: page_size_of(max_results),
        page_token: head.param("marker"),
    };
    let method = OnContainer::FindBlobs.path();
    let response: proto::FindBlobsResponse = call.unary(method, &request).await?;
    Ok(reply::xml(xml::write_found(&xml::FoundDocument {
        echo: Echo { endpoint: &head.base, max_results, ..Echo::default() },
        filter,
        blobs: &response.blobs,
        next_marker: &response.next_page_token,
    })))
}
