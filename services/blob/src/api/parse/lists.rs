//! Requests for pages.

#[cfg(test)]
mod tests;

use trestle_proto::blob::v1 as proto;
use trestle_service::{
    fault::{Fault, Reason, quoted},
    limits::{
        BLOB_NAME_CHARS_MAX, CONTAINER_NAME_CHARS_MAX, DELIMITER_BYTES_MAX, PAGE_BLOBS_MAX,
        PAGE_CONTAINERS_MAX,
    },
};

use super::RequestParser;
use crate::{
    blobs::{ListBlobs, PastStates},
    containers::ListContainers,
    names::ContainerName,
};

/// A page of containers.
///
/// # Errors
/// Every violated rule.
pub(in crate::api) fn list_containers(
    request: proto::ListContainersRequest,
) -> Result<ListContainers, Fault> {
    let mut parser = RequestParser::default();
    let proto::ListContainersRequest { prefix, page_size, page_token, .. } = request;
    let (with_deleted, with_system) = (request.include_deleted, request.include_system);
    if prefix.len() > CONTAINER_NAME_CHARS_MAX {
        let rule = format!("must have at most {CONTAINER_NAME_CHARS_MAX} bytes");
        let rule = format!("{rule}: value=`{}`", quoted(&prefix));
        parser.push(Reason::OutOfRangeInput, "prefix", rule);
    }
    let size = page_size.map_or(Ok(PAGE_CONTAINERS_MAX), usize::try_from);
    if size.is_err() {
        let rule = format!("must be 0 or more: value=`{}`", page_size.unwrap_or_default());
        parser.push(Reason::InvalidInput, "page_size", rule);
    }
    let page_size = size.unwrap_or_default().min(PAGE_CONTAINERS_MAX);
    let list = ListContainers { prefix, page_size, page_token, with_deleted, with_system };
    parser.finish(Some(list))
}

/// A page of the blobs of a container, and whether they have their metadata.
///
/// # Errors
/// Every violated rule.
pub(in crate::api) fn list_blobs(
    request: proto::ListBlobsRequest,
) -> Result<(ContainerName, ListBlobs), Fault> {
    let mut parser = RequestParser::default();
    let container = parser.container(request.container, "container");
    let proto::ListBlobsRequest { prefix, delimiter, page_size, page_token, .. } = request;
    let (start_from, end_before) = (request.start_from, request.end_before);
    for (field, name) in
        [("prefix", &prefix), ("start_from", &start_from), ("end_before", &end_before)]
    {
        if name.chars().count() > BLOB_NAME_CHARS_MAX {
            let rule = format!("must have at most {BLOB_NAME_CHARS_MAX} characters");
            let rule = format!("{rule}: value=`{}`", quoted(name));
            parser.push(Reason::InvalidUri, field, rule);
        }
    }
    if delimiter.len() > DELIMITER_BYTES_MAX {
        let rule = format!("must have at most {DELIMITER_BYTES_MAX} bytes");
        let rule = format!("{rule}: value=`{}`", quoted(&delimiter));
        parser.push(Reason::OutOfRangeQueryParameterValue, "delimiter", rule);
    }
    let size = page_size.map_or(Ok(PAGE_BLOBS_MAX), usize::try_from);
    let size = size.ok().filter(|size| *size > 0);
    if size.is_none() {
        let rule = format!("must be 1 or more: value=`{}`", page_size.unwrap_or_default());
        parser.push(Reason::OutOfRangeQueryParameterValue, "page_size", rule);
    }
    let page_size = size.unwrap_or_default().min(PAGE_BLOBS_MAX);
    let with_uncommitted = request.include_uncommitted;
    let past = PastStates {
        snapshots: request.include_snapshots,
        deleted: request.include_deleted,
        versions: request.include_versions,
    };
    if past.snapshots && !delimiter.is_empty() {
        let rule = "must be empty where snapshots are listed";
        parser.push(Reason::InvalidQueryParameterValue, "delimiter", rule);
    }
    let list = ListBlobs {
        prefix,
        start_from,
        end_before,
        delimiter,
        page_size,
        page_token,
        with_uncommitted,
        past,
    };
    parser.finish(container.map(|container| (container, list)))
}
