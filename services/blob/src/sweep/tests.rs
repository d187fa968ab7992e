use std::time::Duration;
use trestle_model::read_grace::READ_GRACE;

use trestle_kv::{ChangeSpec, CommitError, Reads, Version, Writes, transact};
use trestle_model::limits::STAGED_BLOCKS_KEPT;

use super::*;
use crate::{
    blobs::{BlobKey, DeleteScope, PutCommand},
    fixture::{BlobFixture, sample},
    objects::Objects,
    upload::{SmallContent, Upload},
};

/// Versions may be some ticks ahead of the time: no test is exact to the tick.
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn replaced_content_is_deleted_after_the_grace_period_and_not_before() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.put(&key, sample(100_000)).await;
    let second = sample(200_000);
    fixture.put(&key, second.clone()).await;

    fixture.advance(READ_GRACE - SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 2);
    fixture.advance(2 * SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 1);
    assert_eq!(fixture.read(&key).await.expect("read"), second);
}

#[tokio::test]
async fn a_deleted_blob_leaves_nothing() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let before = fixture.rows().await;
    fixture.put(&key, "small").await;
    fixture.put(&key, sample(100_000)).await;
    fixture.stage(&key, "A", "x").await.expect("staged");
    fixture.commit(&key, &["A"]).await.expect("committed");
    fixture.stage(&key, "B", "y").await.expect("staged");
    fixture.delete(&key).await.expect("deleted");

    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0);
    // The block of content ids remains until its own grace period ends.
    assert_eq!(fixture.rows().await, before + 1);
    fixture.advance(ORPHAN_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.rows().await, before);
}

#[tokio::test]
async fn a_deleted_container_leaves_nothing() {
    let fixture = BlobFixture::new();
    let id = fixture.container("logs").await.id;
    let key = |name: &str| {
        let name = crate::names::BlobName::stored(name.to_owned());
        BlobKey { container: id, name }
    };
    for number in 0..5 {
        fixture.put(&key(&format!("small{number}")), "x").await;
        fixture.put(&key(&format!("large{number}")), sample(50_000)).await;
    }
    fixture.stage(&key("blocks"), "A", "x").await.expect("staged");
    fixture.commit(&key("blocks"), &["A"]).await.expect("committed");
    fixture.stage(&key("staged"), "A", "x").await.expect("staged");
    fixture.drop_container("logs").await;
    assert_eq!(fixture.sweeper.pending().await.expect("read"), 1);

    fixture.advance(CONTAINER_GRACE - SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 7, "writes in flight may still end");
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!((fixture.objects().await, fixture.rows().await), (0, 1));
    assert_eq!(fixture.sweeper.pending().await.expect("read"), 0);
}

#[tokio::test]
async fn staged_blocks_that_are_never_committed_are_deleted_after_a_week() {
    let fixture = BlobFixture::new();
    let (old, fresh) = (fixture.key("old").await, fixture.key("fresh").await);
    fixture.stage(&old, "A", "x").await.expect("staged");
    fixture.stage(&fresh, "A", "x").await.expect("staged");
    fixture.advance(STAGED_BLOCKS_KEPT - SECOND);
    fixture.stage(&fresh, "B", "y").await.expect("staged");
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 3);

    fixture.advance(2 * SECOND);
    fixture.sweep().await;
    assert!(fixture.blobs.blocks(&old, None).await.is_err());
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 2);
    assert_eq!(fixture.commit(&fresh, &["A", "B"]).await.expect("committed").content.size(), 2);
}

#[tokio::test]
async fn objects_of_an_upload_that_was_never_published_are_deleted_after_a_day() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let kept = sample(100_000);
    fixture.put(&key, kept.clone()).await;
    // As after a crash between the objects and the commit: nothing deletes them at once.
    std::mem::forget(
        fixture.upload(sample(100_000), SmallContent::Inline).await.expect("written").written,
    );
    assert_eq!(fixture.objects().await, 2);

    fixture.advance(ORPHAN_GRACE - SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 2);
    fixture.advance(2 * SECOND);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 1);
    assert_eq!(fixture.read(&key).await.expect("read"), kept);
}

#[tokio::test]
async fn files_of_writes_that_a_crash_ended_are_deleted_after_a_day() {
    let folder = tempfile::tempdir().expect("a directory");
    let fixture = BlobFixture::on(Objects::in_directory(folder.path()).expect("usable"));
    let key = fixture.key("a").await;
    let kept = sample(100_000);
    fixture.put(&key, kept.clone()).await;
    let files = || -> Vec<_> {
        let entries = std::fs::read_dir(folder.path()).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    };
    let whole = files();
    std::mem::forget(
        fixture.upload(sample(100_000), SmallContent::Inline).await.expect("written").written,
    );
    // As the object store names a file while it writes it.
    for file in files().iter().filter(|file| !whole.contains(file)) {
        std::fs::rename(file, format!("{}#1", file.display())).expect("renamed");
    }
    assert_eq!((files().len(), fixture.objects().await), (2, 1), "it is not listed");

    fixture.advance(ORPHAN_GRACE - SECOND);
    fixture.sweep().await;
    assert_eq!(files().len(), 2);
    fixture.advance(2 * SECOND);
    fixture.sweep().await;
    assert_eq!(files(), whole);
    assert_eq!(fixture.read(&key).await.expect("read"), kept);
}

#[tokio::test]
async fn an_upload_that_is_dropped_deletes_its_objects_at_once() {
    let fixture = BlobFixture::new();
    let mut upload = Upload::new(&fixture.blobs, SmallContent::Inline, false);
    let extent = usize::try_from(crate::extent::EXTENT_BYTES).expect("small");
    upload.push(sample(2 * extent)).await.expect("written");
    assert_eq!(fixture.objects().await, 2);

    drop(upload);

    wait_for_objects(&fixture, 0).await;
}

#[tokio::test]
async fn an_upload_that_is_not_published_deletes_its_objects_unless_it_may_have_been() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let if_match = vec![crate::etag::ETagPattern::Any];
    let conditions = crate::conditions::Conditions { if_match, ..Default::default() };
    let command = PutCommand { conditions, ..PutCommand::default() };

    fixture.put_with(&key, sample(100_000), command).await.expect_err("the blob is absent");
    wait_for_objects(&fixture, 0).await;

    let written =
        fixture.upload(sample(100_000), SmallContent::Inline).await.expect("written").written;
    let lost = CommitError::Unknown { reason: "the connection broke".into() };
    let published = written.publish(async |_| Err::<(), _>(BlobError::Commit(lost))).await;
    published.expect_err("it is not recorded");
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert_eq!(fixture.objects().await, 1);
    }
}

async fn wait_for_objects(fixture: &BlobFixture, count: usize) {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
        if fixture.objects().await == count {
            return;
        }
    }
    panic!("there are still objects");
}

#[tokio::test]
async fn content_that_cannot_be_reclaimed_does_not_block_the_rest() {
    let fixture = BlobFixture::new();
    let (bad, good) = (fixture.key("bad").await, fixture.key("good").await);
    for key in [&bad, &good] {
        fixture.put(key, sample(100_000)).await;
        fixture.delete(key).await.expect("deleted");
    }
    let row = BlobRow::Retired;
    let span = crate::keys::named(row, bad.container, "");
    let retired = fixture.blobs.engine.scan(&span, STEP).await.expect("read").entries;
    let damaged = retired.first().expect("it is retired").key.clone();
    let spec = ChangeSpec::new(bad.domain());
    let damage = move |_: &Reads<'_>, _: Version| {
        let mut writes = Writes::new();
        writes.put(damaged.clone(), "damaged");
        Ok::<_, BlobError>((writes, ()))
    };
    transact(&*fixture.blobs.engine, spec, damage).await.expect("stored").expect("decided");

    fixture.advance(READ_GRACE + SECOND);
    let swept = fixture.sweeper.tick().await;

    assert!(matches!(swept, Err(BlobError::Corrupt(_))));
    assert_eq!(fixture.objects().await, 1, "that of the damaged row remains");
}

#[tokio::test]
async fn the_rows_of_objects_remain_until_the_deletes_of_their_files_are_durable() {
    let folder = tempfile::tempdir().expect("a directory");
    let (directory, away) = (folder.path().join("blob"), folder.path().join("away"));
    let fixture = BlobFixture::on(Objects::in_directory(&directory).expect("usable"));
    let key = fixture.key("a").await;
    fixture.put(&key, sample(100_000)).await;
    fixture.delete(&key).await.expect("deleted");
    fixture.advance(READ_GRACE + SECOND);
    // No file is found, and the directory cannot be synced.
    std::fs::rename(&directory, &away).expect("renamed");

    let swept = fixture.sweeper.tick().await;

    assert!(matches!(swept, Err(BlobError::Objects)), "{swept:?}");
    std::fs::rename(&away, &directory).expect("renamed");
    assert_eq!(fixture.objects().await, 1);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0, "its rows are still there");
}

#[tokio::test]
async fn objects_that_a_backup_reads_are_deleted_after_it() {
    let fixture = BlobFixture::new();
    let key = fixture.key("replaced").await;
    fixture.put(&key, sample(100_000)).await;
    fixture.put(&key, "small").await;
    let key = fixture.key("snapshots").await;
    fixture.put(&key, sample(100_000)).await;
    fixture.snapshot(&key).await.expect("a snapshot");
    fixture.put(&key, "small").await;
    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");
    let dropped = fixture.container("dropped").await.id;
    let name = crate::names::BlobName::stored("a".to_owned());
    fixture.put(&BlobKey { container: dropped, name }, sample(100_000)).await;
    fixture.drop_container("dropped").await;
    std::mem::forget(
        fixture.upload(sample(100_000), SmallContent::Inline).await.expect("written").written,
    );
    assert_eq!(fixture.objects().await, 4);

    let hold = fixture.blobs.objects.hold();
    hold.set(true);
    fixture.advance(ORPHAN_GRACE + READ_GRACE);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 4);
    assert!(!fixture.sweeper.tick().await.expect("swept"), "nothing more to do at once");
    assert!(hold.is_effective());

    hold.set(false);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0);
}

#[tokio::test]
async fn a_scan_of_pieces_that_a_backup_reads_begins_again_after_it() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.create_append(&key, PutCommand::default()).await.expect("created");
    fixture.append(&key, sample(1024 * 1024)).await.expect("appended");
    fixture.snapshot(&key).await.expect("a snapshot");
    fixture.delete_scope(&key, DeleteScope::WithSnapshots).await.expect("deleted");
    assert_eq!(fixture.objects().await, 1);
    fixture.advance(READ_GRACE + SECOND);
    fixture.sweeper.sweep_retired(BlobRow::SharedRetired).await.expect("begun");
    assert!(fixture.sweeper.with(|positions| !positions.epochs.is_empty()));

    let hold = fixture.blobs.objects.hold();
    hold.set(true);
    assert!(!fixture.sweeper.sweep_epochs().await.expect("ended"));
    assert_eq!(fixture.objects().await, 1);

    hold.set(false);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0);
}
