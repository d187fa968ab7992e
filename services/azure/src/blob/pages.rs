//! Page blobs: create, Put Page, Get Page Ranges, sizes and sequence numbers.

use bytes::Bytes;
use http::{Response, StatusCode, header::CONTENT_LENGTH};
use tonic::body::Body;
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::{PAGE_RANGES_MAX, PAGES_BYTES_MAX};
use trestle_proto::blob::v1 as proto;

use super::{
    conditions::{conditions, sequence_conditions, source_conditions},
    header::{
        self as names, BLOB_CONTENT_LENGTH, BLOB_SEQUENCE_NUMBER, CONTENT_MD5,
        SEQUENCE_NUMBER_ACTION, SOURCE_RANGE, STRUCTURED_LENGTH,
    },
    list::page_size,
    operation::{BlobPath, DataFrom, OnBlob, PutKind},
    properties::{access_tier, of_upload, set_etag, tags},
    range,
    source::SourceUrl,
    structured_body,
    upload::{check_empty, upload, upload_from_source},
    write::{set_received, written},
};
use crate::{
    error::RestError, grpc_call::GrpcCall, head::RequestHead, metadata::read_metadata, reply,
    request_body::RequestBody, xml,
};

/// Put Blob of a page blob.
///
/// # Errors
/// Malformed headers, a body, or a failed call.
pub(super) async fn create(
    path: BlobPath,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    check_empty(body)?;
    let size = names::number(head, &BLOB_CONTENT_LENGTH)?;
    let request = proto::CreatePageBlobRequest {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        size: size.ok_or_else(|| names::required(&BLOB_CONTENT_LENGTH))?,
        sequence_number: names::number(head, &BLOB_SEQUENCE_NUMBER)?.unwrap_or_default(),
        properties: Some(of_upload(head)?),
        metadata: read_metadata(&head.headers, &call.extensions)?,
        access_tier: access_tier(head)?,
        tags: tags(head)?,
    };
    let method = OnBlob::Put(PutKind::Page).path();
    let response: proto::CreatePageBlobResponse = call.unary(method, &request).await?;
    Ok(written(StatusCode::CREATED, response.blob.as_ref()))
}

/// What a write of pages states, and how many bytes it has.
fn spec(path: BlobPath, head: &RequestHead) -> Result<(proto::WritePagesSpec, u64), RestError> {
    let range = range::of_write(head)?;
    let length = range.length.unwrap_or_default();
    let spec = proto::WritePagesSpec {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        offset: range.offset,
        sequence_conditions: sequence_conditions(head)?,
        ..proto::WritePagesSpec::default()
    };
    Ok((spec, length))
}

/// Put Page with data.
///
/// # Errors
/// Malformed headers, a body of another length than the range, or a failed call.
pub(super) async fn write(
    path: BlobPath,
    head: &RequestHead,
    body: RequestBody,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let (spec, length) = spec(path, head)?;
    if length > PAGES_BYTES_MAX {
        let rule = format!("must have at most {PAGES_BYTES_MAX} bytes: value=`{length}`");
        let fault = Fault::violation(Reason::RequestBodyTooLarge, "range", rule);
        return Err(RestError::from(fault).with("MaxLimit", PAGES_BYTES_MAX.to_string()));
    }
    let structured = structured_body::of_upload(head)?;
    if let Some(bytes) = structured.or(body.declared).filter(|bytes| *bytes != length) {
        let rule = format!("must be that of the range, {length}: value=`{bytes}`");
        let name = structured.map_or(CONTENT_LENGTH, |_| STRUCTURED_LENGTH);
        let fault = Fault::violation(Reason::InvalidHeaderValue, name.as_str(), rule);
        return Err(fault.into());
    }
    let declared = structured.map_or(Some(length), |_| body.declared);
    let body = RequestBody { declared, ..body };
    let method = OnBlob::WritePages(DataFrom::Body).path();
    let uploaded = upload::<proto::WritePagesRequest, proto::WritePagesResponse>;
    let response = uploaded(method, spec, head, body, call).await?;
    let md5 = names::text(head, &CONTENT_MD5);
    Ok(changed(response.blob.as_ref(), Some((md5, response.crc64))))
}

/// Put Page From URL.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn write_from_url(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let source = SourceUrl::of(head)?;
    let (spec, length) = spec(path, head)?;
    let source_range = range::of_header(head, &SOURCE_RANGE)?;
    let source_range = source_range.ok_or_else(|| names::required(&SOURCE_RANGE))?;
    if source_range.length != Some(length) {
        let text = names::text(head, &SOURCE_RANGE).unwrap_or_default();
        let rule = "must have as many bytes as the range";
        return Err(names::invalid(&SOURCE_RANGE, text, rule).into());
    }
    let spec = proto::WritePagesSpec {
        source: source.blob,
        source_url: source.url,
        source_range: Some(source_range),
        source_conditions: source_conditions(head)?,
        ..spec
    };
    let method = OnBlob::WritePages(DataFrom::Url).path();
    let uploaded = upload_from_source::<proto::WritePagesRequest, proto::WritePagesResponse>;
    let response = uploaded(method, spec, SourceUrl::checksums(head)?, call).await?;
    Ok(changed(response.blob.as_ref(), Some((None, response.crc64))))
}

/// Put Page that clears.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn clear(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let (spec, length) = spec(path, head)?;
    let request = proto::ClearPagesRequest {
        container: spec.container,
        blob: spec.blob,
        conditions: spec.conditions,
        offset: spec.offset,
        length,
        sequence_conditions: spec.sequence_conditions,
    };
    let method = OnBlob::ClearPages.path();
    let response: proto::ClearPagesResponse = call.unary(method, &request).await?;
    Ok(changed(response.blob.as_ref(), None))
}

/// The response to a write of pages, with the checksum of its data.
fn changed(blob: Option<&proto::Blob>, received: Option<(Option<&str>, u64)>) -> Response<Body> {
    let mut answer = written(StatusCode::CREATED, blob);
    let headers = answer.headers_mut();
    let sequence_number = blob.map_or(0, |blob| blob.sequence_number);
    headers.insert(BLOB_SEQUENCE_NUMBER, sequence_number.into());
    if let Some((md5, crc64)) = received {
        set_received(headers, md5, crc64);
    }
    answer
}

/// Set Blob Properties of a page blob: its size and its sequence number.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn resize(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::UpdatePageBlobRequest {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        size: names::number(head, &BLOB_CONTENT_LENGTH)?,
        sequence_number: sequence_number(head)?,
    };
    let method = OnBlob::ResizePages.path();
    let response: proto::UpdatePageBlobResponse = call.unary(method, &request).await?;
    let blob = response.blob.unwrap_or_default();
    let mut answer = written(StatusCode::OK, Some(&blob));
    answer.headers_mut().insert(BLOB_SEQUENCE_NUMBER, blob.sequence_number.into());
    Ok(answer)
}

/// How the sequence number changes.
fn sequence_number(
    head: &RequestHead,
) -> Result<Option<proto::update_page_blob_request::SequenceNumber>, Fault> {
    use proto::update_page_blob_request::SequenceNumber;

    let number = names::number(head, &BLOB_SEQUENCE_NUMBER)?;
    let required = || number.ok_or_else(|| names::required(&BLOB_SEQUENCE_NUMBER));
    let Some(action) = names::text(head, &SEQUENCE_NUMBER_ACTION) else {
        return match number {
            None => Ok(None),
            Some(_) => Err(names::required(&SEQUENCE_NUMBER_ACTION)),
        };
    };
    match action.to_ascii_lowercase().as_str() {
        "update" => Ok(Some(SequenceNumber::Set(required()?))),
        "max" => Ok(Some(SequenceNumber::Raise(required()?))),
        "increment" if number.is_none() => Ok(Some(SequenceNumber::Increment(true))),
        "increment" => {
            let text = names::text(head, &BLOB_SEQUENCE_NUMBER).unwrap_or_default();
            let rule = "must be absent with x-ms-sequence-number-action=increment";
            Err(names::invalid(&BLOB_SEQUENCE_NUMBER, text, rule))
        }
        _ => {
            let rule = "must be max, update or increment";
            Err(names::invalid(&SEQUENCE_NUMBER_ACTION, action, rule))
        }
    }
}

/// Get Page Ranges.
///
/// # Errors
/// Malformed headers or parameters, or a failed call.
pub(super) async fn list_ranges(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::ListPageRangesRequest {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        range: range::of_read(head),
        page_size: page_size(head, PAGE_RANGES_MAX)?.and_then(|max| max.try_into().ok()),
        page_token: head.param("marker"),
        previous_snapshot: head.param("prevsnapshot"),
        snapshot: head.param("snapshot"),
        version_id: head.param("versionid"),
    };
    let method = OnBlob::ListPageRanges.path();
    let response: proto::ListPageRangesResponse = call.unary(method, &request).await?;
    let blob = response.blob.unwrap_or_default();
    if response.not_modified {
        return Ok(super::read::not_modified(&blob));
    }
    let text = xml::write_page_ranges(&response.ranges, &response.next_page_token);
    let mut answer = reply::xml(text);
    let headers = answer.headers_mut();
    set_etag(headers, &blob);
    headers.insert(BLOB_CONTENT_LENGTH, blob.size.into());
    Ok(answer)
}
