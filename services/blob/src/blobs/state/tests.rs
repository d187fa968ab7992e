use std::time::Duration;
use trestle_model::read_grace::READ_GRACE;

use trestle_model::time::Ticks;

use super::*;
use crate::{
    blobs::{BlobChange, DeleteScope, ListBlobs, ListedItem, PastStates, PutCommand},
    conditions::Conditions,
    fixture::{BlobFixture, sample},
    record::{ContentProperties, Retention},
    sweep::ORPHAN_GRACE,
};

const VERSIONS: Retention =
    Retention { deleted_for: None, versions: true, containers_deleted_for: None };

async fn fixture() -> (BlobFixture, BlobKey) {
    let fixture = BlobFixture::new();
    fixture.keep(VERSIONS);
    let key = fixture.key("a").await;
    (fixture, key)
}

fn id(record: &BlobRecord) -> Ticks {
    record.version.expect("it has a version id")
}

async fn read(fixture: &BlobFixture, key: &BlobKey, id: Ticks) -> Result<Bytes, BlobError> {
    fixture.read_state((key, StateName::Version(id)), None).await
}

/// The version ids of a listing, with 0 for a snapshot, and whether each is the blob itself.
async fn listed(fixture: &BlobFixture, key: &BlobKey, past: PastStates) -> Vec<(u64, bool)> {
    let request = ListBlobs { page_size: 1000, past, ..ListBlobs::default() };
    let page = fixture.blobs.list(key.container, &request).await.expect("listed");
    let number = |record: &BlobRecord| record.version.map_or(0, Ticks::get);
    let item = |item: ListedItem| match item {
        ListedItem::Blob(_, Some(record)) => (number(&record), true),
        ListedItem::Past(_, _, record) => (number(&record), false),
        other => panic!("{other:?}"),
    };
    page.items.into_iter().map(item).collect()
}

const ALL: PastStates = PastStates { snapshots: true, deleted: false, versions: true };

#[tokio::test]
async fn each_write_of_content_or_metadata_makes_a_version_that_remains_readable() {
    let (fixture, key) = fixture().await;
    let mut written = Vec::new();
    for data in [sample(10), sample(100_000), sample(20)] {
        written.push((id(&fixture.put(&key, data.clone()).await), data));
    }
    fixture.stage(&key, "A", "blocks").await.expect("staged");
    written.push((id(&fixture.commit(&key, &["A"]).await.expect("committed")), "blocks".into()));
    written.push((id(&fixture.set_metadata(&key, "1").await.expect("changed")), "blocks".into()));
    fixture.advance(READ_GRACE + ORPHAN_GRACE);
    fixture.sweep().await;

    for (id, data) in &written {
        assert_eq!(read(&fixture, &key, *id).await.expect("read"), data);
    }
    let mut expected: Vec<_> = written.iter().map(|(id, _)| (id.get(), false)).collect();
    expected.last_mut().expect("there are some").1 = true;
    assert_eq!(listed(&fixture, &key, ALL).await, expected);
    let none = read(&fixture, &key, written[0].0.next()).await;
    assert!(matches!(none, Err(BlobError::BlobNotFound(_))));
}

#[tokio::test]
async fn properties_appends_and_pages_belong_to_the_version_that_they_change() {
    let (fixture, key) = fixture().await;
    let first = fixture.create_append(&key, PutCommand::default()).await.expect("created");
    fixture.append(&key, "one ").await.expect("appended");
    let properties = Some(ContentProperties::default());
    let change = BlobChange::Update { properties, metadata: None, versions: true };
    let required = (Conditions::default(), None);
    let changed = fixture.blobs.change(key.clone(), change, required).await.expect("changed");
    assert_eq!(changed.record.version, first.version);
    let second = fixture.set_metadata(&key, "1").await.expect("changed");
    fixture.append(&key, "two").await.expect("appended");

    assert_eq!(read(&fixture, &key, id(&first)).await.expect("read"), "one ");
    assert_eq!(read(&fixture, &key, id(&second)).await.expect("read"), "one two");

    let pages = fixture.key("b").await;
    let first = fixture.create_pages(&pages, 1024).await.expect("created");
    fixture.write_pages(&pages, 0, sample(512)).await.expect("written");
    fixture.snapshot(&pages).await.expect("a snapshot");
    fixture.write_pages(&pages, 512, sample(512)).await.expect("written");
    let second = fixture.set_metadata(&pages, "1").await.expect("changed");
    fixture.clear_pages(&pages, 0..1024).await.expect("cleared");
    let both = [sample(512), sample(512)].concat();
    assert_eq!(read(&fixture, &pages, id(&first)).await.expect("read"), both);
    assert_eq!(read(&fixture, &pages, id(&second)).await.expect("read"), vec![0; 1024]);
}

#[tokio::test]
async fn a_deleted_blob_is_a_previous_version_and_a_copy_restores_it() {
    let (fixture, key) = fixture().await;
    let put = id(&fixture.put(&key, sample(100_000)).await);
    fixture.delete(&key).await.expect("deleted");
    assert!(matches!(fixture.read(&key).await, Err(BlobError::BlobNotFound(_))));
    assert_eq!(listed(&fixture, &key, ALL).await, [(put.get(), false)]);

    fixture.copy((&key, StateName::Version(put)), &key).await.expect("restored");

    assert_eq!(fixture.read(&key).await.expect("read"), sample(100_000));
    assert_eq!(listed(&fixture, &key, ALL).await.len(), 2);
}

#[tokio::test]
async fn a_previous_version_is_deleted_by_its_id_and_the_blob_is_not() {
    let (fixture, key) = fixture().await;
    let first = id(&fixture.put(&key, sample(100_000)).await);
    let second = id(&fixture.put(&key, sample(200_000)).await);
    let delete = |id| fixture.delete_scope(&key, DeleteScope::Version(id));

    assert!(matches!(delete(second).await, Err(BlobError::CurrentVersion)));
    assert!(matches!(delete(second.next()).await, Err(BlobError::BlobNotFound(_))));
    delete(first).await.expect("deleted");
    assert!(matches!(delete(first).await, Err(BlobError::BlobNotFound(_))));
    assert!(matches!(read(&fixture, &key, first).await, Err(BlobError::BlobNotFound(_))));
    fixture.advance(READ_GRACE + Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 1);
    assert_eq!(fixture.read(&key).await.expect("read"), sample(200_000));
}

#[tokio::test]
async fn snapshots_are_no_versions_and_are_counted_alone() {
    let (fixture, key) = fixture().await;
    let first = fixture.put(&key, "one").await;
    let at = fixture.snapshot(&key).await.expect("a snapshot");
    fixture.put(&key, "two").await;

    assert_eq!(fixture.read_snapshot(&key, at).await.expect("read"), "one");
    let by_time = fixture.read_snapshot(&key, first.etag.0).await;
    assert!(matches!(by_time, Err(BlobError::BlobNotFound(_))), "a version is not a snapshot");
    assert!(matches!(fixture.delete(&key).await, Err(BlobError::SnapshotsPresent)));
    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");
    let left = listed(&fixture, &key, ALL).await;
    assert!(left.iter().all(|(id, _)| *id > 0) && left.len() == 2, "{left:?}");
    assert_eq!(read(&fixture, &key, id(&first)).await.expect("read"), "one");
}

#[tokio::test]
async fn a_blob_from_before_becomes_a_version_and_none_is_made_once_they_are_off() {
    let (fixture, key) = fixture().await;
    fixture.keep(Retention::default());
    let before = fixture.put(&key, "before").await;
    assert_eq!(before.version, None);
    fixture.keep(VERSIONS);
    let first = fixture.put(&key, "first").await;
    assert_eq!(read(&fixture, &key, before.etag.0).await.expect("read"), "before");

    fixture.keep(Retention::default());
    assert_eq!(fixture.put(&key, "second").await.version, None);

    assert!(matches!(read(&fixture, &key, id(&first)).await, Err(BlobError::BlobNotFound(_))));
    assert_eq!(read(&fixture, &key, before.etag.0).await.expect("it remains"), "before");
}
