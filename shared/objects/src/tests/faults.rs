//! The object store that fails as planned, areas with their prefixes, and what is written where.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{
    ObjectStore, ObjectStoreExt as _, PutPayload, memory::InMemory, path::Path as ObjectPath,
};

use super::*;
use crate::faulty::{FaultyObjects, ObjectFault};

fn planned(faults: &[ObjectFault]) -> FaultyObjects {
    let store = FaultyObjects::default();
    store.plan(faults.iter().copied());
    store
}

async fn put(store: &FaultyObjects, path: &str) -> object_store::Result<()> {
    store.put(&ObjectPath::from(path), "text".into()).await.map(drop)
}

async fn exists(store: &dyn ObjectStore, path: &str) -> bool {
    store.head(&ObjectPath::from(path)).await.is_ok()
}

#[tokio::test]
async fn faults_are_in_their_order_and_calls_after_them_succeed() {
    let store = planned(&[ObjectFault::None, ObjectFault::Failed, ObjectFault::Unacknowledged]);

    assert!(put(&store, "1").await.is_ok() && exists(&store, "1").await);
    assert!(put(&store, "2").await.is_err() && !exists(&store, "2").await);
    assert!(put(&store, "3").await.is_err() && exists(&store, "3").await, "done and not reported");
    assert!(put(&store, "4").await.is_ok() && exists(&store, "4").await);

    store.plan([ObjectFault::Failed, ObjectFault::Failed]);
    store.plan([]);
    assert!(put(&store, "5").await.is_ok(), "a new plan replaces the one before");
}

#[tokio::test]
async fn a_full_disk_is_reported_with_its_cause() {
    let store = Arc::new(planned(&[ObjectFault::Full]));
    let area = ObjectArea::of(Arc::clone(&store) as _);

    let error = area.put("a/1", "text".into()).await.err().expect("a full disk");

    let WriteObjectError::Store(object_store::Error::Generic { source, .. }) = error else {
        panic!("{error}");
    };
    let cause = source.downcast_ref::<io::Error>().map(io::Error::kind);
    assert_eq!(cause, Some(io::ErrorKind::StorageFull));
    assert!(!exists(&*store, "a/1").await);
    area.put("a/1", "text".into()).await.unwrap();
    assert!(exists(&*store, "a/1").await);
}

#[tokio::test]
async fn a_damaged_read_differs_from_what_was_written() {
    let store = FaultyObjects::default();
    for text in ["even\u{2}", "odd\u{3}"] {
        store.put(&ObjectPath::from("1"), text.to_owned().into()).await.unwrap();
        store.plan([ObjectFault::Damaged]);
        let range = 0..text.len() as u64;
        let read = store.get_ranges(&ObjectPath::from("1"), std::slice::from_ref(&range)).await;
        assert_ne!(read.unwrap(), [Bytes::from(text)], "{text}");
        let read = store.get_ranges(&ObjectPath::from("1"), &[range]).await;
        assert_eq!(read.unwrap(), [Bytes::from(text)], "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_succeeds_after_a_minute() {
    let store = planned(&[ObjectFault::Slow]);
    let began = tokio::time::Instant::now();
    put(&store, "1").await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 60);
    assert!(exists(&store, "1").await);
}

#[tokio::test]
async fn a_failed_delete_keeps_the_object() {
    let store = FaultyObjects::default();
    put(&store, "1").await.unwrap();
    store.plan([ObjectFault::Failed]);
    assert!(store.delete(&ObjectPath::from("1")).await.is_err());
    assert!(exists(&store, "1").await);
    store.delete(&ObjectPath::from("1")).await.unwrap();
    assert!(!exists(&store, "1").await);
}

#[tokio::test]
async fn the_areas_of_a_data_directory_do_not_share_names() {
    let data = tempfile::tempdir().unwrap();
    let in_files = ObjectStorage::open(data.path(), None, None).await.unwrap();
    for storage in [in_files, ObjectStorage::in_memory()] {
        storage.blobs.put("a/1", "of blobs".into()).await.unwrap();
        storage.logs.put("a/1", "of logs".into()).await.unwrap();
        for (area, text) in [(&storage.blobs, "of blobs"), (&storage.logs, "of logs")] {
            let found = area.store.get(&ObjectPath::from("a/1")).await.unwrap();
            assert_eq!(found.bytes().await.unwrap(), text, "{}", area.name);
            let listed: Vec<_> = area.store.list(None).try_collect().await.unwrap();
            assert_eq!(listed.len(), 1, "{}", area.name);
        }
    }
    assert!(data.path().join("blob/a/1").is_file() && data.path().join("log/a/1").is_file());
}

#[tokio::test]
async fn the_prefix_of_logs_at_a_url_is_apart_from_blobs() {
    let shared: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let logs = PrefixStore::new(Arc::clone(&shared), LOGS);
    let logs = ObjectArea::remote(Arc::new(logs), "s3", format!("s3://bucket/{LOGS}"));

    logs.put("acme/stream=web/1.parquet", "text".into()).await.unwrap();

    assert!(exists(&*shared, "log/acme/stream=web/1.parquet").await);
    assert!(exists(&*logs.store, "acme/stream=web/1.parquet").await);
    assert_eq!(logs.url_of("acme/1.parquet"), "s3://bucket/log/acme/1.parquet");
}

#[tokio::test]
async fn an_object_cannot_be_written_outside_of_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let area = ObjectArea::in_directory(&folder.path().join("log"), None).unwrap();
    // A file is where a directory would be.
    fs::write(folder.path().join("log/a"), "file").unwrap();

    let error = area.put("a/1", "text".into()).await.err().expect("no directory");

    assert!(
        matches!(error, WriteObjectError::Directory(_) | WriteObjectError::Store(_)),
        "{error}"
    );
    assert_eq!(fs::read_to_string(folder.path().join("log/a")).unwrap(), "file");
    area.put("b/1", PutPayload::from_static(b"text")).await.unwrap();
}

#[tokio::test]
async fn logs_alone_prevent_a_data_directory_from_moving_to_a_url() {
    let data = tempfile::tempdir().unwrap();
    let storage = ObjectStorage::open(data.path(), None, None).await.unwrap();
    storage.logs.put("1", "text".into()).await.unwrap();
    let url: ObjectsUrl = "s3://bucket".parse().unwrap();

    let opened = ObjectStorage::open(data.path(), Some(&url), None).await.map(drop);

    let Err(OpenObjectsError::Elsewhere { found }) = opened else { panic!("{opened:?}") };
    assert!(found.ends_with("/log"), "{found}");
    assert_eq!(StoreBinding::in_directory(data.path()).unwrap(), None, "nothing was recorded");
}

#[tokio::test]
async fn a_claim_whose_acknowledgement_was_lost_is_ours() {
    let data = tempfile::tempdir().unwrap();
    let (record, url) = (BindingFile(data.path().to_owned()), "s3://bucket".parse().unwrap());
    let store = planned(&[ObjectFault::Unacknowledged]);

    let unknown = StoreBinding::claim(&record, &url, &store).await;
    assert!(matches!(unknown, Err(OpenObjectsError::Store(_))), "{unknown:?}");

    let claimed = StoreBinding::claim(&record, &url, &store).await.unwrap();
    assert_eq!((claimed.claim.start, claimed.is_conditional), (2, true));
}

#[test]
fn a_binding_with_other_lines_than_its_own_is_malformed() {
    let data = tempfile::tempdir().unwrap();
    assert_eq!(StoreBinding::in_directory(data.path()).unwrap(), None);
    for text in [
        "",
        "\n",
        "s3://bucket",
        "s3://bucket\nowner\nmore\n",
        "s3://b\no\n1\n",
        "s3://b\no\n-1 n\n",
        "s3://b\no\n1 n\n\n",
    ] {
        fs::write(data.path().join("blob-store"), text).unwrap();
        let read = StoreBinding::in_directory(data.path());
        assert_eq!(read.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData), "{text:?}");
    }
    fs::write(data.path().join("blob-store"), b"\xff\n\xff\n").unwrap();
    assert!(StoreBinding::in_directory(data.path()).is_err());
}
