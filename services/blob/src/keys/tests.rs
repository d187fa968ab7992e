use proptest::prelude::*;

use super::*;
use crate::blobs::BlobKey;

const ROWS: [BlobRow; 9] = [
    BlobRow::Record,
    BlobRow::Staging,
    BlobRow::StagedBlock,
    BlobRow::Retired,
    BlobRow::Past,
    BlobRow::SharedRetired,
    BlobRow::SoftDeleted,
    BlobRow::Inline,
    BlobRow::BlockList,
];

fn name(text: &str) -> BlobName {
    BlobName::stored(text.to_owned())
}

fn any_name() -> impl Strategy<Value = String> {
    let edge =
        prop::sample::select(vec!['\0', '\u{1}', '/', 'a', '\u{7ff}', '\u{ffff}', '\u{10000}']);
    let chars = prop::collection::vec(prop_oneof![edge, any::<char>()], 0..8);
    chars.prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn names_come_back_from_every_key_and_share_one_domain(
        text in any_name(),
        id: u64,
        numbers in prop::collection::vec(any::<u64>(), 0..3),
    ) {
        let (id, name) = (ContainerId(id), name(&text));
        for row in ROWS {
            let key = blob_row(row, id, &name, &numbers);
            prop_assert_eq!(blob_of(&key).expect("a key"), (id, name.clone()));
            prop_assert_eq!(own_domain(&key), blob_domain(id, &name));
        }
    }

    #[test]
    fn keys_sort_by_the_bytes_of_names(a in any_name(), b in any_name()) {
        let key = |text: &str| blob_row(BlobRow::Record, ContainerId(1), &name(text), &[]);

        prop_assert_eq!(key(&a).cmp(&key(&b)), a.as_bytes().cmp(b.as_bytes()));
        prop_assert_eq!(blob_domain(ContainerId(1), &name(&a)) == blob_domain(ContainerId(1), &name(&b)), a == b);
    }

    #[test]
    fn a_span_has_the_names_with_its_prefix_and_ends_before_all_others(
        text in any_name(),
        prefix in any_name(),
    ) {
        let key = blob_row(BlobRow::Record, ContainerId(1), &name(&text), &[]);
        let span = named(BlobRow::Record, ContainerId(1), &prefix);
        let has = |name: &str| name.starts_with(&prefix);

        prop_assert_eq!((span.start..span.end).contains(&key), has(&text));
        if has(&text) {
            prop_assert!(key < after_names(BlobRow::Record, ContainerId(1), &prefix));
        }
    }

    #[test]
    fn any_bytes_are_a_key_or_corrupt_without_panic(bytes: Vec<u8>) {
        let bytes = Bytes::from(bytes);
        let _ = domain_of(&bytes);
        if let Ok((container, name)) = blob_of(&bytes) {
            prop_assert!(bytes[1..].starts_with(&blob_row(BlobRow::Record, container, &name, &[])[1..]));
        }
        let _ = (block_of(&bytes), time_of(&bytes), number_of(&bytes), container_name_of(&bytes));
    }
}

#[test]
fn the_parts_of_other_keys_come_back() {
    let (id, blob) = (ContainerId(7), name("a\0b"));
    let staged = staged_block(id, &blob, 9, b"block");
    assert_eq!(block_of(&staged).expect("a key"), "block");
    assert!(
        staged_blocks(id, &blob, 9).start <= staged && staged < staged_blocks(id, &blob, 9).end
    );
    assert!(staged_blocks(id, &blob, 8).end <= staged);

    let retired = blob_row(BlobRow::Retired, id, &blob, &[42]);
    assert_eq!(time_of(&retired).expect("a key").get(), 42);
    assert_eq!(number_of(&deleted_container(id)).expect("a key"), 7);
    assert_eq!(decode_number(&encode_number(5), "x").expect("a number"), 5);
    for damaged in [&b""[..], b"\x02\0\0\0\0\0\0\0\x05", b"\x01\0"] {
        assert!(matches!(decode_number(damaged, "x"), Err(BlobError::Corrupt(_))));
    }
}

#[test]
fn kinds_lie_in_the_keyspaces_of_the_service() {
    let kinds = [
        CONTAINER,
        DELETED_CONTAINER,
        NEXT_ID,
        CONTENT_IDS,
        LIVE,
        SERVICE_PROPERTIES,
        PROTECTION,
        BLOB,
        STAGING,
        STAGED_BLOCK,
        RETIRED,
        PAST,
        SHARED_RETIRED,
        SOFT_DELETED,
        INLINE,
        BLOCK_LIST,
    ];
    for kind in kinds {
        let found = KEYSPACES.iter().filter(|keyspace| keyspace.kinds.contains(&kind)).count();
        assert_eq!(found, 1, "{kind:#x}");
    }
}

fn blob_key(container: u64, text: &str) -> BlobKey {
    BlobKey { container: ContainerId(container), name: name(text) }
}

proptest! {
    #[test]
    fn a_row_of_a_tag_is_in_the_domain_of_its_blob_and_names_it(
        text in any_name(),
        id: u64,
        key in "[a-z0-9 +./:=_-]{1,8}",
        value in "[a-z0-9 +./:=_-]{0,8}",
    ) {
        let blob = blob_key(id, &text);
        let row = tag_row(&blob, &(key.clone(), value.clone()));
        let (first, end) = tag_value_end(ContainerId(id), &key, &value);
        let all = tag_values(ContainerId(id), &key);

        prop_assert_eq!(tagged_blob_of(&row).expect("a key"), blob.clone());
        prop_assert_eq!(own_domain(&row), blob.domain());
        prop_assert!((first..end).contains(&row));
        prop_assert!((all.start..all.end).contains(&row));
    }

    #[test]
    fn rows_of_a_tag_sort_by_value_and_name(
        a in ("[a-c ]{0,3}", any_name()),
        b in ("[a-c ]{0,3}", any_name()),
    ) {
        let row = |(value, text): &(String, String)| {
            tag_row(&blob_key(7, text), &("k".to_owned(), value.clone()))
        };
        let bytes = |(value, text): &(String, String)| {
            (value.as_bytes().to_vec(), text.as_bytes().to_vec())
        };
        prop_assert_eq!(row(&a).cmp(&row(&b)), bytes(&a).cmp(&bytes(&b)));
    }
}

#[test]
fn a_damaged_row_of_a_tag_is_corrupt() {
    let row = tag_row(&blob_key(1, "a"), &("k".to_owned(), "v".to_owned()));
    for length in 0..row.len() {
        let cut = Bytes::copy_from_slice(&row[..length]);
        assert!(tagged_blob_of(&cut).is_err(), "{length}");
        own_domain(&cut);
    }
}
