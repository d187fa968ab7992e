use std::time::Duration;

use super::*;
use crate::{conditions::ConditionError, etag::ETagPattern, lease::LeaseAction, record::ContentId};

fn ticks(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn current(lease: ResourceLease) -> BlobRecord {
    BlobRecord {
        etag: ETag(ticks(5)),
        created_at: ticks(4),
        properties: ContentProperties { encoding: "gzip".to_owned(), ..Default::default() },
        metadata: vec![("old".to_owned(), "1".to_owned())],
        lease,
        content: Content::Inline { size: 1 },
        tier: None,
        history: BlobHistory { snapshots: 2, newest_shared: Some(ticks(3)) },
        copy: None,
        deletion: None,
        tags: Vec::new(),
        version: None,
    }
}

fn leased() -> (ResourceLease, Uuid) {
    let generated = Uuid::from_u128(1);
    let duration = Some(Duration::from_secs(15));
    let acquire = LeaseAction::Acquire { duration, proposed: None, generated };
    (ResourceLease::Absent.apply(acquire, ticks(0)).expect("available").0, generated)
}

fn put(current: Option<&BlobRecord>, command: &PutCommand) -> Result<BlobRecord, BlobError> {
    let content = Content::Whole(Part { content: ContentId(9), mark: 0, size: 8 });
    decide_put(current, command, content, Version::new(ticks(100)))
}

#[test]
fn a_put_replaces_everything_but_the_lease() {
    let (lease, id) = leased();
    let metadata = vec![("new".to_owned(), "2".to_owned())];
    let command = PutCommand { metadata, lease_id: Some(id), ..PutCommand::default() };

    let record = put(Some(&current(lease)), &command).expect("permitted");

    let expected = BlobRecord {
        etag: ETag(ticks(100)),
        created_at: ticks(100),
        properties: ContentProperties::default(),
        metadata: command.metadata.clone(),
        lease,
        content: Content::Whole(Part { content: ContentId(9), mark: 0, size: 8 }),
        tier: None,
        history: BlobHistory { snapshots: 2, newest_shared: None },
        copy: None,
        deletion: None,
        tags: Vec::new(),
        version: None,
    };
    assert_eq!(record, expected);
}

#[test]
fn the_lease_is_checked_before_the_conditions() {
    let (lease, _) = leased();
    let if_match = vec![ETagPattern::parse("\"0x1\"").expect("an etag")];
    let conditions = Conditions { if_match, ..Conditions::default() };
    let command = PutCommand { conditions, ..PutCommand::default() };

    let leased = put(Some(&current(lease)), &command);
    assert!(matches!(leased, Err(BlobError::BlobLease(LeaseError::IdMissing))));
    let free = put(Some(&current(ResourceLease::Absent)), &command);
    assert!(matches!(free, Err(BlobError::Condition(ConditionError::Unmet(_)))));
}

#[test]
fn a_lease_id_needs_a_blob_with_that_lease() {
    let command = PutCommand { lease_id: Some(Uuid::from_u128(1)), ..PutCommand::default() };

    for current in [None, Some(current(ResourceLease::Absent))] {
        let found = put(current.as_ref(), &command);
        assert!(matches!(found, Err(BlobError::BlobLease(LeaseError::NotPresent))));
    }
}

#[test]
fn the_row_of_small_content_has_its_checksum_whatever_the_pieces() {
    let rows = [vec!["hello world"], vec!["hello", " ", "world"]].map(|pieces| {
        let pieces: Vec<_> = pieces.into_iter().map(Bytes::from).collect();
        match NewContent::inline(&pieces) {
            NewContent::Inline(row) => row,
            _ => panic!("it is small"),
        }
    });

    assert_eq!(rows[0], rows[1]);
    assert_eq!(rows[0][..8], Crc64::of(b"hello world").to_le_bytes());
    assert_eq!(rows[0][8..], b"hello world"[..]);
}
