//! Changes of what describes a blob, and of its life: metadata, properties, tags, tier, snapshots, deletion.

use bytes::Bytes;
use http::{Response, StatusCode};
use prost_types::FieldMask;
use tonic::body::Body;
use trestle_model::fault::Reason;
use trestle_proto::blob::v1 as proto;

use super::{
    conditions::{conditions, lease_id, tag_conditions},
    header::{
        self as names, ACCESS_TIER, BLOB_SEQUENCE_NUMBER, DELETE_SNAPSHOTS, IF_TAGS, SNAPSHOT, set,
    },
    operation::{BlobPath, OnBlob},
    properties::{access_tier, of_blob, set_etag},
    write::written,
};
use crate::{
    error::RestError, grpc_call::GrpcCall, head::RequestHead, metadata::read_metadata, reply, xml,
};

/// Set Blob Metadata.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn set_metadata(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let metadata = read_metadata(&head.headers, &call.extensions)?;
    let request = proto::UpdateBlobRequest {
        metadata,
        update_mask: Some(FieldMask { paths: vec!["metadata".to_owned()] }),
        ..update(path, head)?
    };
    let method = OnBlob::SetMetadata.path();
    let response: proto::UpdateBlobResponse = call.unary(method, &request).await?;
    Ok(written(StatusCode::OK, response.blob.as_ref()))
}

/// Set Blob Properties: all of them, where the request has one.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn set_properties(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::UpdateBlobRequest {
        properties: Some(of_blob(head)?),
        update_mask: Some(FieldMask { paths: vec!["properties".to_owned()] }),
        ..update(path, head)?
    };
    let method = OnBlob::SetProperties.path();
    let response: proto::UpdateBlobResponse = call.unary(method, &request).await?;
    let blob = response.blob.unwrap_or_default();
    let mut answer = reply::empty(StatusCode::OK);
    let headers = answer.headers_mut();
    set_etag(headers, &blob);
    if blob.r#type() == proto::BlobType::Page {
        headers.insert(BLOB_SEQUENCE_NUMBER, blob.sequence_number.into());
    }
    Ok(answer)
}

fn update(path: BlobPath, head: &RequestHead) -> Result<proto::UpdateBlobRequest, RestError> {
    Ok(proto::UpdateBlobRequest {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        ..proto::UpdateBlobRequest::default()
    })
}

/// Snapshot Blob.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn snapshot(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::SnapshotBlobRequest {
        container: path.container,
        blob: path.blob,
        metadata: read_metadata(&head.headers, &call.extensions)?,
        conditions: conditions(head)?,
    };
    let method = OnBlob::Snapshot.path();
    let response: proto::SnapshotBlobResponse = call.unary(method, &request).await?;
    let snapshot = response.snapshot.unwrap_or_default();
    let mut answer = written(StatusCode::CREATED, Some(&snapshot));
    set(answer.headers_mut(), SNAPSHOT, &snapshot.snapshot);
    Ok(answer)
}

/// Delete Blob.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn delete(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let delete_snapshots = match names::text(head, &DELETE_SNAPSHOTS) {
        None => proto::DeleteSnapshots::Unspecified,
        Some(text) if text.eq_ignore_ascii_case("include") => proto::DeleteSnapshots::Include,
        Some(text) if text.eq_ignore_ascii_case("only") => proto::DeleteSnapshots::Only,
        Some(text) => {
            let rule = "must be include or only";
            return Err(names::invalid(&DELETE_SNAPSHOTS, text, rule).into());
        }
    };
    if let Some(value) = head.params.get("deletetype") {
        let rule = "is not supported by this server";
        let reason = Reason::InvalidQueryParameterValue;
        return Err(RestError::of_parameter(reason, "deletetype", value, rule));
    }
    let request = proto::DeleteBlobRequest {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        snapshot: head.param("snapshot"),
        delete_snapshots: delete_snapshots.into(),
        version_id: head.param("versionid"),
    };
    let _: proto::DeleteBlobResponse = call.unary(OnBlob::Delete.path(), &request).await?;
    Ok(reply::empty(StatusCode::ACCEPTED))
}

/// Undelete Blob.
///
/// # Errors
/// A failed call.
pub(super) async fn undelete(path: BlobPath, call: GrpcCall) -> Result<Response<Body>, RestError> {
    let request = proto::UndeleteBlobRequest { container: path.container, blob: path.blob };
    let _: proto::UndeleteBlobResponse = call.unary(OnBlob::Undelete.path(), &request).await?;
    Ok(reply::empty(StatusCode::OK))
}

/// Set Blob Tier.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn set_tier(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    for name in ["snapshot", "versionid"] {
        if let Some(value) = head.params.get(name) {
            let rule = "is not supported by this server: only the blob itself has a tier";
            let reason = Reason::InvalidQueryParameterValue;
            return Err(RestError::of_parameter(reason, name, value, rule));
        }
    }
    let access_tier = match access_tier(head)? {
        0 => return Err(names::required(&ACCESS_TIER).into()),
        tier => tier,
    };
    let request = proto::SetBlobTierRequest {
        container: path.container,
        blob: path.blob,
        access_tier,
        lease_id: lease_id(head),
        if_tags: names::text(head, &IF_TAGS).unwrap_or_default().to_owned(),
    };
    let _: proto::SetBlobTierResponse = call.unary(OnBlob::SetTier.path(), &request).await?;
    // Nothing is pending: content of the archive is there at once.
    Ok(reply::empty(StatusCode::OK))
}

/// Get Blob Tags.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn get_tags(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::GetBlobTagsRequest {
        container: path.container,
        blob: path.blob,
        conditions: tag_conditions(head)?,
        snapshot: head.param("snapshot"),
        version_id: head.param("versionid"),
    };
    let method = OnBlob::GetTags.path();
    let response: proto::GetBlobTagsResponse = call.unary(method, &request).await?;
    if response.not_modified {
        return Ok(super::read::not_modified(&proto::Blob::default()));
    }
    Ok(reply::xml(xml::write_tags(&response.tags)))
}

/// Set Blob Tags.
///
/// # Errors
/// Malformed headers or a malformed document, or a failed call.
pub(super) async fn set_tags(
    path: BlobPath,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::SetBlobTagsRequest {
        container: path.container,
        blob: path.blob,
        tags: xml::read_tags(body)?,
        conditions: tag_conditions(head)?,
    };
    let _: proto::SetBlobTagsResponse = call.unary(OnBlob::SetTags.path(), &request).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
