use super::*;
use crate::{
    blobs::BlobChange,
    etag::{ETag, ETagPattern},
    fixture::{BlobFixture, sample},
    lease::{LeaseAction, ResourceLease},
    record::BlobHistory,
};

fn ticks(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn blob(snapshots: u64, lease: ResourceLease) -> BlobRecord {
    BlobRecord {
        etag: ETag(ticks(5)),
        created_at: ticks(4),
        properties: Default::default(),
        metadata: Vec::new(),
        lease,
        content: Content::Inline { size: 1 },
        tier: None,
        history: BlobHistory { snapshots, newest_shared: None },
        copy: None,
        deletion: None,
        tags: Vec::new(),
        version: None,
    }
}

#[test]
fn only_a_delete_of_the_blob_alone_requires_that_it_has_no_snapshots() {
    let check = |scope, snapshots| {
        let current = blob(snapshots, ResourceLease::Absent);
        check_delete(Some(&current), scope, (&Conditions::default(), None), ticks(9))
    };

    for scope in [DeleteScope::Blob, DeleteScope::WithSnapshots, DeleteScope::SnapshotsOnly] {
        check(scope, 0).expect("there are none");
        let is_rejected = matches!(check(scope, 1), Err(BlobError::SnapshotsPresent));
        assert_eq!(is_rejected, scope == DeleteScope::Blob, "{scope:?}");
    }
}

#[test]
fn a_lease_protects_the_blob_and_not_its_snapshots() {
    let id = Uuid::from_u128(1);
    let leased = blob(1, ResourceLease::Held { id, term: None });
    let check = |scope, lease_id| {
        check_delete(Some(&leased), scope, (&Conditions::default(), lease_id), ticks(9))
    };

    check(DeleteScope::SnapshotsOnly, None).expect("no id is needed");
    check(DeleteScope::WithSnapshots, Some(id)).expect("its id");
    let missing = check(DeleteScope::WithSnapshots, None);
    assert!(matches!(missing, Err(BlobError::BlobLease(LeaseError::IdMissing))));
    let other = check(DeleteScope::SnapshotsOnly, Some(Uuid::nil()));
    assert!(matches!(other, Err(BlobError::BlobLease(LeaseError::Mismatch))));
}

async fn with_snapshots(fixture: &BlobFixture, count: usize) -> (BlobKey, Vec<Ticks>) {
    let key = fixture.key("a").await;
    let mut created = Vec::new();
    for number in 0..count {
        fixture.put(&key, number.to_string()).await;
        created.push(fixture.snapshot(&key).await.expect("a snapshot"));
    }
    fixture.put(&key, "base").await;
    (key, created)
}

#[tokio::test]
async fn each_scope_deletes_what_it_names() {
    let fixture = BlobFixture::new();
    let (key, created) = with_snapshots(&fixture, 3).await;

    let rejected = fixture.delete(&key).await;
    assert!(matches!(rejected, Err(BlobError::SnapshotsPresent)));
    fixture.delete_scope(&key, DeleteScope::Snapshot(created[1])).await.expect("deleted");
    let again = fixture.delete_scope(&key, DeleteScope::Snapshot(created[1])).await;
    assert!(matches!(again, Err(BlobError::BlobNotFound(_))));
    assert_eq!(fixture.read_snapshot(&key, created[0]).await.expect("read"), "0");
    assert_eq!(fixture.read_snapshot(&key, created[2]).await.expect("read"), "2");

    fixture.delete_scope(&key, DeleteScope::SnapshotsOnly).await.expect("deleted");
    assert!(fixture.read_snapshot(&key, created[0]).await.is_err());
    assert_eq!(fixture.read(&key).await.expect("the blob remains"), "base");
    fixture.delete_scope(&key, DeleteScope::SnapshotsOnly).await.expect("there are none");
    fixture.snapshot(&key).await.expect("a snapshot");
    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");
    assert!(matches!(fixture.read(&key).await, Err(BlobError::BlobNotFound(_))));
    for scope in [DeleteScope::SnapshotsOnly, DeleteScope::WithSnapshots, DeleteScope::Blob] {
        let missing = fixture.delete_scope(&key, scope).await;
        assert!(matches!(missing, Err(BlobError::BlobNotFound(_))), "{scope:?}");
    }
}

#[tokio::test]
async fn more_snapshots_than_one_change_deletes_are_all_deleted() {
    let fixture = BlobFixture::new();
    let before = fixture.rows().await;
    let key = fixture.key("a").await;
    fixture.put(&key, sample(100_000)).await;
    for _ in 0..2 * SNAPSHOTS_AT_ONCE + 1 {
        fixture.snapshot(&key).await.expect("a snapshot");
    }

    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");

    fixture.advance(trestle_model::read_grace::READ_GRACE + std::time::Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0);
    assert_eq!(fixture.rows().await, before + 1, "the ids of contents");
}

#[tokio::test]
async fn a_delete_of_a_snapshot_has_the_conditions_of_the_snapshot() {
    let fixture = BlobFixture::new();
    let (key, created) = with_snapshots(&fixture, 1).await;
    let id = Uuid::from_u128(7);
    let acquire =
        LeaseAction::Acquire { duration: None, proposed: Some(id), generated: Uuid::nil() };
    let lease = BlobChange::Lease(acquire);
    let base = fixture.blobs.change(key.clone(), lease, Default::default()).await.expect("leased");
    let delete = |etag: ETag| {
        let if_match = vec![ETagPattern::parse(&etag.quoted()).expect("an etag")];
        let conditions = Conditions { if_match, ..Conditions::default() };
        fixture.blobs.delete(
            key.clone(),
            DeleteScope::Snapshot(created[0]),
            (conditions, None),
            Retention::default(),
        )
    };
    let state = BlobState::Past(created[0]);
    let snapshot = fixture.blobs.get((&key, state), (&Conditions::default(), None)).await;
    let snapshot = snapshot.expect("it exists").record.etag;

    assert!(matches!(delete(base.record.etag).await, Err(BlobError::Condition(_))));
    delete(snapshot).await.expect("the lease of the blob does not matter");
}
