//! Tests of the module.

use std::collections::HashMap;

use trestle_proto::blob::v1::HttpProperties;

use super::*;

#[test]
fn sums_ignore_order_and_count_repeats() {
    let sum = |texts: &[&str]| {
        let mut digest = Digest::default();
        texts.iter().for_each(|text| digest.add(of_message(text.as_bytes())));
        digest
    };
    assert_eq!(sum(&["a", "b", "c"]), sum(&["c", "a", "b"]));
    assert_ne!(sum(&["a", "b"]), sum(&["a", "b", "b"]));
    assert_ne!(sum(&["a", "b"]), sum(&["a", "c"]));
    let kept: Digest = serde_json::from_str(&serde_json::to_string(&sum(&["a"])).expect("fits"))
        .expect("reads what was written");
    assert_eq!(kept, sum(&["a"]));
}

#[test]
fn every_write_of_a_blob_changes_its_hash() {
    let blob = Blob {
        name: "b".to_owned(),
        etag: "\"1\"".to_owned(),
        size: 5,
        properties: Some(HttpProperties {
            content_md5: vec![1; 16].into(),
            ..HttpProperties::default()
        }),
        ..Blob::default()
    };
    assert_eq!(of_blob(&blob), of_blob(&blob.clone()));
    let described = Blob { metadata: HashMap::from([("k".into(), "v".into())]), ..blob.clone() };
    assert_eq!(of_blob(&blob), of_blob(&described), "a list may be without metadata");

    for other in [
        Blob { name: "c".to_owned(), ..blob.clone() },
        Blob { etag: "\"2\"".to_owned(), ..blob.clone() },
        Blob { snapshot: "2026-01-02T03:04:05.0000000Z".to_owned(), ..blob.clone() },
        Blob { size: 6, ..blob.clone() },
        Blob { properties: None, ..blob.clone() },
    ] {
        assert_ne!(of_blob(&blob), of_blob(&other), "{other:?}");
    }
}
