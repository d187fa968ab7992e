//! Copies: Copy Blob, Copy Blob From URL, Put Blob From URL. Each is complete when it is answered.

use futures::TryStreamExt as _;
use http::{HeaderValue, Response, StatusCode};
use tonic::body::Body;
use trestle_model::fault::{Fault, Reason};
use trestle_proto::blob::v1 as proto;

use super::{
    conditions::{conditions, lease_id, source_conditions},
    header::{
        self as names, CONTENT_MD5, COPY_ACTION, COPY_ID, COPY_SOURCE_PROPERTIES, COPY_SOURCE_TAGS,
        COPY_STATUS, REQUIRES_SYNC, SEAL_BLOB, md5_text, set, set_some,
    },
    operation::{BlobPath, OnBlob},
    properties::{access_tier, of_blob, set_etag, set_version, tags},
    source::SourceUrl,
    write::written,
};
use crate::{
    error::RestError, grpc_call::GrpcCall, head::RequestHead, metadata::read_metadata, reply,
};

/// Copy Blob and Copy Blob From URL.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn copy(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    // Copy Blob From URL differs in this: its source is small.
    let is_small_block_blob = names::boolean(head, &REQUIRES_SYNC)?.unwrap_or_default();
    let small = proto::CopyBlobRequest { is_small_block_blob, ..proto::CopyBlobRequest::default() };
    let blob = copied(path, head, call, small).await?;
    let mut answer = reply::empty(StatusCode::ACCEPTED);
    let headers = answer.headers_mut();
    set_etag(headers, &blob);
    set_version(headers, &blob);
    let id = blob.copy.as_ref().map(|copy| copy.id.as_str());
    set_some(headers, COPY_ID, id.unwrap_or_default());
    headers.insert(COPY_STATUS, HeaderValue::from_static("success"));
    let md5 = blob.properties.as_ref().map(|properties| md5_text(&properties.content_md5));
    set_some(headers, CONTENT_MD5, &md5.unwrap_or_default());
    Ok(answer)
}

/// Put Blob From URL.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn put_from_url(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let stated = of_blob(head)?;
    let has_own = stated != proto::HttpProperties::default();
    let copies = names::boolean(head, &COPY_SOURCE_PROPERTIES)?.unwrap_or(true);
    let written_as = proto::CopyBlobRequest {
        is_write: true,
        properties: (has_own || !copies).then_some(stated),
        ..proto::CopyBlobRequest::default()
    };
    let blob = copied(path, head, call, written_as).await?;
    let mut answer = written(StatusCode::CREATED, Some(&blob));
    let md5 = blob.properties.as_ref().map(|properties| md5_text(&properties.content_md5));
    set_some(answer.headers_mut(), CONTENT_MD5, &md5.unwrap_or_default());
    Ok(answer)
}

/// Makes the copy, to its end.
async fn copied(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
    defaults: proto::CopyBlobRequest,
) -> Result<proto::Blob, RestError> {
    let source = SourceUrl::of(head)?;
    let request = proto::CopyBlobRequest {
        container: path.container,
        blob: path.blob,
        source: source.blob,
        metadata: read_metadata(&head.headers, &call.extensions)?,
        conditions: conditions(head)?,
        source_conditions: source_conditions(head)?,
        source_text: source.text,
        source_url: source.url,
        access_tier: access_tier(head)?,
        is_sealed: names::boolean(head, &SEAL_BLOB)?.unwrap_or_default(),
        tags: tags(head)?,
        copy_source_tags: copies_tags(head)?,
        source_checksums: Some(SourceUrl::checksums(head)?),
        ..defaults
    };
    let method = OnBlob::Copy.path();
    let mut progress = call.server_streaming::<_, proto::CopyBlobResponse>(method, request).await?;
    let mut blob = None;
    while let Some(message) = progress.try_next().await? {
        blob = message.blob.or(blob);
    }
    let lost = || Fault::new(Reason::InternalError, "a copy without its blob");
    Ok(blob.ok_or_else(lost)?)
}

/// Whether the copy has the tags of the source.
fn copies_tags(head: &RequestHead) -> Result<bool, Fault> {
    match names::text(head, &COPY_SOURCE_TAGS) {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("copy") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("replace") => Ok(false),
        Some(text) => Err(names::invalid(&COPY_SOURCE_TAGS, text, "must be COPY or REPLACE")),
    }
}

/// Abort Copy Blob.
///
/// # Errors
/// A missing header or parameter, or a failed call: no copy is ever pending.
pub(super) async fn abort(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let action = names::text(head, &COPY_ACTION).ok_or_else(|| names::required(&COPY_ACTION))?;
    if !action.eq_ignore_ascii_case("abort") {
        return Err(names::invalid(&COPY_ACTION, action, "must be abort").into());
    }
    let copy_id = head.params.get("copyid").ok_or_else(|| crate::number::missing("copyid"))?;
    let request = proto::AbortCopyBlobRequest {
        container: path.container,
        blob: path.blob,
        copy_id: copy_id.to_owned(),
        lease_id: lease_id(head),
    };
    let _: proto::AbortCopyBlobResponse = call.unary(OnBlob::AbortCopy.path(), &request).await?;
    let mut answer = reply::empty(StatusCode::NO_CONTENT);
    set(answer.headers_mut(), COPY_ID, copy_id);
    Ok(answer)
}
