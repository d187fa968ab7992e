use std::time::Duration;

use futures::TryStreamExt as _;
use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use super::*;
use crate::{
    fixture::{BlobFixture, sample},
    names::BlobName,
    objects::Objects,
    record::Retention,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What was read: name, whether it is a past state, whether it is deleted, whether it is staged blocks, and bytes or
/// the error.
type Found = (String, bool, bool, bool, Result<u64, String>);

async fn verify(fixture: &BlobFixture, key: &BlobKey, behind: Option<&[u8]>) -> Vec<Found> {
    let stream = fixture.blobs.verify((key.container, ""), behind, 1);
    let found: Vec<_> = stream.try_collect().await.expect("it goes on");
    let found = found.into_iter().map(|it| {
        let is_past = matches!(it.state, Some((BlobState::Past(_), _)));
        let is_deleted = it.state.as_ref().is_some_and(|(_, record)| record.deletion.is_some());
        let read = it.error.map_or(Ok(it.bytes), |error| Err(error.to_string()));
        (it.blob.name.to_string(), is_past, is_deleted, it.state.is_none(), read)
    });
    found.collect()
}

/// A container with content in every kind of state.
async fn filled(fixture: &BlobFixture) -> BlobKey {
    let a = fixture.key("a").await;
    let named = |name: &str| BlobKey { name: BlobName::stored(name.to_owned()), ..a.clone() };
    fixture.put(&a, sample(100_000)).await;
    fixture.snapshot(&a).await.expect("a snapshot");
    fixture.keep(Retention { deleted_for: Some(DAY), ..Retention::default() });
    for (name, length) in [("large", 200_000), ("small", 10)] {
        fixture.put(&named(name), sample(length)).await;
        fixture.delete(&named(name)).await.expect("deleted");
    }
    fixture.put(&a, sample(300_000)).await;
    fixture.create_pages(&named("pages"), 1 << 20).await.expect("created");
    fixture.write_pages(&named("pages"), 0, sample(4096)).await.expect("written");
    fixture.delete(&named("pages")).await.expect("deleted");
    fixture.stage(&named("staged"), "A", sample(50_000)).await.expect("staged");
    fixture.stage(&named("staged"), "B", sample(60_000)).await.expect("staged");
    a
}

fn all() -> Vec<Found> {
    let found = |name: &str, past, deleted, staged, bytes| {
        (name.to_owned(), past, deleted, staged, Ok(bytes))
    };
    vec![
        found("a", false, false, false, 300_000),
        found("large", false, true, false, 200_000),
        found("pages", false, true, false, 1 << 20),
        found("small", false, true, false, 10),
        found("staged", false, false, true, 110_000),
        // What was overwritten, and the snapshot.
        found("a", true, true, false, 100_000),
        found("a", true, false, false, 100_000),
    ]
}

#[tokio::test]
async fn every_state_and_every_staged_block_is_read() {
    let fixture = BlobFixture::new();
    let key = filled(&fixture).await;

    assert_eq!(verify(&fixture, &key, None).await, all());

    let stream = fixture.blobs.verify((key.container, ""), None, 1);
    let rows: Vec<_> = stream.map_ok(|it| it.row).try_collect().await.expect("read");
    for (index, row) in rows.iter().enumerate() {
        let rest = verify(&fixture, &key, Some(row)).await;
        assert_eq!(rest, all()[index + 1..], "it continues behind a row");
    }
    let stream = fixture.blobs.verify((key.container, "s"), None, 8);
    let names: Vec<_> =
        stream.map_ok(|it| it.blob.name.to_string()).try_collect().await.expect("read");
    assert_eq!(names, ["small", "staged"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_the_rest_is_read() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = BlobFixture::on(Objects::of(Arc::clone(&store) as _));
    let key = filled(&fixture).await;

    // Those of the blob and of what was overwritten; between them are a deleted one and two staged ones.
    let none = ObjectFault::None;
    store.plan([ObjectFault::Failed, none, none, none, ObjectFault::Damaged]);
    let found = verify(&fixture, &key, None).await;

    let failed: Vec<_> =
        found.iter().filter(|it| it.4.is_err()).map(|it| (it.0.as_str(), it.1)).collect();
    assert_eq!(failed, [("a", false), ("a", true)], "{found:?}");
    assert_eq!(found.len(), all().len());
    assert_eq!(verify(&fixture, &key, None).await, all());
}

#[tokio::test]
async fn an_absent_object_of_a_deleted_blob_is_damage() {
    let fixture = BlobFixture::new();
    let key = filled(&fixture).await;
    let objects: Vec<_> = fixture.blobs.objects.list().try_collect().await.expect("listed");

    fixture.blobs.objects.delete_each(objects.into_iter()).await.expect("deleted");

    let found = verify(&fixture, &key, None).await;
    let failed = |it: &&Found| it.4.as_ref().is_err_and(|error| error.contains("is missing"));
    assert_eq!(found.iter().filter(failed).count(), 5, "{found:?}");
}
