//! Tests of the module.

use proptest::prelude::*;
use trestle_proto::blob::v1::PublicAccess;

use super::*;
use crate::plan;

/// A document with further members, and properties beside its length and type.
fn document(size: u64, kind: &str, properties: &str, members: &str) -> String {
    let comma = |text: &str| if text.is_empty() { String::new() } else { format!(",{text}") };
    format!(
        r#"{{"accountName":"a","containerName":"c","name":"b","snapshot":"","isCommitted":true,
        "properties":{{"contentLength":{size},"blobType":"{kind}"{}}}{}}}"#,
        comma(properties),
        comma(members)
    )
}

fn at(offset: u64, extent_offset: u64, count: u64) -> ExtentPiece {
    ExtentPiece {
        offset,
        location: TextLocation { id: "x".to_owned(), offset: extent_offset, count },
    }
}

fn place(offset: u64, count: u64) -> String {
    format!(r#""persistency":{{"id":"x","offset":{offset},"count":{count}}}"#)
}

#[test]
fn a_block_blob_has_its_properties_metadata_tags_and_tier() {
    let md5: Vec<_> = (0..16).map(|at| format!(r#""{at}":{}"#, at * 3)).collect();
    let properties = format!(
        r#""contentType":"text/plain","contentEncoding":"gzip","contentLanguage":"de",
        "contentDisposition":"inline","cacheControl":"no-cache","contentMD5":{{{}}},
        "accessTier":"Cool","accessTierInferred":false"#,
        md5.join(",")
    );
    let tags = r#""metadata":{"Owner":"me"},"blobTags":{"blobTagSet":[{"key":"t","value":"1"}]}"#;
    let json = document(5, "BlockBlob", &properties, &format!("{tags},{}", place(7, 5)));

    let (blob, pieces) = blob(&json, "b").unwrap();

    assert_eq!((blob.name.as_str(), blob.kind, blob.size), ("b", ImportedKind::Block, 5));
    assert_eq!((blob.tier, blob.is_snapshot), (AccessTier::Cool, false));
    assert_eq!(blob.metadata["Owner"], "me");
    assert_eq!(blob.tags["t"], "1");
    let found = blob.properties;
    assert_eq!(
        (found.content_type.as_str(), found.cache_control.as_str()),
        ("text/plain", "no-cache")
    );
    assert_eq!((found.content_encoding.as_str(), found.content_language.as_str()), ("gzip", "de"));
    assert_eq!(found.content_disposition, "inline");
    assert_eq!(found.content_md5[..3], [0, 3, 6]);
    assert_eq!(pieces, [at(0, 7, 5)]);
}

#[test]
fn blocks_are_in_their_order_and_pages_where_they_are() {
    let blocks = format!(
        r#""committedBlocksInOrder":[{{"size":4,{}}},{{"size":0,{}}},{{"size":3,{}}}]"#,
        place(14, 4),
        place(0, 0),
        place(11, 3)
    );
    let sealed = document(7, "AppendBlob", r#""isSealed":true"#, &blocks);
    let (found, pieces) = blob(&sealed, "b").unwrap();
    assert_eq!(found.kind, ImportedKind::Append { is_sealed: true });
    assert_eq!(pieces, [at(0, 14, 4), at(4, 11, 3)]);

    let pages = format!(
        r#""pageRangesInOrder":[{{"start":512,"end":1023,{}}},
        {{"start":1024,"end":1535,"persistency":{{"id":"*ZERO*"}}}},{{"start":2048,"end":2559,{}}}]"#,
        place(100, 512),
        place(9, 600)
    );
    let disk = document(4096, "PageBlob", r#""blobSequenceNumber":7,"accessTier":"P10""#, &pages);
    let (found, pieces) = blob(&disk, "b").unwrap();
    assert_eq!(found.kind, ImportedKind::Page { sequence_number: 7 });
    assert_eq!(found.tier, AccessTier::P10);
    assert_eq!(pieces, [at(512, 100, 512), at(2048, 9, 512)]);
}

#[test]
fn an_inferred_or_unknown_tier_is_none() {
    for (properties, tier) in [
        (r#""accessTier":"Hot","accessTierInferred":true"#, AccessTier::Unspecified),
        (r#""accessTier":"Hot""#, AccessTier::Hot),
        (r#""accessTier":"Archive","accessTierInferred":false"#, AccessTier::Archive),
        (r#""accessTier":"Frozen""#, AccessTier::Unspecified),
        ("", AccessTier::Unspecified),
    ] {
        let json = document(0, "BlockBlob", properties, "");
        assert_eq!(blob(&json, "b").unwrap().0.tier, tier, "{properties}");
    }
}

#[test]
fn an_md5_is_read_in_every_form_of_azurite() {
    let bytes: Vec<u8> = (0..16).collect();
    let list = serde_json::to_string(&bytes).unwrap();
    for form in [
        list.clone(),
        format!(r#"{{"type":"Buffer","data":{list}}}"#),
        format!(r#""{}""#, STANDARD.encode(&bytes)),
    ] {
        assert_eq!(md5(serde_json::from_str(&form).unwrap()).as_ref(), Ok(&bytes), "{form}");
    }
    assert_eq!(md5(None), Ok(Vec::new()));
    assert_eq!(md5(Some(Value::Null)), Ok(Vec::new()));
    for form in ["[1]", "[256]", "7", r#"{"0":1}"#, r#"{"1":1}"#, r#""x""#, r#"{"data":1}"#] {
        assert!(md5(serde_json::from_str(form).unwrap()).is_err(), "{form}");
    }
}

#[test]
fn a_document_that_breaks_a_rule_is_rejected_with_it() {
    let pages = |ranges: &str| {
        document(1024, "PageBlob", "", &format!(r#""pageRangesInOrder":[{ranges}]"#))
    };
    let range = |start: u64, end: u64, count: u64| {
        format!(r#"{{"start":{start},"end":{end},{}}}"#, place(0, count))
    };
    let order = "has pages that are not in order, or not in the blob";
    for (json, rule) in [
        ("{}".to_owned(), "is not a blob: missing field `properties`"),
        ("[1]".to_owned(), "is not a blob"),
        (document(0, "Tape", "", ""), "is of an unknown type: blobType=`Tape`"),
        (document(5, "BlockBlob", "", ""), "has 0 bytes of content, and contentLength=5"),
        (document(5, "BlockBlob", "", &place(0, 4)), "has 4 bytes of content"),
        (document(0, "BlockBlob", r#""contentMD5":[1]"#, ""), "contentMD5 must have 16 bytes"),
        (
            document(
                4,
                "AppendBlob",
                "",
                &format!(r#""committedBlocksInOrder":[{{"size":4,{}}}]"#, place(0, 5)),
            ),
            "has a block of another size than its content",
        ),
        (document(1, "PageBlob", "", ""), "is not of whole pages of 512 bytes"),
        (document(1 << 50, "PageBlob", "", ""), "is not of whole pages"),
        (pages(&range(0, 510, 511)), order),
        (pages(&range(512, 511, 0)), order),
        (pages(&range(512, 1535, 1024)), order),
        (pages(&format!("{},{}", range(512, 1023, 512), range(0, 511, 512))), order),
        (pages(&range(0, u64::MAX, 1)), order),
        (pages(&range(0, 511, 5)), "has pages that are longer than their content"),
    ] {
        let why = blob(&json, "b").unwrap_err();
        assert!(why.starts_with(rule), "{json}: {why}");
    }
}

#[test]
fn a_container_has_public_access_and_policies() {
    let json = r#"{"accountName":"a","name":"docs","metadata":{"Owner":"me"},
        "properties":{"etag":"x","publicAccess":"container"},
        "containerAcl":[{"id":"p1","accessPolicy":{"permission":"rl"}}]}"#;
    let container: ContainerDocument = serde_json::from_str(json).unwrap();
    let access = container.properties.public_access.unwrap();
    assert_eq!(plan::public_access(&access), PublicAccess::Container);
    let policies = plan::policies(container.policies.unwrap()).unwrap();
    assert_eq!((policies[0].id.as_str(), policies[0].permissions.as_deref()), ("p1", Some("rl")));

    let bare: ContainerDocument =
        serde_json::from_str(r#"{"accountName":"a","name":"docs"}"#).unwrap();
    assert!(bare.metadata.is_none() && bare.properties.public_access.is_none());
    assert_eq!(plan::public_access("blob"), PublicAccess::Blob);
    assert_eq!(plan::public_access("everything"), PublicAccess::Unspecified);
}

proptest! {
    #[test]
    fn pieces_cover_the_content_or_the_document_is_rejected(
        size in 0..3000_u64,
        blocks in proptest::collection::vec((0..1000_u64, 0..1000_u64), 0..5),
        kind in prop_oneof!["BlockBlob", "AppendBlob"],
    ) {
        let blocks: Vec<_> =
            blocks.iter().map(|(at, size)| format!(r#"{{"size":{size},{}}}"#, place(*at, *size))).collect();
        let members = format!(r#""committedBlocksInOrder":[{}]"#, blocks.join(","));
        if let Ok((blob, pieces)) = blob(&document(size, &kind, "", &members), "b") {
            let mut end = 0;
            for piece in pieces {
                prop_assert_eq!(piece.offset, end);
                end += piece.location.count;
            }
            prop_assert_eq!(end, blob.size);
        }
    }

    #[test]
    fn flipped_documents_are_read_or_rejected_and_truncated_ones_are_rejected(at in 0..400_usize, byte in any::<u8>()) {
        let json = document(5, "BlockBlob", r#""contentMD5":"AAAAAAAAAAAAAAAAAAAAAA==""#, &place(0, 5));
        let mut bytes = json.into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = blob(&text, "b");
            prop_assert!(blob(&text[..text.floor_char_boundary(at)], "b").is_err());
        }
    }
}
