//! Tests of the hash of a blob in the target.

use super::*;

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
    assert_eq!(hash_of(&blob), hash_of(&blob.clone()));
    let described = Blob { metadata: HashMap::from([("k".into(), "v".into())]), ..blob.clone() };
    assert_eq!(hash_of(&blob), hash_of(&described), "a list may be without metadata");

    for other in [
        Blob { name: "c".to_owned(), ..blob.clone() },
        Blob { etag: "\"2\"".to_owned(), ..blob.clone() },
        Blob { snapshot: "2026-01-02T03:04:05.0000000Z".to_owned(), ..blob.clone() },
        Blob { size: 6, ..blob.clone() },
        Blob { properties: None, ..blob.clone() },
    ] {
        assert_ne!(hash_of(&blob), hash_of(&other), "{other:?}");
    }
}

#[test]
fn a_state_that_overwrites_another_has_a_tier_of_its_own() {
    let kinds = [
        (ImportedKind::Block, AccessTier::Hot),
        (ImportedKind::Append { is_sealed: false }, AccessTier::Unspecified),
        (ImportedKind::Page { sequence_number: 0 }, AccessTier::Unspecified),
    ];
    for (kind, tier) in kinds {
        let blob = ImportedBlob { kind, ..ImportedBlob::default() };
        assert_eq!(blob.default_tier(), tier, "{kind:?}");
    }
}
