use super::*;
use crate::{
    blobs::{BlobChange, BlobState, PutCommand, StateName},
    etag::ETagPattern,
    fixture::{BlobFixture, sample},
    lease::{LeaseAction, LeaseError},
};

async fn get(fixture: &BlobFixture, key: &BlobKey, state: BlobState) -> BlobRecord {
    let required = (&Conditions::default(), None);
    fixture.blobs.get((key, state), required).await.expect("it exists").record
}

#[tokio::test]
async fn a_snapshot_is_read_as_it_was_whatever_happens_to_the_blob() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    for data in [sample(10), sample(100_000)] {
        fixture.put(&key, data.clone()).await;
        let at = fixture.snapshot(&key).await.expect("a snapshot");
        fixture.put(&key, "newer").await;

        assert_eq!(fixture.read_snapshot(&key, at).await.expect("read"), data);
        assert_eq!(fixture.read(&key).await.expect("read"), "newer");
    }
    fixture.stage(&key, "A", "first").await.expect("staged");
    fixture.commit(&key, &["A"]).await.expect("committed");
    let at = fixture.snapshot(&key).await.expect("a snapshot");
    fixture.stage(&key, "B", "second").await.expect("staged");
    fixture.commit(&key, &["A", "B"]).await.expect("committed");

    assert_eq!(fixture.read_snapshot(&key, at).await.expect("read"), "first");
    let blocks = fixture.blobs.past_blocks(&key, StateName::Snapshot(at)).await;
    let (_, blocks) = blocks.expect("read");
    assert_eq!((blocks.committed.len(), blocks.staged.len()), (1, 0));
    let never = at.next();
    let missing = fixture.read_snapshot(&key, never).await;
    assert!(matches!(missing, Err(BlobError::BlobNotFound(_))));
}

#[tokio::test]
async fn the_blob_keeps_its_etag_and_the_snapshot_gets_one_with_metadata_of_its_own() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let metadata = vec![("old".to_owned(), "1".to_owned())];
    let command = PutCommand { metadata: metadata.clone(), ..PutCommand::default() };
    let put = fixture.put_with(&key, "x", command).await.expect("put");
    let take = |metadata| fixture.blobs.snapshot(key.clone(), metadata, Default::default());

    let (first, plain) = take(None).await.expect("a snapshot");
    let own = vec![("new".to_owned(), "2".to_owned())];
    let (second, other) = take(Some(own.clone())).await.expect("a snapshot");

    assert!(first < second);
    assert_eq!((plain.etag, plain.metadata), (put.etag, metadata));
    assert_eq!((other.etag, other.metadata), (ETag(second), own));
    let base = get(&fixture, &key, BlobState::Current).await;
    assert_eq!((base.etag, base.history.snapshots), (put.etag, 2));
    assert_eq!(get(&fixture, &key, BlobState::Past(first)).await.history.snapshots, 0);
}

#[tokio::test]
async fn a_snapshot_needs_no_lease_but_a_stated_one_must_match() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let absent = fixture.snapshot(&key).await;
    assert!(matches!(absent, Err(BlobError::BlobNotFound(_))));
    fixture.put(&key, "x").await;
    let id = Uuid::from_u128(7);
    let acquire =
        LeaseAction::Acquire { duration: None, proposed: Some(id), generated: Uuid::nil() };
    let lease = BlobChange::Lease(acquire);
    fixture.blobs.change(key.clone(), lease, Default::default()).await.expect("leased");
    let take =
        |lease_id| fixture.blobs.snapshot(key.clone(), None, (Conditions::default(), lease_id));

    let (at, _) = take(None).await.expect("no id is needed");
    take(Some(id)).await.expect("its id");
    let other = take(Some(Uuid::nil())).await;
    assert!(matches!(other, Err(BlobError::BlobLease(LeaseError::Mismatch))));
    let snapshot = get(&fixture, &key, BlobState::Past(at)).await;
    assert_eq!(snapshot.lease, ResourceLease::Absent);
}

#[tokio::test]
async fn the_conditions_are_those_of_the_blob() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let put = fixture.put(&key, "x").await;
    let take = |etag: &str| {
        let conditions = Conditions {
            if_match: vec![ETagPattern::parse(etag).expect("an etag")],
            ..Conditions::default()
        };
        fixture.blobs.snapshot(key.clone(), None, (conditions, None))
    };

    take(&put.etag.quoted()).await.expect("it matches");
    assert!(matches!(take("0x1").await, Err(BlobError::Condition(_))));
    assert_eq!(get(&fixture, &key, BlobState::Current).await.history.snapshots, 1);
}
