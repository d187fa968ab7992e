//! What describes a blob: HTTP properties, tags and the access tier of a request, and all of it in a response.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use percent_encoding::percent_decode;
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_proto::blob::v1 as proto;

use super::header::{
    self as names, ACCESS_TIER, BLOB_CACHE_CONTROL, BLOB_CONTENT_DISPOSITION,
    BLOB_CONTENT_ENCODING, BLOB_CONTENT_LANGUAGE, BLOB_CONTENT_MD5, BLOB_CONTENT_TYPE, BLOB_SEALED,
    BLOB_SEQUENCE_NUMBER, BLOB_TYPE, BLOCK_COUNT, CONTENT_MD5, COPY_ID, COPY_SOURCE, COPY_STATUS,
    CREATION_TIME, IS_CURRENT_VERSION, LEASE_DURATION, LEASE_STATE, LEASE_STATUS, SERVER_ENCRYPTED,
    TAG_COUNT, TAGS, VERSION_ID, md5_text, set, set_some,
};
use crate::{
    date::http_date,
    head::RequestHead,
    xml::{blob_type, content_type, lease_words, tier_name},
};

const COPY_COMPLETION_TIME: HeaderName = HeaderName::from_static("x-ms-copy-completion-time");
const COPY_PROGRESS: HeaderName = HeaderName::from_static("x-ms-copy-progress");
const TIER_CHANGE_TIME: HeaderName = HeaderName::from_static("x-ms-access-tier-change-time");
const TIER_INFERRED: HeaderName = HeaderName::from_static("x-ms-access-tier-inferred");
const TRUE: HeaderValue = HeaderValue::from_static("true");

/// The HTTP properties of a request that writes a blob: those of the blob, else those of the request itself.
///
/// # Errors
/// A malformed MD5.
pub(super) fn of_upload(head: &RequestHead) -> Result<proto::HttpProperties, Fault> {
    let or = |text: String, name: HeaderName| match text.is_empty() {
        true => names::text(head, &name).unwrap_or_default().to_owned(),
        false => text,
    };
    let of_blob = of_blob(head)?;
    Ok(proto::HttpProperties {
        content_type: or(of_blob.content_type, header::CONTENT_TYPE),
        content_encoding: or(of_blob.content_encoding, header::CONTENT_ENCODING),
        content_language: or(of_blob.content_language, header::CONTENT_LANGUAGE),
        cache_control: or(of_blob.cache_control, header::CACHE_CONTROL),
        ..of_blob
    })
}

/// The HTTP properties of the blob alone.
///
/// # Errors
/// A malformed MD5.
pub(super) fn of_blob(head: &RequestHead) -> Result<proto::HttpProperties, Fault> {
    let text = |name| names::text(head, &name).unwrap_or_default().to_owned();
    Ok(proto::HttpProperties {
        content_type: text(BLOB_CONTENT_TYPE),
        content_encoding: text(BLOB_CONTENT_ENCODING),
        content_language: text(BLOB_CONTENT_LANGUAGE),
        content_disposition: text(BLOB_CONTENT_DISPOSITION),
        cache_control: text(BLOB_CACHE_CONTROL),
        content_md5: names::md5(head, &BLOB_CONTENT_MD5)?.into(),
    })
}

/// The tags of a request, which are encoded like a form.
///
/// # Errors
/// A pair without `=`, bytes that are not UTF-8, or a name that is there twice.
pub(super) fn tags(head: &RequestHead) -> Result<HashMap<String, String>, Fault> {
    let text = names::text(head, &TAGS).unwrap_or_default();
    let invalid = |rule: &str| {
        let rule = format!("{rule}: value=`{}`", quoted(text));
        Fault::violation(Reason::InvalidTags, TAGS.as_str(), rule)
    };
    let mut tags = HashMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let rule = "must be pairs such as name=value, percent-encoded and joined by &";
        let (name, value) = pair.split_once('=').ok_or_else(|| invalid(rule))?;
        let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
            return Err(invalid(rule));
        };
        if tags.insert(name, value).is_some() {
            return Err(invalid("must have each name once"));
        }
    }
    Ok(tags)
}

fn decoded(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    String::from_utf8(percent_decode(spaced.as_bytes()).collect()).ok()
}

/// The access tier of a request, as the number of the contract; 0 for none.
///
/// # Errors
/// Another name than one of a tier.
pub(super) fn access_tier(head: &RequestHead) -> Result<i32, Fault> {
    let Some(text) = names::text(head, &ACCESS_TIER) else { return Ok(0) };
    let mut tiers = (1..).map_while(|number| proto::AccessTier::try_from(number).ok());
    let tier = tiers.find(|tier| tier_name(*tier).eq_ignore_ascii_case(text));
    let rule = "must be Hot, Cool, Cold or Archive, or P4 to P80 for a page blob";
    tier.map(i32::from).ok_or_else(|| names::invalid(&ACCESS_TIER, text, rule))
}

/// The version of a blob, in a response.
pub(super) fn set_etag(headers: &mut HeaderMap, blob: &proto::Blob) {
    if blob.etag.is_empty() {
        return;
    }
    set(headers, header::ETAG, &blob.etag);
    set(headers, header::LAST_MODIFIED, &http_date(blob.last_modified.as_ref()));
}

/// The id of the version that a write made, in a response.
pub(super) fn set_version(headers: &mut HeaderMap, blob: &proto::Blob) {
    set_some(headers, VERSION_ID, &blob.version_id);
}

/// What describes a blob, in the response to a read of it; without the MD5, which depends on the range. `is_whole`: all
/// of the properties, of which a read of the content has not all.
pub(super) fn set_blob(headers: &mut HeaderMap, blob: &proto::Blob, is_whole: bool) {
    set_etag(headers, blob);
    let empty = proto::HttpProperties::default();
    let properties = blob.properties.as_ref().unwrap_or(&empty);
    set(headers, header::CONTENT_TYPE, content_type(properties));
    set_some(headers, header::CONTENT_ENCODING, &properties.content_encoding);
    set_some(headers, header::CONTENT_LANGUAGE, &properties.content_language);
    set_some(headers, header::CONTENT_DISPOSITION, &properties.content_disposition);
    set_some(headers, header::CACHE_CONTROL, &properties.cache_control);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(BLOB_TYPE, HeaderValue::from_static(blob_type(blob.r#type())));
    set(headers, CREATION_TIME, &http_date(blob.create_time.as_ref()));
    headers.insert(SERVER_ENCRYPTED, TRUE);
    if blob.snapshot.is_empty() {
        set_lease(headers, blob.lease.as_ref());
    }
    match blob.r#type() {
        proto::BlobType::Append => {
            headers.insert(BLOCK_COUNT, blob.committed_block_count.into());
            if blob.is_sealed {
                headers.insert(BLOB_SEALED, TRUE);
            }
        }
        proto::BlobType::Page => {
            headers.insert(BLOB_SEQUENCE_NUMBER, blob.sequence_number.into());
        }
        proto::BlobType::Block | proto::BlobType::Unspecified => {}
    }
    set_version(headers, blob);
    if blob.is_current_version {
        headers.insert(IS_CURRENT_VERSION, TRUE);
    }
    if blob.tag_count > 0 {
        headers.insert(TAG_COUNT, blob.tag_count.into());
    }
    if let Some(copy) = &blob.copy {
        set_copy(headers, copy);
    }
    if is_whole {
        set_tier(headers, blob);
    }
}

/// The lease of a container or a blob, in a response.
pub(super) fn set_lease(headers: &mut HeaderMap, lease: Option<&proto::Lease>) {
    let words = lease_words(lease);
    headers.insert(LEASE_STATUS, HeaderValue::from_static(words.status));
    headers.insert(LEASE_STATE, HeaderValue::from_static(words.state));
    if let Some(duration) = words.duration {
        headers.insert(LEASE_DURATION, HeaderValue::from_static(duration));
    }
}

fn set_copy(headers: &mut HeaderMap, copy: &proto::BlobCopy) {
    set(headers, COPY_ID, &copy.id);
    headers.insert(COPY_STATUS, HeaderValue::from_static("success"));
    set(headers, COPY_SOURCE, &copy.source);
    set(headers, COPY_PROGRESS, &format!("{}/{}", copy.copied_bytes, copy.total_bytes));
    set(headers, COPY_COMPLETION_TIME, &http_date(copy.completion_time.as_ref()));
}

fn set_tier(headers: &mut HeaderMap, blob: &proto::Blob) {
    let tier = blob.access_tier();
    if tier == proto::AccessTier::Unspecified {
        return;
    }
    headers.insert(ACCESS_TIER, HeaderValue::from_static(tier_name(tier)));
    if blob.is_access_tier_inferred {
        headers.insert(TIER_INFERRED, TRUE);
    }
    if let Some(time) = &blob.access_tier_change_time {
        set(headers, TIER_CHANGE_TIME, &http_date(Some(time)));
    }
}

/// The MD5 of a blob that is read as a whole, or `x-ms-blob-content-md5` of one of which a range is read.
pub(super) fn set_md5(headers: &mut HeaderMap, blob: &proto::Blob, is_range: bool) {
    let md5 = blob.properties.as_ref().map_or(&[][..], |properties| &properties.content_md5);
    set_some(headers, if is_range { BLOB_CONTENT_MD5 } else { CONTENT_MD5 }, &md5_text(md5));
}

#[cfg(test)]
mod tests;
