//! Requests for pages.

#[cfg(test)]
mod tests;

use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::limits::{
    BLOB_NAME_CHARS_MAX, CONTAINER_NAME_CHARS_MAX, DELIMITER_BYTES_MAX, PAGE_BLOBS_MAX,
    PAGE_CONTAINERS_MAX,
};
use trestle_proto::blob::v1 as proto;

use super::RequestParser;
use crate::{
    blobs::{ListBlobs, PastStates},
    containers::ListContainers,
    names::ContainerName,
};

/// Contents that are verified at a time, where a request does not state it.
const VERIFIED_AT_ONCE: i32 = 8;
/// The same at most.
const VERIFIED_AT_ONCE_MAX: usize = 64;

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

/// Which blobs are verified.
pub(in crate::api) struct VerifyBlobs {
    /// Their container.
    pub(in crate::api) container: ContainerName,
    /// What their names begin with.
    pub(in crate::api) prefix: String,
    /// How many contents are read at a time.
    pub(in crate::api) at_once: usize,
    /// Where it continues; empty: at the start.
    pub(in crate::api) resume_token: String,
}

/// The blobs that are verified.
///
/// # Errors
/// Every violated rule.
pub(in crate::api) fn verify_blobs(
    request: proto::VerifyBlobsRequest,
) -> Result<VerifyBlobs, Fault> {
    let mut parser = RequestParser::default();
    let container = parser.container(request.container, "container");
    let proto::VerifyBlobsRequest { prefix, max_parallel, resume_token, .. } = request;
    if prefix.chars().count() > BLOB_NAME_CHARS_MAX {
        let rule = format!("must have at most {BLOB_NAME_CHARS_MAX} characters");
        let rule = format!("{rule}: value=`{}`", quoted(&prefix));
        parser.push(Reason::InvalidUri, "prefix", rule);
    }
    let at_once = usize::try_from(max_parallel.unwrap_or(VERIFIED_AT_ONCE)).unwrap_or_default();
    if !(1..=VERIFIED_AT_ONCE_MAX).contains(&at_once) {
        let value = max_parallel.unwrap_or_default();
        let rule = format!("must be 1 to {VERIFIED_AT_ONCE_MAX}: value=`{value}`");
        parser.push(Reason::OutOfRangeQueryParameterValue, "max_parallel", rule);
    }
    let verify = |container| VerifyBlobs { container, prefix, at_once, resume_token };
    parser.finish(container.map(verify))
}
