use prost_types::Timestamp;

use super::*;
use crate::blob::fixture::head;

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().expect("text"))
}

#[test]
fn the_properties_of_a_blob_come_before_those_of_the_request() {
    let head = head(
        "/c/b",
        &[
            ("content-type", "application/octet-stream"),
            ("x-ms-blob-content-type", "text/plain"),
            ("content-encoding", "gzip"),
            ("cache-control", "no-store"),
            ("x-ms-blob-content-disposition", "inline"),
            ("x-ms-blob-content-md5", "XrY7u+Ae7tCTyyK7j1rNww=="),
        ],
    );

    let whole = of_upload(&head).expect("properties");

    assert_eq!(whole.content_type, "text/plain");
    assert_eq!(whole.content_encoding, "gzip");
    assert_eq!(whole.cache_control, "no-store");
    assert_eq!(whole.content_disposition, "inline");
    assert_eq!(whole.content_md5.len(), 16);
    let alone = of_blob(&head).expect("properties");
    assert_eq!((alone.content_encoding.as_str(), alone.content_type.as_str()), ("", "text/plain"));
}

#[test]
fn rejects_an_md5_of_another_length() {
    for value in ["AAAA", "not base64!", "XrY7u+Ae7tCTyyK7j1rNw"] {
        let fault = of_blob(&head("/c/b", &[("x-ms-blob-content-md5", value)])).expect_err(value);
        assert_eq!(fault.reason, Reason::InvalidMd5, "{value}");
    }
}

#[test]
fn tags_are_encoded_like_a_form() {
    let of = |value| tags(&head("/c/b", &[("x-ms-tags", value)]));
    let read = of("a=b&c%20d=e+f%3D").expect("tags");
    assert_eq!(read.len(), 2);
    assert_eq!(read.get("a").map(String::as_str), Some("b"));
    assert_eq!(read.get("c d").map(String::as_str), Some("e f="));
    assert_eq!(of("").expect("none").len(), 0);
    for value in ["a", "a=%FF", "a=1&a=2"] {
        assert_eq!(of(value).expect_err(value).reason, Reason::InvalidTags, "{value}");
    }
}

#[test]
fn a_tier_is_read_by_its_name_in_any_case() {
    let of = |value| access_tier(&head("/c/b", &[("x-ms-access-tier", value)]));
    assert_eq!(of("Cool"), Ok(proto::AccessTier::Cool.into()));
    assert_eq!(of("archive"), Ok(proto::AccessTier::Archive.into()));
    assert_eq!(of("P80"), Ok(proto::AccessTier::P80.into()));
    assert_eq!(access_tier(&head("/c/b", &[])), Ok(0));
    assert_eq!(of("Warm").expect_err("unknown").reason, Reason::InvalidHeaderValue);
}

fn blob() -> proto::Blob {
    let at = Some(Timestamp { seconds: 1_763_726_400, nanos: 0 });
    proto::Blob {
        size: 11,
        etag: "\"0x1\"".to_owned(),
        last_modified: at,
        create_time: at,
        r#type: proto::BlobType::Append.into(),
        committed_block_count: 3,
        is_sealed: true,
        access_tier: proto::AccessTier::Cool.into(),
        access_tier_change_time: at,
        version_id: "v".to_owned(),
        is_current_version: true,
        tag_count: 2,
        copy: Some(proto::BlobCopy {
            id: "i".to_owned(),
            source: "http://s".to_owned(),
            copied_bytes: 1,
            total_bytes: 2,
            completion_time: at,
            ..proto::BlobCopy::default()
        }),
        ..proto::Blob::default()
    }
}

#[test]
fn a_blob_is_described_by_headers() {
    let mut headers = HeaderMap::new();

    set_blob(&mut headers, &blob(), true);

    let date = "Fri, 21 Nov 2025 12:00:00 GMT";
    for (name, value) in [
        ("etag", "\"0x1\""),
        ("last-modified", date),
        ("x-ms-creation-time", date),
        ("content-type", "application/octet-stream"),
        ("accept-ranges", "bytes"),
        ("x-ms-blob-type", "AppendBlob"),
        ("x-ms-blob-committed-block-count", "3"),
        ("x-ms-blob-sealed", "true"),
        ("x-ms-lease-status", "unlocked"),
        ("x-ms-lease-state", "available"),
        ("x-ms-access-tier", "Cool"),
        ("x-ms-access-tier-change-time", date),
        ("x-ms-version-id", "v"),
        ("x-ms-is-current-version", "true"),
        ("x-ms-tag-count", "2"),
        ("x-ms-copy-id", "i"),
        ("x-ms-copy-progress", "1/2"),
        ("x-ms-copy-status", "success"),
    ] {
        assert_eq!(text(&headers, name), Some(value), "{name}");
    }
    for absent in ["x-ms-access-tier-inferred", "x-ms-blob-sequence-number", "cache-control"] {
        assert_eq!(text(&headers, absent), None, "{absent}");
    }
}

#[test]
fn a_snapshot_has_no_lease_and_a_read_of_content_no_tier() {
    let mut headers = HeaderMap::new();

    set_blob(&mut headers, &proto::Blob { snapshot: "s".to_owned(), ..blob() }, false);

    assert_eq!(text(&headers, "x-ms-lease-state"), None);
    assert_eq!(text(&headers, "x-ms-access-tier"), None);
}

#[test]
fn the_md5_of_the_whole_is_in_a_header_of_its_own_with_a_range() {
    let md5 = vec![0; 16].into();
    let properties = Some(proto::HttpProperties { content_md5: md5, ..Default::default() });
    let blob = proto::Blob { properties, ..blob() };
    let (mut whole, mut range) = (HeaderMap::new(), HeaderMap::new());

    set_md5(&mut whole, &blob, false);
    set_md5(&mut range, &blob, true);

    let value = "AAAAAAAAAAAAAAAAAAAAAA==";
    assert_eq!(text(&whole, "content-md5"), Some(value));
    assert_eq!(text(&range, "content-md5"), None);
    assert_eq!(text(&range, "x-ms-blob-content-md5"), Some(value));
}
