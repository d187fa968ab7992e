use trestle_rpc::quota::{StorageMax, StorageQuotas};

use super::*;
use crate::{
    blobs::DeleteScope,
    fixture::{BlobFixture, account},
    names::BlobName,
    record::Retention,
};

/// Larger than what is stored in rows.
const LARGE: usize = 1024 * 1024;
/// Most bytes of the rows of one blob.
const ROWS_MAX: u64 = 4096;

/// The containers of a fixture where every account has quotas.
fn measured(fixture: &BlobFixture) -> Containers {
    let quotas = StorageQuotas::without_metrics(StorageMax::new(|_| 1 << 40));
    fixture.containers.clone().with_quotas(quotas)
}

async fn usage(containers: &Containers) -> MeasuredUsage {
    let usage = containers.usage().await.expect("measured");
    usage.get(&account()).copied().unwrap_or_default()
}

async fn bytes(containers: &Containers) -> u64 {
    usage(containers).await.of(StorageLimit::StoredBytes)
}

/// Checks that usage grew by this many bytes of contents, beside those of rows.
fn check_grown(before: u64, now: u64, contents: usize) {
    let expected = before + contents as u64;
    assert!(now.abs_diff(expected) < ROWS_MAX, "{now} bytes, not {expected}");
}

fn key(container: ContainerId, name: &str) -> BlobKey {
    BlobKey { container, name: BlobName::stored(name.to_owned()) }
}

#[tokio::test]
async fn contents_in_rows_and_in_objects_count_once_however_they_are_written() {
    let fixture = BlobFixture::new();
    let containers = measured(&fixture);
    let container = fixture.container("logs").await.id;
    let empty = bytes(&containers).await;
    check_grown(0, empty, 0);

    fixture.put(&key(container, "small"), vec![1; 1000]).await;
    let small = bytes(&containers).await;
    check_grown(empty, small, 1000);
    fixture.put(&key(container, "large"), vec![2; LARGE]).await;
    let large = bytes(&containers).await;
    check_grown(small, large, LARGE);
    let blocks = key(container, "blocks");
    fixture.stage(&blocks, "a", vec![3; LARGE]).await.expect("staged");
    let staged = bytes(&containers).await;
    check_grown(large, staged, LARGE);
    fixture.commit(&blocks, &["a"]).await.expect("committed");
    let committed = bytes(&containers).await;
    assert!(committed.abs_diff(staged) < ROWS_MAX, "{staged} {committed}");
    let append = key(container, "append");
    fixture.create_append(&append, Default::default()).await.expect("created");
    fixture.append(&append, vec![4; 5000]).await.expect("appended");
    let appended = bytes(&containers).await;
    check_grown(committed, appended, 5000);
    let pages = key(container, "pages");
    fixture.create_pages(&pages, 1 << 40).await.expect("created");
    fixture.write_pages(&pages, 0, vec![5; 8192]).await.expect("written");
    check_grown(appended, bytes(&containers).await, 8192);

    let all = usage(&containers).await;
    assert_eq!((all.of(StorageLimit::Containers), all.of(StorageLimit::Blobs)), (1, 5));
}

#[tokio::test]
async fn a_snapshot_has_the_bytes_that_the_blob_no_longer_shares() {
    let fixture = BlobFixture::new();
    let containers = measured(&fixture);
    let container = fixture.container("logs").await.id;
    let blob = key(container, "a");
    fixture.put(&blob, vec![1; LARGE]).await;
    let alone = bytes(&containers).await;

    for _ in 0..2 {
        fixture.snapshot(&blob).await.expect("a snapshot");
    }
    let shared = bytes(&containers).await;
    fixture.put(&blob, vec![2; 2 * LARGE]).await;
    let replaced = bytes(&containers).await;
    fixture.delete_scope(&blob, DeleteScope::SnapshotsOnly).await.expect("deleted");

    check_grown(alone, shared, 0);
    check_grown(shared, replaced, 2 * LARGE);
    let left = bytes(&containers).await;
    assert!(replaced - left >= LARGE as u64, "{replaced} {left}");
    assert_eq!(usage(&containers).await.of(StorageLimit::Blobs), 1);
}

#[tokio::test]
async fn what_is_deleted_counts_as_long_as_it_can_be_restored() {
    let fixture = BlobFixture::new();
    let containers = measured(&fixture);
    let container = fixture.container("logs").await.id;
    let (restorable, deleted_blob) = (key(container, "a"), key(container, "b"));
    fixture.put(&deleted_blob, vec![1; LARGE]).await;
    fixture.delete(&deleted_blob).await.expect("deleted");
    let deleted = bytes(&containers).await;
    check_grown(0, deleted, 0);

    let deleted_for = Some(std::time::Duration::from_secs(60));
    let retention = Retention { deleted_for, ..Retention::default() };
    fixture.keep(retention);
    fixture.put(&restorable, vec![2; LARGE]).await;
    fixture.delete(&restorable).await.expect("deleted");

    check_grown(deleted, bytes(&containers).await, LARGE);
    assert_eq!(usage(&containers).await.of(StorageLimit::Blobs), 0);
    fixture.drop_container("logs").await;
    assert_eq!(bytes(&containers).await, 0);
}
