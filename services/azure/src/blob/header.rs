//! The names of headers of blobs, and values of headers of requests.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use prost_types::Timestamp;
use trestle_model::fault::{Fault, Reason, quoted};

use crate::{date::read_http_date, head::RequestHead};

/// Declares names of headers.
macro_rules! headers {
    ($($name:ident = $text:literal;)*) => {
        $(pub(crate) const $name: HeaderName = HeaderName::from_static($text);)*
    };
}

headers! {
    ACCESS_TIER = "x-ms-access-tier";
    APPEND_OFFSET = "x-ms-blob-append-offset";
    APPEND_POSITION = "x-ms-blob-condition-appendpos";
    BLOB_CACHE_CONTROL = "x-ms-blob-cache-control";
    BLOB_CONTENT_DISPOSITION = "x-ms-blob-content-disposition";
    BLOB_CONTENT_ENCODING = "x-ms-blob-content-encoding";
    BLOB_CONTENT_LANGUAGE = "x-ms-blob-content-language";
    BLOB_CONTENT_LENGTH = "x-ms-blob-content-length";
    BLOB_CONTENT_MD5 = "x-ms-blob-content-md5";
    BLOB_CONTENT_TYPE = "x-ms-blob-content-type";
    BLOB_IF_MATCH = "x-ms-blob-if-match";
    BLOB_IF_MODIFIED_SINCE = "x-ms-blob-if-modified-since";
    BLOB_IF_NONE_MATCH = "x-ms-blob-if-none-match";
    BLOB_IF_UNMODIFIED_SINCE = "x-ms-blob-if-unmodified-since";
    BLOB_SEALED = "x-ms-blob-sealed";
    BLOB_SEQUENCE_NUMBER = "x-ms-blob-sequence-number";
    BLOB_TYPE = "x-ms-blob-type";
    BLOCK_COUNT = "x-ms-blob-committed-block-count";
    CONTENT_CRC64 = "x-ms-content-crc64";
    CONTENT_MD5 = "content-md5";
    COPY_ACTION = "x-ms-copy-action";
    COPY_ID = "x-ms-copy-id";
    COPY_SOURCE = "x-ms-copy-source";
    COPY_SOURCE_PROPERTIES = "x-ms-copy-source-blob-properties";
    COPY_SOURCE_TAGS = "x-ms-copy-source-tag-option";
    COPY_STATUS = "x-ms-copy-status";
    CREATION_TIME = "x-ms-creation-time";
    DELETE_SNAPSHOTS = "x-ms-delete-snapshots";
    DELETED_CONTAINER_NAME = "x-ms-deleted-container-name";
    DELETED_CONTAINER_VERSION = "x-ms-deleted-container-version";
    IF_SEQUENCE_EQUAL = "x-ms-if-sequence-number-eq";
    IF_SEQUENCE_LESS = "x-ms-if-sequence-number-lt";
    IF_SEQUENCE_AT_MOST = "x-ms-if-sequence-number-le";
    IF_TAGS = "x-ms-if-tags";
    IS_CURRENT_VERSION = "x-ms-is-current-version";
    LEASE_ACTION = "x-ms-lease-action";
    LEASE_BREAK_PERIOD = "x-ms-lease-break-period";
    LEASE_DURATION = "x-ms-lease-duration";
    LEASE_ID = "x-ms-lease-id";
    LEASE_STATE = "x-ms-lease-state";
    LEASE_STATUS = "x-ms-lease-status";
    LEASE_TIME = "x-ms-lease-time";
    MAX_SIZE = "x-ms-blob-condition-maxsize";
    PAGE_WRITE = "x-ms-page-write";
    PROPOSED_LEASE_ID = "x-ms-proposed-lease-id";
    PUBLIC_ACCESS = "x-ms-blob-public-access";
    RANGE_GET_CRC64 = "x-ms-range-get-content-crc64";
    RANGE_GET_MD5 = "x-ms-range-get-content-md5";
    REQUEST_ENCRYPTED = "x-ms-request-server-encrypted";
    REQUIRES_SYNC = "x-ms-requires-sync";
    SEAL_BLOB = "x-ms-seal-blob";
    SEQUENCE_NUMBER_ACTION = "x-ms-sequence-number-action";
    SERVER_ENCRYPTED = "x-ms-server-encrypted";
    SNAPSHOT = "x-ms-snapshot";
    SOURCE_CRC64 = "x-ms-source-content-crc64";
    SOURCE_IF_MATCH = "x-ms-source-if-match";
    SOURCE_IF_MODIFIED_SINCE = "x-ms-source-if-modified-since";
    SOURCE_IF_NONE_MATCH = "x-ms-source-if-none-match";
    SOURCE_IF_TAGS = "x-ms-source-if-tags";
    SOURCE_IF_UNMODIFIED_SINCE = "x-ms-source-if-unmodified-since";
    SOURCE_LEASE_ID = "x-ms-source-lease-id";
    SOURCE_MD5 = "x-ms-source-content-md5";
    SOURCE_RANGE = "x-ms-source-range";
    STRUCTURED_BODY = "x-ms-structured-body";
    STRUCTURED_LENGTH = "x-ms-structured-content-length";
    TAG_COUNT = "x-ms-tag-count";
    TAGS = "x-ms-tags";
    VERSION_ID = "x-ms-version-id";
    X_MS_RANGE = "x-ms-range";
}

/// The HTTP properties of a blob: a request with one of them replaces all.
pub(crate) const CONTENT_PROPERTIES: [HeaderName; 6] = [
    BLOB_CACHE_CONTROL,
    BLOB_CONTENT_DISPOSITION,
    BLOB_CONTENT_ENCODING,
    BLOB_CONTENT_LANGUAGE,
    BLOB_CONTENT_MD5,
    BLOB_CONTENT_TYPE,
];

/// Headers of features that this server does not have: without an error the data would be stored in another form, or
/// without a protection that its client relies on.
pub(crate) const REFUSED: [HeaderName; 14] = [
    HeaderName::from_static("x-ms-encryption-key"),
    HeaderName::from_static("x-ms-encryption-key-sha256"),
    HeaderName::from_static("x-ms-encryption-algorithm"),
    HeaderName::from_static("x-ms-encryption-scope"),
    HeaderName::from_static("x-ms-source-encryption-key"),
    HeaderName::from_static("x-ms-immutability-policy-until-date"),
    HeaderName::from_static("x-ms-immutability-policy-mode"),
    HeaderName::from_static("x-ms-legal-hold"),
    HeaderName::from_static("x-ms-expiry-option"),
    HeaderName::from_static("x-ms-expiry-time"),
    HeaderName::from_static("x-ms-previous-snapshot-url"),
    HeaderName::from_static("x-ms-access-tier-if-modified-since"),
    HeaderName::from_static("x-ms-access-tier-if-unmodified-since"),
    HeaderName::from_static("x-ms-copy-source-authorization"),
];

/// Conditions that the operations on tags have, beside those of HTTP.
pub(crate) const TAG_CONDITIONS: [HeaderName; 4] =
    [BLOB_IF_MATCH, BLOB_IF_NONE_MATCH, BLOB_IF_MODIFIED_SINCE, BLOB_IF_UNMODIFIED_SINCE];

/// Bytes of a CRC-64.
const CRC64_BYTES: usize = 8;
/// Bytes of an MD5.
const MD5_BYTES: usize = 16;

/// The error of the value of a header.
pub(super) fn invalid(name: &HeaderName, value: &str, rule: &str) -> Fault {
    let rule = format!("{rule}: value=`{}`", quoted(value));
    Fault::violation(Reason::InvalidHeaderValue, name.as_str(), rule)
}

/// The error of a header that a request lacks.
pub(super) fn required(name: &HeaderName) -> Fault {
    Fault::violation(Reason::MissingRequiredHeader, name.as_str(), "required")
}

/// A header as text; empty is absent.
pub(super) fn text<'a>(head: &'a RequestHead, name: &HeaderName) -> Option<&'a str> {
    head.header(name).map(str::trim_ascii).filter(|text| !text.is_empty())
}

/// A number that is never negative.
///
/// # Errors
/// Another text than digits, or a number beyond 64 bits.
pub(super) fn number(head: &RequestHead, name: &HeaderName) -> Result<Option<u64>, Fault> {
    let Some(text) = text(head, name) else { return Ok(None) };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    number.map(Some).ok_or_else(|| invalid(name, text, "must be a whole number, 0 or more"))
}

/// Whether a header is `true`, in any case.
///
/// # Errors
/// Neither `true` nor `false`.
pub(super) fn boolean(head: &RequestHead, name: &HeaderName) -> Result<Option<bool>, Fault> {
    match text(head, name) {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(invalid(name, text, "must be true or false")),
    }
}

/// A time.
///
/// # Errors
/// Another form than that of HTTP.
pub(super) fn time(head: &RequestHead, name: &HeaderName) -> Result<Option<Timestamp>, Fault> {
    let Some(text) = text(head, name) else { return Ok(None) };
    let rule = "must be a time such as Fri, 21 Nov 2025 12:00:00 GMT";
    read_http_date(text).map(Some).ok_or_else(|| invalid(name, text, rule))
}

/// An MD5, in base64.
///
/// # Errors
/// Another number of bytes than 16, or no base64.
pub(super) fn md5(head: &RequestHead, name: &HeaderName) -> Result<Vec<u8>, Fault> {
    let Some(text) = text(head, name) else { return Ok(Vec::new()) };
    let decoded = STANDARD.decode(text).ok().filter(|bytes| bytes.len() == MD5_BYTES);
    decoded.ok_or_else(|| {
        let rule = format!("must be 16 bytes in base64: value=`{}`", quoted(text));
        Fault::violation(Reason::InvalidMd5, name.as_str(), rule)
    })
}

/// A CRC-64, in base64 of its bytes, the lowest first.
///
/// # Errors
/// Another number of bytes than 8, or no base64.
pub(super) fn crc64(head: &RequestHead, name: &HeaderName) -> Result<Option<u64>, Fault> {
    let Some(text) = text(head, name) else { return Ok(None) };
    let decoded = STANDARD.decode(text).ok();
    let bytes = decoded.and_then(|bytes| <[u8; CRC64_BYTES]>::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| invalid(name, text, "must be 8 bytes in base64"))?;
    Ok(Some(u64::from_le_bytes(bytes)))
}

/// Sets a header of a response, unless the value has no place in one.
pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The same, unless the value is empty.
pub(super) fn set_some(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if !value.is_empty() {
        set(headers, name, value);
    }
}

/// The CRC-64/NVME of bytes.
pub(super) fn crc64_of(bytes: &[u8]) -> u64 {
    let mut digest = crc64fast_nvme::Digest::new();
    digest.write(bytes);
    digest.sum64()
}

/// A CRC-64 as headers have it.
pub(super) fn crc64_text(crc64: u64) -> String {
    STANDARD.encode(crc64.to_le_bytes())
}

/// An MD5 as headers and documents have it; empty for none.
pub(crate) fn md5_text(md5: &[u8]) -> String {
    STANDARD.encode(md5)
}
