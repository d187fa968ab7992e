//! Writes of content: Put Blob, Append Block, Seal.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tonic::body::Body;
use trestle_proto::blob::v1 as proto;

use super::{
    conditions::{conditions, source_conditions},
    header::{
        self as names, APPEND_OFFSET, APPEND_POSITION, BLOB_SEALED, BLOCK_COUNT, CONTENT_CRC64,
        CONTENT_MD5, MAX_SIZE, REQUEST_ENCRYPTED, SOURCE_RANGE, crc64_text, md5_text, set,
        set_some,
    },
    operation::{BlobPath, DataFrom, OnBlob, PutKind},
    properties::{access_tier, of_upload, set_etag, set_version, tags},
    range,
    source::SourceUrl,
    upload::{check_empty, upload, upload_from_source},
};
use crate::{
    error::RestError, grpc_call::GrpcCall, head::RequestHead, metadata::read_metadata, reply,
    request_body::RequestBody,
};

/// The response to a write that created or changed a blob.
pub(super) fn written(status: StatusCode, blob: Option<&proto::Blob>) -> Response<Body> {
    let mut answer = reply::empty(status);
    let headers = answer.headers_mut();
    headers.insert(REQUEST_ENCRYPTED, HeaderValue::from_static("true"));
    if let Some(blob) = blob {
        set_etag(headers, blob);
        set_version(headers, blob);
    }
    answer
}

/// The checksum of received data in a response: the MD5 that the request stated and that was compared, or the CRC-64.
pub(super) fn set_received(headers: &mut HeaderMap, md5: Option<&str>, crc64: u64) {
    match md5 {
        Some(md5) => set(headers, CONTENT_MD5, md5),
        None => set(headers, CONTENT_CRC64, &crc64_text(crc64)),
    }
}

/// Put Blob of a block blob.
///
/// # Errors
/// Malformed headers, a broken body, or a failed call.
pub(super) async fn put(
    path: BlobPath,
    head: &RequestHead,
    body: RequestBody,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let spec = proto::WriteBlobSpec {
        container: path.container,
        blob: path.blob,
        properties: Some(of_upload(head)?),
        metadata: read_metadata(&head.headers, &call.extensions)?,
        conditions: conditions(head)?,
        access_tier: access_tier(head)?,
        tags: tags(head)?,
    };
    let method = OnBlob::Put(PutKind::Block).path();
    let uploaded = upload::<proto::WriteBlobRequest, proto::WriteBlobResponse>;
    let response = uploaded(method, spec, head, body, call).await?;
    let blob = response.blob.as_ref();
    let mut answer = written(StatusCode::CREATED, blob);
    let headers = answer.headers_mut();
    let properties = blob.and_then(|blob| blob.properties.as_ref());
    let md5 = properties.map(|properties| md5_text(&properties.content_md5));
    set_some(headers, CONTENT_MD5, &md5.unwrap_or_default());
    set(headers, CONTENT_CRC64, &crc64_text(response.crc64));
    Ok(answer)
}

/// Put Blob of an append blob.
///
/// # Errors
/// Malformed headers, a body, or a failed call.
pub(super) async fn create_append(
    path: BlobPath,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    check_empty(body)?;
    let request = proto::CreateAppendBlobRequest {
        container: path.container,
        blob: path.blob,
        properties: Some(of_upload(head)?),
        metadata: read_metadata(&head.headers, &call.extensions)?,
        conditions: conditions(head)?,
        tags: tags(head)?,
    };
    let method = OnBlob::Put(PutKind::Append).path();
    let response: proto::CreateAppendBlobResponse = call.unary(method, &request).await?;
    Ok(written(StatusCode::CREATED, response.blob.as_ref()))
}

fn append_spec(path: BlobPath, head: &RequestHead) -> Result<proto::AppendBlockSpec, RestError> {
    Ok(proto::AppendBlockSpec {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        position: names::number(head, &APPEND_POSITION)?,
        size_max: names::number(head, &MAX_SIZE)?,
        ..proto::AppendBlockSpec::default()
    })
}

/// Append Block.
///
/// # Errors
/// Malformed headers, a broken body, or a failed call.
pub(super) async fn append(
    path: BlobPath,
    head: &RequestHead,
    body: RequestBody,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let spec = append_spec(path, head)?;
    let method = OnBlob::AppendBlock(DataFrom::Body).path();
    let uploaded = upload::<proto::AppendBlockRequest, proto::AppendBlockResponse>;
    let response = uploaded(method, spec, head, body, call).await?;
    Ok(appended(&response, names::text(head, &CONTENT_MD5)))
}

/// Append Block From URL.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn append_from_url(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let source = SourceUrl::of(head)?;
    let spec = proto::AppendBlockSpec {
        source: source.blob,
        source_url: source.url,
        source_range: range::of_header(head, &SOURCE_RANGE)?,
        source_conditions: source_conditions(head)?,
        ..append_spec(path, head)?
    };
    let method = OnBlob::AppendBlock(DataFrom::Url).path();
    let uploaded = upload_from_source::<proto::AppendBlockRequest, proto::AppendBlockResponse>;
    let response = uploaded(method, spec, SourceUrl::checksums(head)?, call).await?;
    Ok(appended(&response, None))
}

fn appended(response: &proto::AppendBlockResponse, md5: Option<&str>) -> Response<Body> {
    let mut answer = written(StatusCode::CREATED, response.blob.as_ref());
    let headers = answer.headers_mut();
    headers.insert(APPEND_OFFSET, response.offset.into());
    let count = response.blob.as_ref().map_or(0, |blob| blob.committed_block_count);
    headers.insert(BLOCK_COUNT, count.into());
    set_received(headers, md5, response.crc64);
    answer
}

/// Append Blob Seal.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn seal(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::SealBlobRequest {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        position: names::number(head, &APPEND_POSITION)?,
    };
    let response: proto::SealBlobResponse = call.unary(OnBlob::Seal.path(), &request).await?;
    let mut answer = reply::empty(StatusCode::OK);
    let headers = answer.headers_mut();
    if let Some(blob) = &response.blob {
        set_etag(headers, blob);
    }
    headers.insert(BLOB_SEALED, HeaderValue::from_static("true"));
    Ok(answer)
}
