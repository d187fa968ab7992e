//! Pages of blobs: of a container, and by their tags.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use trestle_model::xml::is_allowed;
use trestle_proto::blob::v1::{
    AccessTier, Blob, BlobCopy, BlobType, FoundBlob, HttpProperties, ListedBlob, listed_blob::Item,
};

use super::{
    listing::{Echo, write_metadata, write_page},
    tags::write_tag_set,
    words::{blob_type, content_type, lease_words, tier_name},
    write::XmlWriter,
};
use crate::date::http_date;

/// What a name that XML cannot represent has percent-encoded, so that decoding gives the name.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%').add(b' ').add(b'"').add(b'<').add(b'>').add(b'&');

/// The content of a listing of blobs.
#[derive(Debug, Clone, Copy)]
pub struct BlobsDocument<'a> {
    /// What it repeats of the request.
    pub echo: Echo<'a>,
    /// Whether metadata was requested.
    pub has_metadata: bool,
    /// Whether the copies that wrote blobs were requested.
    pub has_copies: bool,
    /// Whether tags were requested.
    pub has_tags: bool,
    /// The blobs and prefixes, ordered by name.
    pub items: &'a [ListedBlob],
    /// The continuation token; empty at the end.
    pub next_marker: &'a str,
}

/// The response to a listing of blobs.
#[must_use]
pub fn write_blobs(listing: &BlobsDocument<'_>) -> String {
    write_page(&listing.echo, listing.next_marker, |writer| {
        writer.element("Blobs", |writer| {
            for item in listing.items {
                match &item.item {
                    Some(Item::Blob(blob)) => {
                        writer.element("Blob", |writer| write_blob(writer, blob, listing));
                    }
                    Some(Item::Prefix(prefix)) => {
                        writer.element("BlobPrefix", |writer| write_name(writer, prefix));
                    }
                    None => {}
                }
            }
        });
    })
}

fn write_name(writer: &mut XmlWriter, name: &str) {
    if name.chars().all(is_allowed) {
        writer.text("Name", name);
    } else {
        let encoded = utf8_percent_encode(name, ENCODED).to_string();
        writer.text_with("Name", ("Encoded", "true"), &encoded);
    }
}

fn write_blob(writer: &mut XmlWriter, blob: &Blob, listing: &BlobsDocument<'_>) {
    write_name(writer, &blob.name);
    if blob.delete_time.is_some() {
        writer.value("Deleted", &true);
    }
    if !blob.snapshot.is_empty() {
        writer.text("Snapshot", &blob.snapshot);
    }
    if !blob.version_id.is_empty() {
        writer.text("VersionId", &blob.version_id);
        if blob.is_current_version {
            writer.value("IsCurrentVersion", &true);
        }
    }
    writer.element("Properties", |writer| write_properties(writer, blob, listing.has_copies));
    if listing.has_metadata {
        write_metadata(writer, &blob.metadata);
    }
    if listing.has_tags && !blob.tags.is_empty() {
        write_tags(writer, &blob.tags);
    }
    writer.text("OrMetadata", "");
}

fn write_properties(writer: &mut XmlWriter, blob: &Blob, has_copies: bool) {
    if !blob.is_uncommitted {
        writer.text("Creation-Time", &http_date(blob.create_time.as_ref()));
        writer.text("Last-Modified", &http_date(blob.last_modified.as_ref()));
        writer.text("Etag", blob.etag.trim_matches('"'));
    }
    writer.value("Content-Length", &blob.size);
    let empty = HttpProperties::default();
    write_content(writer, blob.properties.as_ref().unwrap_or(&empty));
    if blob.r#type() == BlobType::Page {
        writer.value("x-ms-blob-sequence-number", &blob.sequence_number);
    }
    writer.text("BlobType", blob_type(blob.r#type()));
    let tier = blob.access_tier();
    if tier != AccessTier::Unspecified {
        writer.text("AccessTier", tier_name(tier));
        if blob.is_access_tier_inferred {
            writer.value("AccessTierInferred", &true);
        }
        if let Some(time) = &blob.access_tier_change_time {
            writer.text("AccessTierChangeTime", &http_date(Some(time)));
        }
    }
    if blob.snapshot.is_empty() && blob.delete_time.is_none() {
        let lease = lease_words(blob.lease.as_ref());
        writer.text("LeaseStatus", lease.status);
        writer.text("LeaseState", lease.state);
        if let Some(duration) = lease.duration {
            writer.text("LeaseDuration", duration);
        }
    }
    if let Some(copy) = blob.copy.as_ref().filter(|_| has_copies) {
        write_copy(writer, copy);
    }
    writer.value("ServerEncrypted", &true);
    if let Some(time) = &blob.delete_time {
        writer.text("DeletedTime", &http_date(Some(time)));
        writer.value("RemainingRetentionDays", &blob.remaining_retention_days);
    }
    if blob.tag_count > 0 {
        writer.value("TagCount", &blob.tag_count);
    }
    if blob.is_sealed {
        writer.value("Sealed", &true);
    }
}

fn write_content(writer: &mut XmlWriter, properties: &HttpProperties) {
    for (name, value) in [
        ("Content-Type", content_type(properties)),
        ("Content-Encoding", &properties.content_encoding),
        ("Content-Language", &properties.content_language),
        ("Content-CRC64", ""),
        ("Content-MD5", &STANDARD.encode(&properties.content_md5)),
        ("Cache-Control", &properties.cache_control),
        ("Content-Disposition", &properties.content_disposition),
    ] {
        writer.text(name, value);
    }
}

fn write_copy(writer: &mut XmlWriter, copy: &BlobCopy) {
    writer.text("CopyId", &copy.id);
    writer.text("CopyStatus", "success");
    writer.text("CopySource", &copy.source);
    writer.text("CopyProgress", &format!("{}/{}", copy.copied_bytes, copy.total_bytes));
    let time = copy.completion_time.as_ref();
    writer.text("CopyCompletionTime", &http_date(time));
}

fn write_tags(writer: &mut XmlWriter, tags: &HashMap<String, String>) {
    writer.element("Tags", |writer| write_tag_set(writer, tags));
}

/// The blobs that a search found.
#[derive(Debug, Clone, Copy)]
pub struct FoundDocument<'a> {
    /// What it repeats of the request.
    pub echo: Echo<'a>,
    /// The expression.
    pub filter: &'a str,
    /// The blobs, ordered by container and name.
    pub blobs: &'a [FoundBlob],
    /// The continuation token; empty at the end.
    pub next_marker: &'a str,
}

/// The response to a search by tags.
#[must_use]
pub fn write_found(listing: &FoundDocument<'_>) -> String {
    write_page(&listing.echo, listing.next_marker, |writer| {
        writer.text("Where", listing.filter);
        writer.element("Blobs", |writer| {
            for blob in listing.blobs {
                writer.element("Blob", |writer| {
                    write_name(writer, &blob.blob);
                    writer.text("ContainerName", &blob.container);
                    write_tags(writer, &blob.tags);
                });
            }
        });
    })
}
