//! Tests of HTTP properties, and of what an upload states of its data.

use super::*;
use crate::api::parse::tests::{assert_rejected, parsed};

const MD5: [u8; 16] = [0xAB; 16];
const OTHER: [u8; 16] = [0xCD; 16];

fn with_texts(text: &str) -> proto::HttpProperties {
    let text = || text.to_owned();
    proto::HttpProperties {
        content_type: text(),
        content_encoding: text(),
        content_language: text(),
        content_disposition: text(),
        cache_control: text(),
        content_md5: Bytes::new(),
    }
}

#[test]
fn a_blob_without_a_media_type_is_of_bytes() {
    for properties in [None, Some(proto::HttpProperties::default())] {
        let found = parsed(|parser| parser.properties(properties)).expect("valid");
        let expected = ContentProperties {
            content_type: "application/octet-stream".to_owned(),
            encoding: String::new(),
            language: String::new(),
            disposition: String::new(),
            cache_control: String::new(),
            md5: None,
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn every_property_comes_from_its_own_field() {
    let properties = proto::HttpProperties {
        content_type: "t".to_owned(),
        content_encoding: "e".to_owned(),
        content_language: "l".to_owned(),
        content_disposition: "d".to_owned(),
        cache_control: "c".to_owned(),
        content_md5: Bytes::copy_from_slice(&MD5),
    };
    let found = parsed(|parser| parser.properties(Some(properties))).expect("valid");
    let texts = [found.content_type, found.encoding, found.language, found.disposition];
    assert_eq!(texts, ["t", "e", "l", "d"]);
    assert_eq!((found.cache_control.as_str(), found.md5), ("c", Some(MD5)));
}

#[test]
fn a_property_is_at_most_1024_bytes_of_printable_ascii() {
    let fields =
        ["content_type", "content_encoding", "content_language", "content_disposition"].into_iter();
    let fields: Vec<_> =
        fields.chain(["cache_control"]).map(|field| format!("properties.{field}")).collect();
    let expected: Vec<_> =
        fields.iter().map(|field| (Reason::InvalidHeaderValue, field.as_str())).collect();
    let properties = |text: &str| parsed(|parser| parser.properties(Some(with_texts(text))));
    for text in ["a", " ", "~", &"a".repeat(1024)] {
        assert!(properties(text).is_ok(), "{text}");
    }
    // A line break would begin another header.
    for text in ["a\r\nb: c", "\u{0}", "\t", "\u{7f}", "é", &"a".repeat(1025)] {
        assert_rejected(properties(text), &expected);
    }
}

#[test]
fn an_md5_has_16_bytes_or_is_absent() {
    let md5 = |length: usize| parsed(|parser| parser.md5(&vec![7; length].into(), "md5"));
    assert_eq!(md5(0).ok(), Some(None));
    assert_eq!(md5(16).ok(), Some(Some([7; 16])));
    for length in [1, 15, 17, 32] {
        assert_rejected(md5(length), &[(Reason::InvalidMd5, "md5")]);
    }
}

#[test]
fn the_data_of_an_upload_is_compared_with_everything_that_is_stated() {
    let digests = Digests { crc64: 5, md5: Some(MD5), size: 3 };
    let finish = |size, crc64| proto::UploadFinish { size, crc64, ..Default::default() };
    let check = |finish: &proto::UploadFinish, md5s| check_digests(&digests, finish, md5s);

    for (size, crc64) in [(None, None), (Some(3), None), (None, Some(5)), (Some(3), Some(5))] {
        for md5s in [(None, None), (Some(MD5), None), (None, Some(MD5)), (Some(MD5), Some(MD5))] {
            assert!(check(&finish(size, crc64), md5s).is_ok(), "{size:?} {crc64:?} {md5s:?}");
        }
    }
    let same = finish(Some(3), Some(5));
    for (stated, md5s, expected) in [
        (finish(Some(0), None), (None, None), (Reason::InvalidInput, "finish.size")),
        (finish(None, Some(0)), (None, None), (Reason::Crc64Mismatch, "finish.crc64")),
        (finish(Some(4), Some(4)), (Some(OTHER), None), (Reason::InvalidInput, "finish.size")),
        (same.clone(), (Some(OTHER), Some(MD5)), (Reason::Md5Mismatch, "finish.md5")),
        (same, (Some(MD5), Some(OTHER)), (Reason::Md5Mismatch, "spec.properties.content_md5")),
    ] {
        assert_rejected(check(&stated, md5s), &[expected]);
    }
}

#[test]
fn an_md5_that_was_not_computed_is_never_assumed() {
    let digests = Digests { crc64: 5, md5: None, size: 3 };
    let stated = proto::UploadFinish::default();
    let checked = check_digests(&digests, &stated, (Some(MD5), None));
    assert_rejected(checked, &[(Reason::Md5Mismatch, "finish.md5")]);
}
