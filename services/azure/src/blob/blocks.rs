//! Blocks: Put Block, Put Block List, Get Block List.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Response, StatusCode};
use tonic::body::Body;
use trestle_model::fault::Reason;
use trestle_proto::blob::v1 as proto;

use super::{
    conditions::{conditions, lease_id, source_conditions},
    header::{
        BLOB_CONTENT_LENGTH, CONTENT_CRC64, CONTENT_MD5, IF_TAGS, SOURCE_RANGE, crc64_text, set,
        text,
    },
    operation::{BlobPath, DataFrom, OnBlob},
    properties::{access_tier, of_blob, set_etag, tags},
    range,
    source::SourceUrl,
    upload::{check_body, upload, upload_from_source},
    write::{set_received, written},
};
use crate::{
    error::RestError, grpc_call::GrpcCall, head::RequestHead, metadata::read_metadata,
    number::missing, reply, request_body::RequestBody, xml,
};

fn stage_spec(path: BlobPath, head: &RequestHead) -> Result<proto::StageBlockSpec, RestError> {
    let id = head.params.get("blockid").ok_or_else(|| missing("blockid"))?;
    let decoded = STANDARD.decode(id).map_err(|_| {
        let rule = "must be base64";
        RestError::of_parameter(Reason::InvalidQueryParameterValue, "blockid", id, rule)
    })?;
    Ok(proto::StageBlockSpec {
        container: path.container,
        blob: path.blob,
        block_id: decoded.into(),
        lease_id: lease_id(head),
        ..proto::StageBlockSpec::default()
    })
}

/// Put Block.
///
/// # Errors
/// Malformed headers, a broken body, or a failed call.
pub(super) async fn stage(
    path: BlobPath,
    head: &RequestHead,
    body: RequestBody,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let spec = stage_spec(path, head)?;
    let method = OnBlob::StageBlock(DataFrom::Body).path();
    let uploaded = upload::<proto::StageBlockRequest, proto::StageBlockResponse>;
    let response = uploaded(method, spec, head, body, call).await?;
    Ok(staged(&response, text(head, &CONTENT_MD5)))
}

/// Put Block From URL.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn stage_from_url(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let source = SourceUrl::of(head)?;
    let spec = proto::StageBlockSpec {
        source: source.blob,
        source_url: source.url,
        source_range: range::of_header(head, &SOURCE_RANGE)?,
        source_conditions: source_conditions(head)?,
        ..stage_spec(path, head)?
    };
    let method = OnBlob::StageBlock(DataFrom::Url).path();
    let uploaded = upload_from_source::<proto::StageBlockRequest, proto::StageBlockResponse>;
    let response = uploaded(method, spec, SourceUrl::checksums(head)?, call).await?;
    Ok(staged(&response, None))
}

fn staged(response: &proto::StageBlockResponse, md5: Option<&str>) -> Response<Body> {
    let mut answer = written(StatusCode::CREATED, None);
    set_received(answer.headers_mut(), md5, response.crc64);
    answer
}

/// Put Block List.
///
/// # Errors
/// Malformed headers or a malformed document, or a failed call.
pub(super) async fn commit(
    path: BlobPath,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let crc64 = check_body(head, body)?;
    let request = proto::CommitBlocksRequest {
        container: path.container,
        blob: path.blob,
        blocks: xml::read_blocks(body)?,
        properties: Some(of_blob(head)?),
        metadata: read_metadata(&head.headers, &call.extensions)?,
        conditions: conditions(head)?,
        access_tier: access_tier(head)?,
        tags: tags(head)?,
    };
    let method = OnBlob::CommitBlocks.path();
    let response: proto::CommitBlocksResponse = call.unary(method, &request).await?;
    let mut answer = written(StatusCode::CREATED, response.blob.as_ref());
    set(answer.headers_mut(), CONTENT_CRC64, &crc64_text(crc64));
    Ok(answer)
}

/// Get Block List.
///
/// # Errors
/// An invalid parameter, or a failed call.
pub(super) async fn list(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let kind = head.params.get("blocklisttype").unwrap_or("committed").to_ascii_lowercase();
    let (has_committed, has_uncommitted) = match kind.as_str() {
        "committed" => (true, false),
        "uncommitted" => (false, true),
        "all" => (true, true),
        _ => {
            let rule = "must be committed, uncommitted or all";
            let reason = Reason::InvalidQueryParameterValue;
            return Err(RestError::of_parameter(reason, "blocklisttype", &kind, rule));
        }
    };
    let request = proto::GetBlockListRequest {
        container: path.container,
        blob: path.blob,
        lease_id: lease_id(head),
        snapshot: head.param("snapshot"),
        version_id: head.param("versionid"),
        if_tags: text(head, &IF_TAGS).unwrap_or_default().to_owned(),
    };
    let method = OnBlob::GetBlockList.path();
    let response: proto::GetBlockListResponse = call.unary(method, &request).await?;
    let lists = xml::BlockLists {
        committed: has_committed.then_some(&response.committed[..]),
        uncommitted: has_uncommitted.then_some(&response.uncommitted[..]),
    };
    let mut answer = reply::xml(xml::write_block_lists(&lists));
    let headers = answer.headers_mut();
    let blob = response.blob.unwrap_or_default();
    set_etag(headers, &blob);
    headers.insert(BLOB_CONTENT_LENGTH, blob.size.into());
    Ok(answer)
}
