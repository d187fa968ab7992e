//! Reads of a blob: its content, its properties, its metadata.

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use md5::{Digest as _, Md5};
use tonic::{Status, body::Body};
use trestle_identity::caller::{Authority, Caller};
use trestle_model::fault::{Fault, Reason};
use trestle_proto::blob::v1 as proto;
use trestle_rpc::{status::meaning, upstream::in_process::ResponseMessages};

use super::{
    conditions::conditions,
    header::{self as names, CONTENT_CRC64, CONTENT_MD5, RANGE_GET_CRC64, RANGE_GET_MD5},
    operation::{BlobPath, OnBlob},
    properties, range, structured_body,
};
use crate::{
    error::RestError,
    grpc_call::GrpcCall,
    head::RequestHead,
    metadata::write_metadata,
    params::Params,
    reply::{self, ERROR_CODE},
    streaming::streamed,
};

/// Longest range of which a checksum is computed, in bytes.
const CHECKED_RANGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The parameters of a signature that replace headers of a response.
const OVERRIDES: [(&str, HeaderName); 5] = [
    ("rscc", header::CACHE_CONTROL),
    ("rscd", header::CONTENT_DISPOSITION),
    ("rsce", header::CONTENT_ENCODING),
    ("rscl", header::CONTENT_LANGUAGE),
    ("rsct", header::CONTENT_TYPE),
];

/// A checksum of a range that a request requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeChecksum {
    Md5,
    Crc64,
}

/// Get Blob.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn get(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let stated = range::of_read(head);
    let checksum = range_checksum(head, stated.as_ref())?;
    let is_structured = structured_body::is_required(head, checksum.is_some())?;
    let whole = proto::ReadBlobRequest {
        container: path.container.clone(),
        blob: path.blob.clone(),
        range: None,
        conditions: conditions(head)?,
        snapshot: head.param("snapshot"),
        version_id: head.param("versionid"),
    };
    let (again, signed) = (call.again(), signed_headers(&call, head));
    let opened = match stated.zip(head.headers.get(header::IF_RANGE)) {
        None => open(call, proto::ReadBlobRequest { range: stated, ..whole }).await,
        Some((range, etag)) => open_if(call, whole, range, etag).await,
    };
    let (first, messages) = match opened {
        Ok(opened) => opened,
        Err(error) => return Err(with_size(error, path, head, again).await),
    };
    let blob = first.blob.unwrap_or_default();
    if first.not_modified {
        return Ok(not_modified(&blob));
    }
    let rest = messages.map_ok(|message| message.data);
    let length = first.range.as_ref().and_then(|range| range.length).unwrap_or(blob.size);
    let pieces = stream::iter([Ok(first.data)]).chain(rest);
    let status = if first.range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut checked = HeaderMap::new();
    let mut answer = match checksum.filter(|_| first.range.is_some()) {
        None if is_structured => structured_body::streamed(status, length, pieces),
        None => streamed(status, Some(length), pieces),
        Some(checksum) => {
            let data = collected(pieces).await?;
            set_checksum(&mut checked, checksum, &data);
            let mut answer = reply::whole(status, "application/octet-stream", data);
            answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
            answer
        }
    };
    set_headers(&mut answer, &blob, signed, false);
    let headers = answer.headers_mut();
    if let Some(range) = &first.range {
        let end = range.offset.saturating_add(length).saturating_sub(1);
        let text = format!("bytes {}-{end}/{}", range.offset, blob.size);
        names::set(headers, header::CONTENT_RANGE, &text);
    }
    properties::set_md5(headers, &blob, first.range.is_some());
    headers.extend(checked);
    Ok(answer)
}

/// The first message of a read, and those that follow.
type OpenedRead = (proto::ReadBlobResponse, ResponseMessages<proto::ReadBlobResponse>);

/// Makes the call of a read, and waits for its first message.
async fn open(call: GrpcCall, request: proto::ReadBlobRequest) -> Result<OpenedRead, RestError> {
    let mut messages = call.server_streaming(OnBlob::Get.path(), request).await?;
    let first: Option<proto::ReadBlobResponse> = messages.try_next().await?;
    let first = first.ok_or_else(|| Status::internal("a read without a response"))?;
    Ok((first, messages))
}

/// Reads the range where the blob has the version of an `If-Range`, else the whole.
async fn open_if(
    call: GrpcCall,
    whole: proto::ReadBlobRequest,
    range: proto::ByteRange,
    etag: &HeaderValue,
) -> Result<OpenedRead, RestError> {
    let Some(of_version) = of_version(&whole, range, etag) else { return open(call, whole).await };
    match open(call.again(), of_version).await {
        Err(error) if error.is(Reason::ConditionNotMet) => open(call, whole).await,
        opened => opened,
    }
}

/// The read of a range on the condition that the blob has the version of an `If-Range`. None where the value is not a
/// strong etag, or `If-Match` states others: a server may always send the whole. A time is not precise enough.
fn of_version(
    whole: &proto::ReadBlobRequest,
    range: proto::ByteRange,
    etag: &HeaderValue,
) -> Option<proto::ReadBlobRequest> {
    let etag = etag.to_str().ok().map(str::trim_ascii).filter(|etag| etag.starts_with('"'))?;
    let conditions = whole.conditions.clone().unwrap_or_default();
    let if_match = vec![etag.to_owned()];
    conditions.if_match.is_empty().then(|| proto::ReadBlobRequest {
        range: Some(range),
        conditions: Some(proto::BlobConditions { if_match, ..conditions }),
        ..whole.clone()
    })
}

/// Get Blob Properties.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn properties(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let signed = signed_headers(&call, head);
    let found = get_blob(path, head, call).await?;
    let blob = found.blob.unwrap_or_default();
    if found.not_modified {
        return Ok(not_modified(&blob));
    }
    let mut answer = reply::empty(StatusCode::OK);
    set_headers(&mut answer, &blob, signed, true);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_LENGTH, blob.size.into());
    properties::set_md5(headers, &blob, false);
    Ok(answer)
}

/// Get Blob Metadata.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn metadata(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let found = get_blob(path, head, call).await?;
    let blob = found.blob.unwrap_or_default();
    if found.not_modified {
        return Ok(not_modified(&blob));
    }
    let mut answer = reply::empty(StatusCode::OK);
    write_metadata(&blob.metadata, &mut answer);
    properties::set_etag(answer.headers_mut(), &blob);
    properties::set_version(answer.headers_mut(), &blob);
    Ok(answer)
}

async fn get_blob(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<proto::GetBlobResponse, RestError> {
    let request = proto::GetBlobRequest {
        container: path.container,
        blob: path.blob,
        conditions: conditions(head)?,
        snapshot: head.param("snapshot"),
        version_id: head.param("versionid"),
    };
    Ok(call.unary(OnBlob::GetProperties.path(), &request).await?)
}

/// The response to a read of what its client has.
pub(super) fn not_modified(blob: &proto::Blob) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NOT_MODIFIED;
    let headers = answer.headers_mut();
    properties::set_etag(headers, blob);
    let code = meaning(Reason::ConditionNotMet).azure_code;
    headers.insert(ERROR_CODE, HeaderValue::from_static(code));
    answer
}

/// The headers of a response that the credentials of its call state. Only the signature for a resource covers them: to
/// a link with any other one a third party could add them.
fn signed_headers(call: &GrpcCall, head: &RequestHead) -> HeaderMap {
    let mut signed = HeaderMap::new();
    let caller = Caller::in_process(&call.extensions);
    if caller.is_some_and(|caller| matches!(caller.authority, Authority::Resource(_))) {
        // As they were signed: a parameter of a similar name is no part of the signature.
        let query = head.uri.query().unwrap_or_default();
        for (name, header) in OVERRIDES {
            let value = Params::signed(query, name);
            names::set_some(&mut signed, header, &value.unwrap_or_default());
        }
    }
    signed
}

/// The headers of a read, some of them those that its credentials state.
fn set_headers(answer: &mut Response<Body>, blob: &proto::Blob, signed: HeaderMap, is_whole: bool) {
    write_metadata(&blob.metadata, answer);
    properties::set_blob(answer.headers_mut(), blob, is_whole);
    answer.headers_mut().extend(signed);
}

/// The error of a read, with the size of the blob where the range is beyond it.
async fn with_size(
    error: RestError,
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> RestError {
    if !error.is(Reason::InvalidRange) {
        return error;
    }
    let Ok(found) = get_blob(path, head, call).await else { return error };
    let text = format!("bytes */{}", found.blob.unwrap_or_default().size);
    match HeaderValue::from_str(&text) {
        Ok(value) => error.with_header(header::CONTENT_RANGE, value),
        Err(_) => error,
    }
}

/// The checksum that a request requires of its range.
///
/// # Errors
/// Both checksums, no range, or one that is too long.
fn range_checksum(
    head: &RequestHead,
    range: Option<&proto::ByteRange>,
) -> Result<Option<RangeChecksum>, Fault> {
    let is_md5 = names::boolean(head, &RANGE_GET_MD5)?.unwrap_or_default();
    let is_crc64 = names::boolean(head, &RANGE_GET_CRC64)?.unwrap_or_default();
    let (name, checksum) = match (is_md5, is_crc64) {
        (false, false) => return Ok(None),
        (true, true) => {
            let rule = "must not be combined with x-ms-range-get-content-md5";
            return Err(names::invalid(&RANGE_GET_CRC64, "true", rule));
        }
        (true, false) => (RANGE_GET_MD5, RangeChecksum::Md5),
        (false, true) => (RANGE_GET_CRC64, RangeChecksum::Crc64),
    };
    let length = range.and_then(|range| range.length);
    if length.is_some_and(|length| length <= CHECKED_RANGE_BYTES_MAX) {
        return Ok(Some(checksum));
    }
    let rule = format!("needs a range of at most {CHECKED_RANGE_BYTES_MAX} bytes");
    Err(names::invalid(&name, "true", &rule))
}

async fn collected(
    pieces: impl futures::Stream<Item = Result<Bytes, Status>>,
) -> Result<Bytes, Status> {
    let data = pieces.try_fold(BytesMut::new(), |mut data, piece| async move {
        data.extend_from_slice(&piece);
        Ok(data)
    });
    Ok(data.await?.freeze())
}

fn set_checksum(headers: &mut HeaderMap, checksum: RangeChecksum, data: &[u8]) {
    match checksum {
        RangeChecksum::Md5 => {
            names::set(headers, CONTENT_MD5, &names::md5_text(&Md5::digest(data)));
        }
        RangeChecksum::Crc64 => {
            names::set(headers, CONTENT_CRC64, &names::crc64_text(names::crc64_of(data)));
        }
    }
}
