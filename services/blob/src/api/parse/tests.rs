//! Tests of the fields that many requests have, and how their violations are collected.

use std::fmt::Debug;

use super::*;

/// Checks that a request is rejected for these violations, in this order.
#[track_caller]
pub(in crate::api) fn assert_rejected<T: Debug>(
    parsed: Result<T, Fault>,
    expected: &[(Reason, &str)],
) {
    let fault = parsed.expect_err("it is rejected");
    let found = fault.violations.iter().map(|it| (it.reason, it.field.as_str()));
    assert_eq!(found.collect::<Vec<_>>(), expected, "{fault:?}");
}

/// What one function of the parser has for its input.
pub(in crate::api) fn parsed<T>(parse: impl FnOnce(&mut RequestParser) -> T) -> Result<T, Fault> {
    let mut parser = RequestParser::default();
    let value = parse(&mut parser);
    parser.finish(Some(value))
}

fn block_ref(id: &'static str, source: i32) -> proto::BlockRef {
    proto::BlockRef { id: Bytes::from_static(id.as_bytes()), source }
}

#[test]
fn every_violation_is_reported_and_the_first_one_is_the_reason() {
    let container = proto::Container {
        name: "UPPER".to_owned(),
        metadata: HashMap::from([("1a".to_owned(), String::new())]),
        public_access: 7,
        ..Default::default()
    };
    let expected = [
        (Reason::InvalidResourceName, "container.name"),
        (Reason::InvalidMetadata, "container.metadata"),
        (Reason::InvalidHeaderValue, "container.public_access"),
    ];
    let created = new_container(Some(container));
    assert_eq!(created.as_ref().map(|_| ()).map_err(|it| it.reason), Err(expected[0].0));
    assert_rejected(created, &expected);
    assert_rejected(new_container(None), &[(Reason::PropertiesNeedValue, "container")]);
}

#[test]
fn a_new_container_has_its_name_its_metadata_by_name_and_its_level() {
    let pairs = [("b", "2"), ("a", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (number, level) in [
        (proto::PublicAccess::Unspecified, PublicAccess::None),
        (proto::PublicAccess::Blob, PublicAccess::Blobs),
        (proto::PublicAccess::Container, PublicAccess::Container),
    ] {
        let container = proto::Container {
            name: "logs".to_owned(),
            metadata: HashMap::from(pairs.clone()),
            public_access: number.into(),
            ..Default::default()
        };
        let created = new_container(Some(container)).expect("valid");
        assert_eq!(created.name.as_str(), "logs");
        assert_eq!(created.metadata, [pairs[1].clone(), pairs[0].clone()]);
        assert_eq!(created.public_access, level);
        assert_eq!(public_access(number.into()).ok(), Some(level));
    }
    for number in [-1, 3, i32::MAX] {
        let expected = [(Reason::InvalidHeaderValue, "public_access")];
        assert_rejected(public_access(number), &expected);
    }
}

#[test]
fn a_range_has_at_least_one_byte_and_may_lie_anywhere() {
    let range = |offset, length| {
        parsed(|parser| parser.range(Some(proto::ByteRange { offset, length }), "range"))
    };
    for (offset, length) in [(0, None), (0, Some(1)), (u64::MAX, None), (7, Some(u64::MAX))] {
        assert_eq!(range(offset, length).ok(), Some(Some(RequestedRange { offset, length })));
    }
    assert_rejected(range(0, Some(0)), &[(Reason::InvalidInput, "range.length")]);
    assert_eq!(parsed(|parser| parser.range(None, "range")).ok(), Some(None));
}

#[test]
fn the_id_of_a_lease_is_a_uuid_in_any_of_its_forms_or_absent() {
    let id = |text: &str| parsed(|parser| parser.lease_id(text, "lease_id"));
    let uuid = Uuid::from_u128(0x1f81_2371_a41d_49e6_b123_f4b5_42e8_51c5);
    for text in [
        "1f812371-a41d-49e6-b123-f4b542e851c5",
        "1F812371-A41D-49E6-B123-F4B542E851C5",
        "1f812371a41d49e6b123f4b542e851c5",
        "{1f812371-a41d-49e6-b123-f4b542e851c5}",
    ] {
        assert_eq!(id(text).ok(), Some(Some(uuid)), "{text}");
    }
    assert_eq!(id("").ok(), Some(None));
    for text in ["1f812371", "1f812371-a41d-49e6-b123-f4b542e851cg", " ", "é"] {
        assert_rejected(id(text), &[(Reason::InvalidHeaderValue, "lease_id")]);
    }
}

#[test]
fn the_id_of_a_block_has_1_to_64_bytes() {
    let id = |length: usize| parsed(|parser| parser.block_id(&vec![0; length].into()));
    for length in [1, 64] {
        assert!(id(length).is_ok(), "{length}");
    }
    for length in [0, 65] {
        assert_rejected(id(length), &[(Reason::InvalidQueryParameterValue, "block_id")]);
    }
}

#[test]
fn blocks_keep_their_order_and_are_the_latest_ones_by_default() {
    let list = vec![block_ref("c", 1), block_ref("a", 2), block_ref("b", 3), block_ref("a", 0)];
    let blocks = parsed(|parser| parser.blocks(list)).expect("valid");
    let found = blocks.iter().map(|it| (it.id.as_ref(), it.source)).collect::<Vec<_>>();
    let expected: [(&[u8], _); 4] = [
        (b"c", BlockSource::Committed),
        (b"a", BlockSource::Uncommitted),
        (b"b", BlockSource::Latest),
        (b"a", BlockSource::Latest),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_block_with_an_unknown_source_is_named_by_its_index() {
    let list = vec![block_ref("a", 4), block_ref("b", 1), block_ref("c", -1)];
    let expected =
        [(Reason::InvalidInput, "blocks[0].source"), (Reason::InvalidInput, "blocks[2].source")];
    assert_rejected(parsed(|parser| parser.blocks(list)), &expected);
}

#[test]
fn a_list_has_at_most_50_000_blocks() {
    let blocks = |count| parsed(|parser| parser.blocks(vec![block_ref("a", 9); count]));
    let too_long = [(Reason::BlockListTooLong, "blocks")];
    assert_rejected(blocks(50_001), &too_long);
    let list = parsed(|parser| parser.blocks(vec![block_ref("a", 0); 50_000]));
    assert_eq!(list.map(|it| it.len()).ok(), Some(50_000));
}

#[test]
fn a_container_and_a_blob_are_both_checked() {
    let names = |container: &str, blob: &str| {
        let (container, blob) = (container.to_owned(), blob.to_owned());
        let mut parser = RequestParser::default();
        let names = parser.names(container, blob);
        parser.finish(names)
    };
    let (container, blob) = names("logs", "a/b").expect("valid");
    assert_eq!((container.as_str(), blob.as_str()), ("logs", "a/b"));
    let (no_container, no_blob) =
        ((Reason::PropertiesNeedValue, "container"), (Reason::InvalidUri, "blob"));
    assert_rejected(names("", ""), &[no_container, no_blob]);
    assert_rejected(names("logs", ""), &[no_blob]);
    assert_rejected(names("", "a"), &[no_container]);
}
