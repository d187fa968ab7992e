//! Copies of a data directory on the objects of the original.

use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt as _, memory::InMemory, path::Path as ObjectPath};

use super::*;
use crate::{
    faulty::{FaultyObjects, ObjectFault},
    owner::OwnerClaim,
};

const URL: &str = "s3://bucket/prod";

/// A data directory whose objects are in a store.
struct DataDirectory(tempfile::TempDir);

impl DataDirectory {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let text = StoreBinding::new(&URL.parse().unwrap()).to_string();
        fs::write(directory.path().join("blob-store"), text).unwrap();
        Self(directory)
    }

    /// A copy of it, as a backup that is restored.
    fn copied(&self) -> Self {
        let copy = tempfile::tempdir().unwrap();
        fs::copy(self.0.path().join("blob-store"), copy.path().join("blob-store")).unwrap();
        Self(copy)
    }

    async fn start(&self, store: &Arc<InMemory>) -> Result<ObjectStorage, OpenObjectsError> {
        let (record, url) = (BindingFile(self.0.path().to_owned()), URL.parse().unwrap());
        let store: Arc<dyn ObjectStore> = Arc::clone(store) as _;
        let claimed = StoreBinding::claim(&record, &url, &*store).await?;
        Ok(ObjectStorage::owned(store, &url, claimed, None))
    }
}

fn lost(storage: &ObjectStorage) -> Option<String> {
    storage.owner.as_ref().unwrap().lost().map(str::to_owned)
}

async fn check(storage: &ObjectStorage) -> Option<String> {
    storage.owner.as_ref().unwrap().check().await.unwrap();
    lost(storage)
}

#[tokio::test]
async fn each_start_has_a_number_of_its_own() {
    let (data, store) = (DataDirectory::new(), Arc::new(InMemory::new()));
    for number in 1..4 {
        let storage = data.start(&store).await.unwrap();
        assert_eq!((storage.blobs.start, storage.logs.start), (number, number));
        assert_eq!(check(&storage).await, None);
    }
}

#[tokio::test]
async fn directory_of_an_earlier_version_goes_on_with_its_store() {
    let (data, store) = (DataDirectory::new(), Arc::new(InMemory::new()));
    fs::write(data.0.path().join("blob-store"), format!("{URL}\nowner-of-before\n")).unwrap();
    store.put(&ObjectPath::from("trestle-owner"), "owner-of-before".into()).await.unwrap();

    assert_eq!(data.start(&store).await.unwrap().blobs.start, 1);

    let (found, _) = OwnerClaim::read(&*store).await.unwrap().unwrap();
    assert_eq!((found.owner.as_str(), found.start), ("owner-of-before", 1));
}

#[tokio::test]
async fn server_stops_once_a_copy_of_its_directory_uses_its_objects() {
    let (data, store) = (DataDirectory::new(), Arc::new(InMemory::new()));
    let original = data.start(&store).await.unwrap();
    original.blobs.put("1", "of the original".into()).await.unwrap();
    let copy = data.copied().start(&store).await.unwrap();
    assert_ne!(copy.blobs.start, original.blobs.start);

    let reason = check(&original).await.expect("it stops");

    assert!(reason.contains("start=`2`, of this process=`1`"), "{reason}");
    assert_eq!(check(&copy).await, None);
    assert!(original.blobs.put("2", "late".into()).await.is_err());
    assert!(original.blobs.delete("1").await.is_err());
    assert!(original.logs.put("3", "late".into()).await.is_err());
    let names = ["1", "2", "log/3"].map(ObjectPath::from);
    for (name, exists) in names.iter().zip([true, false, false]) {
        assert_eq!(store.head(name).await.is_ok(), exists, "{name}");
    }
    // And it does not start again.
    let started = data.start(&store).await.map(drop);
    let Err(error @ OpenObjectsError::Copied { there: 2, here: 1, .. }) = started else {
        panic!("{started:?}");
    };
    assert!(error.to_string().contains("give the copy a path of its own"), "{error}");
}

#[tokio::test]
async fn older_server_deletes_nothing_that_a_later_start_may_have() {
    let (data, store) = (DataDirectory::new(), Arc::new(InMemory::new()));
    let original = data.start(&store).await.unwrap();
    original.blobs.put("1", "of both".into()).await.unwrap();
    let _copy = data.copied().start(&store).await.unwrap();
    assert_eq!(lost(&original), None, "it did not look yet");

    assert!(original.blobs.delete("1").await.is_err());

    assert!(lost(&original).is_some());
    assert!(store.head(&ObjectPath::from("1")).await.is_ok());
}

#[tokio::test]
async fn restored_backup_does_not_start_on_objects_that_were_used_since() {
    let (data, store) = (DataDirectory::new(), Arc::new(InMemory::new()));
    data.start(&store).await.unwrap();
    let backup = data.copied();
    data.start(&store).await.unwrap();

    let restored = backup.start(&store).await.map(drop);

    assert!(matches!(restored, Err(OpenObjectsError::Copied { there: 2, here: 1, .. })));
}

#[tokio::test]
async fn a_start_that_ended_between_the_two_records_is_followed_by_the_next() {
    let (data, store) = (DataDirectory::new(), Arc::new(InMemory::new()));
    data.start(&store).await.unwrap();
    // The file is written first.
    let text = fs::read_to_string(data.0.path().join("blob-store")).unwrap();
    fs::write(data.0.path().join("blob-store"), text + "2 unwritten\n").unwrap();

    assert_eq!(data.start(&store).await.unwrap().blobs.start, 3);
}

#[tokio::test]
async fn an_object_is_created_and_never_overwritten() {
    let store = Arc::new(FaultyObjects::default());
    for is_conditional in [true, false] {
        let path = format!("1/{is_conditional}");
        let mut area = ObjectArea::of(Arc::clone(&store) as _);
        area.is_conditional = is_conditional;
        area.put(&path, "first".into()).await.unwrap();
        area.put(&path, "first".into()).await.expect("its response may have been lost");

        let occupied = area.put(&path, "second".into()).await.map(drop);

        assert!(matches!(occupied, Err(WriteObjectError::Occupied { .. })), "{occupied:?}");
        let found = store.get(&ObjectPath::from(path.as_str())).await.unwrap();
        assert_eq!(found.bytes().await.unwrap(), "first");
    }
    let area = ObjectArea::of(Arc::clone(&store) as _);
    store.plan([ObjectFault::Unacknowledged]);
    assert!(area.put("2", "text".into()).await.is_err());
    area.put("2", "text".into()).await.expect("it is there");
}
