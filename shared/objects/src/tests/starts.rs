//! Starts that race for one store, what the owner object may contain, and a store that ignores conditions.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use futures::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    memory::InMemory, path::Path as ObjectPath,
};

use super::*;

const URL: &str = "s3://bucket/prod";

/// A store in memory in which another start writes its claim before the next write.
#[derive(Debug, Default)]
struct RacedStore {
    inner: InMemory,
    /// What the other start writes.
    other: Mutex<Option<String>>,
    ignores_conditions: bool,
    /// Whether it rejects what is written.
    rejects: AtomicBool,
}

impl fmt::Display for RacedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RacedStore")
    }
}

#[async_trait::async_trait]
impl ObjectStore for RacedStore {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if self.rejects.load(Relaxed) {
            let source = "no permission to write".into();
            return Err(object_store::Error::Generic { store: "raced", source });
        }
        let other = self.other.lock().unwrap().take();
        if let Some(claim) = other {
            self.inner.put(&owner_object(), claim.into()).await?;
        }
        let mode = if self.ignores_conditions { PutMode::Overwrite } else { options.mode };
        self.inner.put_opts(location, payload, PutOptions { mode, ..options }).await
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn owner_object() -> ObjectPath {
    ObjectPath::from("trestle-owner")
}

/// A data directory whose last start has this number, and the nonce `first`.
fn directory_at(start: u64) -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("blob-store"), format!("{URL}\nours\n{start} first\n")).unwrap();
    data
}

async fn start(
    data: &tempfile::TempDir,
    store: &Arc<RacedStore>,
) -> Result<ObjectStorage, OpenObjectsError> {
    let (record, url) = (BindingFile(data.path().to_owned()), URL.parse().unwrap());
    let claimed = StoreBinding::claim(&record, &url, &**store).await?;
    Ok(ObjectStorage::owned(Arc::clone(store) as _, &url, claimed, None))
}

async fn write(store: &RacedStore, text: impl Into<PutPayload>) {
    store.inner.put(&owner_object(), text.into()).await.unwrap();
}

async fn stored_claim(store: &RacedStore) -> String {
    String::from_utf8(content(store, "trestle-owner").await.to_vec()).unwrap()
}

async fn content(store: &dyn ObjectStore, path: &str) -> bytes::Bytes {
    store.get(&ObjectPath::from(path)).await.unwrap().bytes().await.unwrap()
}

#[tokio::test]
async fn a_start_that_loses_a_race_is_rejected_and_writes_no_claim() {
    for (before, other, is_copied) in [
        (None, "ours 4 other", true),
        (Some("ours 3 first"), "ours 4 other", true),
        (None, "theirs 1 other", false),
        (Some("ours"), "theirs 1 other", false),
    ] {
        let (data, store) = (directory_at(3), Arc::new(RacedStore::default()));
        if let Some(before) = before {
            write(&store, before).await;
        }
        *store.other.lock().unwrap() = Some(other.to_owned());

        let error = start(&data, &store).await.map(drop).unwrap_err();

        match is_copied {
            true => assert!(
                matches!(error, OpenObjectsError::Copied { there: 4, here: 4, .. }),
                "{before:?}: {error}"
            ),
            false => assert!(matches!(error, OpenObjectsError::Claimed { .. }), "{error}"),
        }
        // Nor does it claim the store by starting again.
        for _ in 0..2 {
            let again = start(&data, &store).await.map(drop).unwrap_err();
            let is_same = std::mem::discriminant(&again) == std::mem::discriminant(&error);
            assert!(is_same, "{before:?}: {again}");
        }
        assert_eq!(content(&*store, "trestle-owner").await, other, "{before:?}");
    }
}

#[tokio::test]
async fn a_claim_of_a_failed_start_that_the_store_applied_late_is_that_of_the_directory() {
    let (data, store) = (directory_at(3), Arc::new(RacedStore::default()));
    let file = data.path().join("blob-store");
    fs::write(&file, format!("{URL}\nours\n3 first\n4 late\n5 lost\n")).unwrap();
    write(&store, "ours 4 late").await;

    assert_eq!(start(&data, &store).await.unwrap().blobs.start, 6);

    let text = fs::read_to_string(&file).unwrap();
    let claims: Vec<_> = text.lines().skip(2).collect();
    let [first, "5 lost", last] = claims[..] else { panic!("{text}") };
    assert_eq!((first, format!("ours {last}")), ("4 late", stored_claim(&store).await), "{text}");
}

#[tokio::test]
async fn starts_that_fail_again_and_again_do_not_let_the_file_grow() {
    let (data, store) = (directory_at(u64::MAX - 2), Arc::new(RacedStore::default()));
    for _ in 0..100 {
        start(&data, &store).await.unwrap();
        // The store loses the object, as when each claim failed.
        store.inner.delete(&owner_object()).await.unwrap();
    }
    let text = fs::read_to_string(data.path().join("blob-store")).unwrap();
    assert_eq!(text.lines().count(), 2 + 64);
    assert!(text.lines().last().unwrap().starts_with(&u64::MAX.to_string()), "{text}");

    start(&data, &store).await.unwrap();
    start(&data, &store).await.unwrap();
    let text = fs::read_to_string(data.path().join("blob-store")).unwrap();
    assert_eq!(text.lines().count(), 2 + 2, "the claim in the store, and the new one");
}

#[tokio::test]
async fn many_starts_that_record_a_claim_and_do_not_reach_the_store_forget_none_of_it() {
    let (data, store) = (directory_at(3), Arc::new(RacedStore::default()));
    write(&store, "ours 3 first").await;
    let file = data.path().join("blob-store");
    let mut text = fs::read_to_string(&file).unwrap();
    for number in 4..4 + 100 {
        text += &format!("{number} lost\n");
    }
    fs::write(&file, text).unwrap();

    // A start whose claim the store rejects, as one without the permission to write.
    store.rejects.store(true, Relaxed);
    for _ in 0..3 {
        start(&data, &store).await.map(drop).unwrap_err();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().nth(2), Some("3 first"), "what the store has");
        assert!(text.lines().count() <= 2 + 64, "{text}");
    }
    store.rejects.store(false, Relaxed);
    assert_eq!(start(&data, &store).await.unwrap().blobs.start, 107);
}

#[tokio::test]
async fn a_start_that_an_older_claim_of_its_directory_comes_before_claims_the_store_again() {
    let (data, store) = (directory_at(3), Arc::new(RacedStore::default()));
    *store.other.lock().unwrap() = Some("ours 3 first".to_owned());

    let storage = start(&data, &store).await.unwrap();

    assert_eq!(storage.blobs.start, 5, "the number of the try that failed is not used again");
}

#[tokio::test]
async fn a_malformed_owner_object_is_neither_owned_nor_replaced() {
    let malformed: [&[u8]; 7] = [
        b"",
        b" \n",
        b"ours x nonce",
        b"ours -1 n",
        b"ours 1.5",
        b"ours 18446744073709551616",
        b"\xff",
    ];
    for text in malformed {
        let (data, store) = (directory_at(7), Arc::new(RacedStore::default()));
        write(&store, text.to_vec()).await;

        let error = start(&data, &store).await.map(drop).unwrap_err();

        assert!(error.to_string().contains("`trestle-owner` is malformed"), "{error}");
        assert_eq!(content(&*store, "trestle-owner").await, text);
        let file = fs::read_to_string(data.path().join("blob-store")).unwrap();
        assert!(file.ends_with("\n7 first\n"), "no start is counted: {file:?}");
    }
}

#[tokio::test]
async fn an_owner_object_without_a_number_belongs_to_its_owner_only() {
    for (text, number) in [("ours", Some(4)), ("ours\n", Some(4)), ("theirs", None)] {
        let (data, store) = (directory_at(3), Arc::new(RacedStore::default()));
        write(&store, text).await;

        let started = start(&data, &store).await;

        match started {
            Ok(storage) => assert_eq!(Some(storage.blobs.start), number, "{text:?}"),
            Err(OpenObjectsError::Claimed { .. }) => assert_eq!(number, None, "{text:?}"),
            Err(error) => panic!("{text:?}: {error}"),
        }
    }
}

#[tokio::test]
async fn an_owner_object_that_cannot_be_read_stops_deletes_until_it_can() {
    let (data, store) = (directory_at(0), Arc::new(RacedStore::default()));
    let storage = start(&data, &store).await.unwrap();
    let owner = storage.owner.clone().unwrap();
    storage.blobs.put("1", "text".into()).await.unwrap();
    let claim = content(&*store, "trestle-owner").await;
    store.inner.delete(&owner_object()).await.unwrap();
    for text in [None, Some("ours x")] {
        if let Some(text) = text {
            write(&store, text).await;
        }
        assert!(owner.check().await.is_err(), "{text:?}");
        assert!(storage.blobs.delete("1").await.is_err(), "{text:?}");
        assert_eq!(owner.lost(), None, "{text:?}");
        assert_eq!(content(&*store, "1").await, "text");
    }

    write(&store, claim).await;

    storage.blobs.delete("1").await.unwrap();
    assert!(store.inner.head(&ObjectPath::from("1")).await.is_err());
}

#[tokio::test]
async fn reads_go_on_after_the_claim_was_lost_and_changes_do_not() {
    let (data, store) = (directory_at(0), Arc::new(RacedStore::default()));
    let storage = start(&data, &store).await.unwrap();
    storage.blobs.put("1", "text".into()).await.unwrap();
    // The same number with another nonce: a start that a store without conditions accepted too.
    write(&store, "ours 1 other").await;

    storage.owner.as_ref().unwrap().check().await.unwrap();

    let (objects, path) = (&storage.blobs.store, ObjectPath::from("1"));
    let ranges = objects.get_ranges(&path, &[0..2, 1..4]).await.unwrap();
    assert_eq!(ranges, ["te", "ext"]);
    assert_eq!(objects.head(&path).await.unwrap().size, 4);
    let listed = objects.list_with_delimiter(None).await.unwrap();
    assert_eq!(listed.objects.len(), 2);
    assert!(objects.copy(&path, &ObjectPath::from("2")).await.is_err());
    assert!(objects.put_multipart(&ObjectPath::from("2")).await.is_err());
    assert!(storage.logs.put("2", "late".into()).await.is_err());
    assert!(storage.blobs.delete("1").await.is_err());
    assert!(storage.owner.unwrap().lost().is_some_and(|reason| reason.contains("start=`1`")));
    assert_eq!(content(&*store, "1").await, "text");
}

#[tokio::test]
async fn a_store_that_ignores_conditions_compares_objects_before_it_writes() {
    let store = Arc::new(RacedStore { ignores_conditions: true, ..RacedStore::default() });
    let data = directory_at(0);
    *store.other.lock().unwrap() = Some("ours 1 other".to_owned());
    // The later write of the race has the store.
    let storage = start(&data, &store).await.unwrap();
    assert!(!storage.blobs.is_conditional && !storage.logs.is_conditional);
    storage.owner.as_ref().unwrap().check().await.unwrap();
    assert_eq!(storage.owner.as_ref().unwrap().lost(), None);

    for (area, path) in [(&storage.blobs, "a/1"), (&storage.logs, "log/a/1")] {
        area.put("a/1", path.into()).await.unwrap();
        area.put("a/1", path.into()).await.expect("an equal object");
        // A prefix of what is there, more than is there, and other bytes.
        for other in [&path[..2], "log/a/1 and more", ""] {
            let occupied = area.put("a/1", other.to_owned().into()).await.map(drop).unwrap_err();
            assert!(matches!(occupied, WriteObjectError::Occupied { .. }), "{occupied}");
        }
        assert_eq!(content(&*store, path).await, path);
    }
}
