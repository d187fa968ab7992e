use std::time::Duration;
use trestle_model::read_grace::READ_GRACE;

use super::*;
use crate::{
    blobs::{BlobState, DeleteScope, ListBlobs, ListedItem, PastStates, StateName},
    conditions::Conditions,
    fixture::{BlobFixture, sample},
    names::BlobName,
    record::Retention,
    sweep::ORPHAN_GRACE,
};

const SECOND: Duration = Duration::from_secs(1);
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

fn soft() -> Retention {
    Retention { deleted_for: Some(WEEK), ..Retention::default() }
}

async fn fixture() -> (BlobFixture, BlobKey) {
    let fixture = BlobFixture::new();
    fixture.keep(soft());
    let key = fixture.key("a").await;
    (fixture, key)
}

/// The states of a listing: `*` for the blob, `@` for a snapshot, `-` before deleted ones.
async fn listed(fixture: &BlobFixture, key: &BlobKey, deleted: bool) -> Vec<String> {
    let past = PastStates { snapshots: true, deleted, versions: false };
    let request = ListBlobs { page_size: 1000, past, ..ListBlobs::default() };
    let page = fixture.blobs.list(key.container, &request).await.expect("listed");
    let mark = |record: &BlobRecord, kind: &str| {
        format!("{}{kind}", if record.deletion.is_some() { "-" } else { "" })
    };
    let item = |item| match item {
        ListedItem::Blob(_, Some(record)) => mark(&record, "*"),
        ListedItem::Past(_, _, record) => mark(&record, "@"),
        other => panic!("{other:?}"),
    };
    page.items.into_iter().map(item).collect()
}

#[tokio::test]
async fn a_deleted_blob_comes_back_as_it_was() {
    let (fixture, key) = fixture().await;
    for data in [sample(10), sample(100_000)] {
        let put = fixture.put(&key, data.clone()).await;
        fixture.delete(&key).await.expect("deleted");
        assert!(matches!(fixture.read(&key).await, Err(BlobError::BlobNotFound(_))));
        assert!(matches!(fixture.delete(&key).await, Err(BlobError::BlobNotFound(_))));
        assert!(fixture.snapshot(&key).await.is_err());
        fixture.advance(WEEK - SECOND);
        fixture.sweep().await;

        fixture.undelete(&key).await.expect("restored");

        assert_eq!(fixture.read(&key).await.expect("read"), data);
        let required = (&Conditions::default(), None);
        let found = fixture.blobs.get((&key, BlobState::Current), required).await;
        let record = found.expect("it exists").record;
        assert_eq!((record.etag, record.properties), (put.etag, put.properties));
        fixture.undelete(&key).await.expect("there is nothing to restore");
        fixture.advance(WEEK + SECOND);
        fixture.sweep().await;
        assert_eq!(fixture.read(&key).await.expect("it does not expire any more"), data);
    }
}

#[tokio::test]
async fn blocks_and_appends_come_back_and_can_be_extended() {
    let (fixture, key) = fixture().await;
    fixture.stage(&key, "A", "a").await.expect("staged");
    fixture.commit(&key, &["A"]).await.expect("committed");
    fixture.stage(&key, "B", "dropped").await.expect("staged");
    fixture.delete(&key).await.expect("deleted");
    fixture.undelete(&key).await.expect("restored");
    fixture.stage(&key, "C", "c").await.expect("staged");
    fixture.commit(&key, &["A", "C"]).await.expect("committed");
    assert_eq!(fixture.read(&key).await.expect("read"), "ac");

    let other = fixture.key("b").await;
    fixture.create_append(&other, Default::default()).await.expect("created");
    fixture.append(&other, "first ").await.expect("appended");
    fixture.delete(&other).await.expect("deleted");
    fixture.undelete(&other).await.expect("restored");
    fixture.append(&other, "second").await.expect("appended");
    assert_eq!(fixture.read(&other).await.expect("read"), "first second");
}

#[tokio::test]
async fn an_overwritten_content_becomes_a_snapshot_that_can_be_restored() {
    let (fixture, key) = fixture().await;
    for number in 0..3 {
        fixture.put(&key, sample(100_000 + number)).await;
        fixture.put(&key, number.to_string()).await;
    }
    assert_eq!(listed(&fixture, &key, false).await, ["*"]);
    assert_eq!(listed(&fixture, &key, true).await, ["-@", "-@", "-@", "-@", "-@", "*"]);
    fixture.delete(&key).await.expect("deleted snapshots do not prevent it");
    assert_eq!(listed(&fixture, &key, true).await, ["-@", "-@", "-@", "-@", "-@", "-*"]);
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;

    fixture.undelete(&key).await.expect("restored");

    assert_eq!(listed(&fixture, &key, false).await, ["@", "@", "@", "@", "@", "*"]);
    assert_eq!(fixture.read(&key).await.expect("read"), "2");
    assert!(matches!(fixture.delete(&key).await, Err(BlobError::SnapshotsPresent)));
    let past = PastStates { snapshots: true, ..PastStates::default() };
    let request = ListBlobs { page_size: 1, past, ..ListBlobs::default() };
    let page = fixture.blobs.list(key.container, &request).await.expect("listed");
    let Some(ListedItem::Past(_, at, _)) = page.items.first() else { panic!("a snapshot") };
    assert_eq!(fixture.read_snapshot(&key, *at).await.expect("read"), sample(100_000));
}

#[tokio::test]
async fn a_write_over_a_deleted_blob_makes_a_snapshot_of_it() {
    let (fixture, key) = fixture().await;
    for data in ["one", "two"] {
        fixture.put(&key, data).await;
        fixture.delete(&key).await.expect("deleted");
    }
    fixture.keep(Retention::default());
    fixture.put(&key, "three").await;
    assert_eq!(listed(&fixture, &key, true).await, ["-@", "-@", "*"]);

    fixture.undelete(&key).await.expect("restored");

    assert_eq!(fixture.read(&key).await.expect("read"), "three");
    assert_eq!(listed(&fixture, &key, false).await, ["@", "@", "*"]);
}

#[tokio::test]
async fn deleted_snapshots_come_back_with_their_blob_or_alone() {
    let (fixture, key) = fixture().await;
    fixture.put(&key, sample(100_000)).await;
    let first = fixture.snapshot(&key).await.expect("a snapshot");
    let second = fixture.snapshot(&key).await.expect("a snapshot");
    fixture.delete_scope(&key, DeleteScope::Snapshot(first)).await.expect("deleted");
    assert!(fixture.read_snapshot(&key, first).await.is_err());
    let again = fixture.delete_scope(&key, DeleteScope::Snapshot(first)).await;
    assert!(matches!(again, Err(BlobError::BlobNotFound(_))));
    fixture.undelete(&key).await.expect("restored");
    assert_eq!(listed(&fixture, &key, false).await, ["@", "@", "*"]);

    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");
    assert_eq!(listed(&fixture, &key, false).await, [""; 0]);
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    fixture.undelete(&key).await.expect("restored");
    assert_eq!(fixture.read_snapshot(&key, first).await.expect("read"), sample(100_000));
    assert_eq!(fixture.read_snapshot(&key, second).await.expect("read"), sample(100_000));
    assert_eq!(fixture.objects().await, 1, "shared by all");
}

#[tokio::test]
async fn what_expires_leaves_nothing() {
    let (fixture, key) = fixture().await;
    let before = fixture.rows().await;
    for data in [sample(10), sample(100_000)] {
        fixture.put(&key, data).await;
        fixture.snapshot(&key).await.expect("a snapshot");
    }
    fixture.stage(&key, "A", "a").await.expect("staged");
    fixture.commit(&key, &["A"]).await.expect("committed");
    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");

    fixture.advance(WEEK - SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 2);
    fixture.advance(2 * SECOND);
    fixture.sweep().await;
    assert!(matches!(fixture.undelete(&key).await, Err(BlobError::BlobNotFound(_))));
    assert_eq!(fixture.objects().await, 2, "a read may be in progress");
    fixture.advance(ORPHAN_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!((fixture.objects().await, fixture.rows().await), (0, before));
}

#[tokio::test]
async fn a_state_that_is_restored_and_deleted_again_has_its_whole_time() {
    let (fixture, key) = fixture().await;
    fixture.put(&key, sample(100_000)).await;
    fixture.delete(&key).await.expect("deleted");
    fixture.advance(WEEK - SECOND);
    fixture.undelete(&key).await.expect("restored");
    fixture.delete(&key).await.expect("deleted");
    fixture.advance(WEEK - SECOND);
    fixture.sweep().await;

    fixture.undelete(&key).await.expect("restored");

    assert_eq!(fixture.read(&key).await.expect("read"), sample(100_000));
}

#[tokio::test]
async fn more_states_than_one_change_restores_all_come_back() {
    let (fixture, key) = fixture().await;
    let count = AT_ONCE.rows + 10;
    for number in 0..=count {
        fixture.put(&key, number.to_string()).await;
    }
    fixture.delete(&key).await.expect("deleted");

    fixture.undelete(&key).await.expect("restored");

    assert_eq!(listed(&fixture, &key, false).await.len(), count + 1);
    fixture.keep(Retention::default());
    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("all are counted");
    assert_eq!(listed(&fixture, &key, true).await, [""; 0]);
}

#[tokio::test]
async fn a_deleted_container_leaves_no_deleted_blobs() {
    let fixture = BlobFixture::new();
    let before = fixture.rows().await;
    fixture.keep(soft());
    let container = fixture.container("logs").await.id;
    let key = BlobKey { container, name: BlobName::stored("a".to_owned()) };
    for data in ["x".into(), sample(100_000)] {
        fixture.put(&key, data).await;
        fixture.put(&key, "y").await;
    }
    fixture.delete(&key).await.expect("deleted");
    fixture.drop_container("logs").await;

    fixture.advance(ORPHAN_GRACE + SECOND);
    fixture.sweep().await;
    fixture.advance(ORPHAN_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!((fixture.objects().await, fixture.rows().await), (0, before));
}

#[tokio::test]
async fn deleted_versions_come_back_without_a_blob_and_snapshots_with_one() {
    let (fixture, key) = fixture().await;
    let versions = Retention { versions: true, ..soft() };
    fixture.keep(versions);
    let first = fixture.put(&key, sample(100_000)).await;
    fixture.snapshot(&key).await.expect("a snapshot");
    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");
    let none = fixture.undelete(&key).await;
    assert!(matches!(none, Err(BlobError::BlobNotFound(_))), "{none:?}");
    let id = first.version.expect("a version");
    fixture.delete_scope(&key, DeleteScope::Version(id)).await.expect("deleted");
    let read = async || fixture.read_state((&key, StateName::Version(id)), None).await;
    assert!(read().await.is_err());

    fixture.undelete(&key).await.expect("the version is restored");
    assert_eq!(read().await.expect("read"), sample(100_000));
    assert!(matches!(fixture.read(&key).await, Err(BlobError::BlobNotFound(_))));
    fixture.put(&key, "new").await;
    fixture.undelete(&key).await.expect("the snapshot is restored");
    let delete = fixture.delete_scope(&key, DeleteScope::Blob).await;
    assert!(matches!(delete, Err(BlobError::SnapshotsPresent)), "{delete:?}");
}

#[tokio::test]
async fn a_delete_of_staged_blocks_leaves_the_deleted_blob() {
    let (fixture, key) = fixture().await;
    fixture.put(&key, sample(100_000)).await;
    fixture.delete(&key).await.expect("deleted");
    fixture.keep(Retention { versions: true, ..soft() });
    fixture.stage(&key, "A", "a").await.expect("staged");
    fixture.delete(&key).await.expect("the staged blocks are deleted");

    fixture.undelete(&key).await.expect("restored");
    assert_eq!(fixture.read(&key).await.expect("read"), sample(100_000));
}

#[tokio::test]
async fn a_blob_without_blocks_comes_back_without_staged_ones() {
    let (fixture, key) = fixture().await;
    fixture.create_pages(&key, 512).await.expect("created");
    fixture.delete(&key).await.expect("deleted");
    fixture.stage(&key, "A", sample(100_000)).await.expect("staged");
    assert_eq!(fixture.objects().await, 1);

    fixture.undelete(&key).await.expect("restored");
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0, "the staged block is reclaimed");
    assert_eq!(fixture.read(&key).await.expect("read"), vec![0; 512]);
}
