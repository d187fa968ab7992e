//! Tests of how records become responses: which fields a state has, and how periods are rounded.

use trestle_model::time::Ticks;

use super::*;
use crate::{
    etag::ETag,
    names::BlobName,
    record::{AppendContent, BlobHistory, CopyOrigin, PageContent},
};

const DAY: u64 = 24 * 3600;
const SNAPSHOT: &str = "2019-08-28T17:07:35.2821851Z";
/// Everything that a listing can include.
const ALL: Included = Included { metadata: true, tags: true, tag_count: true };

fn at(seconds: u64) -> Ticks {
    past::parse(SNAPSHOT).expect("a time").after(Duration::from_secs(seconds))
}

/// A small block blob with metadata and a tag.
pub(in crate::api) fn record() -> BlobRecord {
    BlobRecord {
        etag: ETag(at(0)),
        created_at: at(0),
        properties: ContentProperties::default(),
        metadata: vec![("m".to_owned(), "1".to_owned())],
        lease: ResourceLease::Held { id: Uuid::nil(), term: None },
        content: Content::Inline { size: 7 },
        tier: None,
        history: BlobHistory::default(),
        copy: None,
        deletion: None,
        tags: vec![("t".to_owned(), "2".to_owned())],
        version: None,
    }
}

fn shown(record: BlobRecord) -> proto::Blob {
    blob("logs", "a", record, at(0))
}

fn deleted_for(period: Duration) -> Option<Deletion> {
    Some(Deletion::at(at(0), period))
}

#[test]
fn only_the_kind_of_a_blob_has_its_fields() {
    let appended = Content::Append(AppendContent {
        size: 10,
        blocks: 3,
        is_sealed: true,
        ..AppendContent::new(1)
    });
    let paged = Content::Pages(PageContent { generation: 1, size: 512, sequence_number: 9 });
    for (content, kind, expected) in [
        (Content::Inline { size: 7 }, proto::BlobType::Block, (7, 0, false, 0)),
        (Content::Blocks { list: 5, size: 8 }, proto::BlobType::Block, (8, 0, false, 0)),
        (appended, proto::BlobType::Append, (10, 3, true, 0)),
        (paged, proto::BlobType::Page, (512, 0, false, 9)),
    ] {
        let blob = shown(BlobRecord { content, ..record() });
        assert_eq!(blob.r#type(), kind);
        let blocks = (blob.committed_block_count, blob.is_sealed);
        assert_eq!((blob.size, blocks.0, blocks.1, blob.sequence_number), expected);
    }
}

#[test]
fn a_snapshot_has_its_time_and_no_lease_and_a_version_has_its_id() {
    let current = with_state(shown(record()), BlobState::Current);
    assert_eq!((current.snapshot.as_str(), current.version_id.as_str()), ("", ""));
    assert_eq!(current.lease.map(|it| it.state()), Some(proto::LeaseState::Leased));

    let snapshot = with_state(shown(record()), BlobState::Past(at(0)));
    assert_eq!((snapshot.snapshot.as_str(), snapshot.version_id.as_str()), (SNAPSHOT, ""));
    assert_eq!(snapshot.lease, None);

    let of_version = BlobRecord { version: Some(at(0)), ..record() };
    let current = with_state(shown(of_version.clone()), BlobState::Current);
    assert!(current.is_current_version && current.version_id == SNAPSHOT);
    let previous = with_state(shown(of_version), BlobState::Past(at(0)));
    assert_eq!((previous.snapshot.as_str(), previous.version_id.as_str()), ("", SNAPSHOT));
    assert!(!previous.is_current_version && previous.lease.is_none());
}

#[test]
fn the_days_that_remain_are_whole_ones() {
    for (period, days) in [
        (Duration::from_secs(7 * DAY), 7),
        (Duration::from_secs(7 * DAY - 1), 6),
        (Duration::from_secs(DAY - 1), 0),
        (Duration::ZERO, 0),
    ] {
        let blob = shown(BlobRecord { deletion: deleted_for(period), ..record() });
        assert_eq!(blob.remaining_retention_days, days, "{period:?}");
        assert_eq!(blob.delete_time, Some(at(0).into()));
    }
    let late = BlobRecord { deletion: deleted_for(Duration::from_secs(DAY)), ..record() };
    let blob = blob("logs", "a", late, at(9 * DAY));
    assert_eq!(blob.remaining_retention_days, 0, "it is past its end");
    assert_eq!(shown(record()).delete_time, None);
}

#[test]
fn a_deleted_container_has_a_version_and_no_lease() {
    let record = |deletion| ContainerRecord {
        id: ContainerId(0xAB),
        etag: ETag(at(0)),
        created_at: at(0),
        metadata: Vec::new(),
        policies: Bytes::new(),
        lease: ResourceLease::Absent,
        deletion,
        public_access: PublicAccess::Blobs,
    };
    let current = container("logs", record(None), at(0));
    assert_eq!((current.version.as_str(), current.delete_time), ("", None));
    assert_eq!(current.lease.map(|it| it.state()), Some(proto::LeaseState::Available));
    assert_eq!(current.public_access(), proto::PublicAccess::Blob);

    let deletion = deleted_for(Duration::from_secs(3 * DAY));
    let deleted = container("logs", record(deletion), at(DAY));
    assert_eq!(deleted.version, "00000000000000AB");
    assert_eq!((deleted.remaining_retention_days, deleted.lease), (2, None));
}

#[test]
fn a_lease_is_active_for_no_less_than_the_whole_seconds_that_are_shown() {
    for (active, seconds) in [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_secs(60), 60),
        (Duration::new(59, 999_999_999), 60),
    ] {
        let (id, shown) = lease_result(Some(LeaseResult::Broken(active)));
        assert_eq!(id, "");
        assert_eq!(shown, Some(prost_types::Duration { seconds, nanos: 0 }));
    }
    let held = lease_result(Some(LeaseResult::Held(Uuid::from_u128(0xA))));
    assert_eq!(held, ("00000000-0000-0000-0000-00000000000a".to_owned(), None));
    for result in [Some(LeaseResult::Released), None] {
        assert_eq!(lease_result(result), (String::new(), None));
    }
}

#[test]
fn a_copy_of_a_part_shows_what_was_copied_and_not_what_the_blob_has() {
    for (size, expected) in [(None, 7), (Some(0), 0), (Some(3), 3)] {
        let origin = CopyOrigin { id: Uuid::nil(), source: "logs/b".to_owned() };
        let copy = Some(BlobCopy { origin, completed_at: at(1), size });
        let shown = shown(BlobRecord { copy, ..record() }).copy.expect("a copy");
        assert_eq!((shown.copied_bytes, shown.total_bytes), (expected, expected));
        assert_eq!(shown.status(), proto::CopyStatus::Success);
        assert_eq!(shown.source, "logs/b");
    }
}

#[test]
fn a_caller_who_may_not_read_gets_no_metadata_properties_tags_and_leases() {
    let copy = CopyOrigin { id: Uuid::nil(), source: "secret".to_owned() };
    let copy = Some(BlobCopy { origin: copy, completed_at: at(1), size: None });
    let properties = ContentProperties { content_type: "t".to_owned(), ..Default::default() };
    let full = shown(BlobRecord { copy, properties, ..record() });

    let blob = unreadable(full.clone());

    assert!(blob.metadata.is_empty() && blob.tags.is_empty() && blob.tag_count == 0);
    assert_eq!((blob.properties, blob.lease, blob.copy), (None, None, None));
    assert_eq!((blob.create_time, blob.access_tier), (None, 0));
    assert_eq!((blob.name, blob.etag, blob.size), (full.name, full.etag, full.size));
}

#[test]
fn an_item_of_a_listing_has_what_is_included() {
    let item = |included| {
        let item = ListedItem::Blob(BlobName::stored("a".to_owned()), Some(Box::new(record())));
        match listed("logs", item, included, at(0)).item {
            Some(Item::Blob(blob)) => blob,
            other => panic!("it is a blob: {other:?}"),
        }
    };
    let counts = |blob: &proto::Blob| (blob.metadata.len(), blob.tags.len(), blob.tag_count);
    assert_eq!(counts(&item(ALL)), (1, 1, 1));
    assert_eq!(counts(&item(Included { metadata: false, ..ALL })), (0, 1, 1));
    assert_eq!(counts(&item(Included { tags: false, ..ALL })), (1, 0, 1));
    assert_eq!(counts(&item(Included { tag_count: false, ..ALL })), (1, 1, 0));
}

#[test]
fn an_item_of_a_listing_is_a_blob_a_past_state_a_group_or_uncommitted() {
    let name = || BlobName::stored("a".to_owned());
    let item = |item| listed("logs", item, ALL, at(0)).item;
    let group = item(ListedItem::Group("a/".to_owned()));
    assert_eq!(group, Some(Item::Prefix("a/".to_owned())));
    let uncommitted = proto::Blob { is_uncommitted: true, ..named("logs", "a") };
    assert_eq!(item(ListedItem::Blob(name(), None)), Some(Item::Blob(uncommitted)));
    match item(ListedItem::Past(name(), at(0), Box::new(record()))) {
        Some(Item::Blob(blob)) => {
            assert_eq!((blob.snapshot.as_str(), blob.lease), (SNAPSHOT, None));
        }
        other => panic!("it is a blob: {other:?}"),
    }
}

#[test]
fn settings_of_data_protection_come_back_from_their_response() {
    let periods = [None, Some(Duration::from_secs(DAY)), Some(Duration::from_secs(365 * DAY))];
    for deleted_for in periods {
        for containers_deleted_for in periods {
            for versions in [false, true] {
                let retention = Retention { deleted_for, versions, containers_deleted_for };
                let other = Retention {
                    deleted_for: periods[1],
                    versions: !versions,
                    containers_deleted_for: periods[1],
                };
                let change = crate::api::parse::protection(&protection(retention));
                assert_eq!(change.expect("valid").apply(other), retention);
            }
        }
    }
}
