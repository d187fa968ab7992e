//! One suite for every object store: in memory, in files, and those that the variable `OBJECT_STORES` names by their
//! URLs, separated by spaces.

use object_store::{PutMode, PutOptions};
use uuid::Uuid;

use super::*;
use crate::{extent::EXTENT_BYTES, fixture::sample, record::ContentId};

/// The stores, each empty.
#[expect(clippy::disallowed_methods, reason = "which stores exist, the test set-up decides")]
fn stores(directory: &FilePath) -> Vec<Objects> {
    let mut stores = vec![Objects::in_memory(), Objects::in_directory(directory).unwrap()];
    let urls = std::env::var("OBJECT_STORES").unwrap_or_default();
    for url in urls.split_whitespace() {
        let url: ObjectsUrl = format!("{url}/{}", Uuid::new_v4()).parse().unwrap();
        stores.push(Objects {
            store: cloud::open(&url).unwrap(),
            name: url.kind.scheme(),
            directory: None,
            disk: None,
        });
    }
    for store in &stores {
        println!("store: {}", store.name);
    }
    stores
}

fn extent(content: u64, index: u64, size: u64) -> Extent {
    Extent { id: ExtentId { content: ContentId(content), index }, size }
}

async fn write(objects: &Objects, extent: Extent) -> Bytes {
    let data = sample(usize::try_from(extent.size).unwrap());
    objects.write(extent.id, vec![data.clone()]).await.unwrap();
    data
}

async fn listed(objects: &Objects) -> Vec<String> {
    let ids: Vec<_> = objects.list().try_collect().await.unwrap();
    let mut names: Vec<_> = ids.iter().map(ExtentId::object).collect();
    names.sort();
    names
}

#[tokio::test]
async fn every_store_returns_ranges_of_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    for objects in stores(directory.path()) {
        let name = objects.name;
        for (content, size) in [(1, 1), (2, 32 * 1024), (3, 100_000), (4, EXTENT_BYTES)] {
            let extent = extent(content, 0, size);
            let data = write(&objects, extent).await;
            let ranges = [0..size, 0..1, size - 1..size, size / 3..size / 2 + 1];
            for range in ranges.into_iter().filter(|range| range.start < range.end) {
                let read = objects.read(extent, range.clone()).await.unwrap().unwrap();
                let at = |offset| usize::try_from(offset).unwrap();
                let expected = data.slice(at(range.start)..at(range.end));
                assert!(read == expected, "{name}: {size} {range:?}");
            }
        }
        let (first, second) = (sample(40_000), sample(70_000));
        objects.write(extent(5, 1, 0).id, vec![first.clone(), second.clone()]).await.unwrap();
        let read = objects.read(extent(5, 1, 110_000), 0..110_000).await.unwrap().unwrap();
        assert!(read == [first, second].concat(), "{name}: data in pieces");
    }
}

#[tokio::test]
async fn every_store_reports_an_absent_object_as_absent() {
    let directory = tempfile::tempdir().unwrap();
    for objects in stores(directory.path()) {
        let (absent, name) = (extent(1, 0, 100), objects.name);

        assert_eq!(objects.read(absent, 0..100).await.unwrap(), None, "{name}");
        objects.delete_each([absent.id].into_iter()).await.unwrap();
        write(&objects, absent).await;
        objects.delete_each([absent.id].into_iter()).await.unwrap();

        assert_eq!(objects.read(absent, 0..100).await.unwrap(), None, "{name}");
        assert!(listed(&objects).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn every_store_lists_its_own_objects_only() {
    let directory = tempfile::tempdir().unwrap();
    for objects in stores(directory.path()) {
        let name = objects.name;
        for (content, index) in [(1, 0), (1, 1), (2, 0)] {
            write(&objects, extent(content, index, 10)).await;
        }
        for foreign in ["trestle-owner", "below/0000000000000009-00000000"] {
            objects.store.put(&Path::from(foreign), "text".into()).await.unwrap();
        }

        let before = listed(&objects).await;
        objects.delete(Part { content: ContentId(1), size: EXTENT_BYTES + 1 }).await.unwrap();

        let (first, second, third) =
            ("0000000000000001-00000000", "0000000000000001-00000001", "0000000000000002-00000000");
        assert_eq!(before, [first, second, third], "{name}");
        assert_eq!(listed(&objects).await, [third], "{name}");
    }
}

#[tokio::test]
async fn every_store_writes_over_an_object_unless_it_must_be_absent() {
    let directory = tempfile::tempdir().unwrap();
    for objects in stores(directory.path()) {
        let (path, name) = (Path::from("object"), objects.name);
        let put = async |text: &'static str, mode: PutMode| {
            let options = PutOptions { mode, ..PutOptions::default() };
            objects.store.put_opts(&path, text.into(), options).await
        };

        put("first", PutMode::Create).await.unwrap();
        let again = put("second", PutMode::Create).await;

        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{name}: {again:?}");
        let found = objects.store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!(found, "first", "{name}");
        put("third", PutMode::Overwrite).await.unwrap();
        let found = objects.store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!(found, "third", "{name}");
    }
}

#[tokio::test]
async fn every_store_detects_damage() {
    let directory = tempfile::tempdir().unwrap();
    for objects in stores(directory.path()) {
        let (extent, name) = (extent(1, 0, 100_000), objects.name);
        write(&objects, extent).await;
        let path = path(extent.id);
        let whole = objects.store.get(&path).await.unwrap().bytes().await.unwrap();

        let mut changed = whole.to_vec();
        changed[50_000] ^= 1;
        for damaged in [whole.slice(..whole.len() - 1), whole.slice(..10), changed.into()] {
            objects.store.put(&path, damaged.into()).await.unwrap();
            let read = objects.read(extent, 40_000..60_000).await;
            let last = objects.read(extent, 99_000..100_000).await;
            let is_corrupt = [read, last].iter().any(|it| matches!(it, Err(BlobError::Corrupt(_))));
            assert!(is_corrupt, "{name}");
        }
    }
}

#[tokio::test]
async fn a_store_belongs_to_one_data_directory() {
    let (directory, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url: ObjectsUrl = "s3://blobs/a".parse().unwrap();
    let first = StoreBinding::create(&data.path().join("1"), &url).unwrap();
    let second = StoreBinding::create(&data.path().join("2"), &url).unwrap();
    for objects in stores(directory.path()) {
        let name = objects.name;
        first.claim(&*objects.store).await.unwrap();
        first.claim(&*objects.store).await.unwrap();

        let claimed = second.claim(&*objects.store).await;

        assert!(matches!(claimed, Err(OpenObjectsError::Claimed { .. })), "{name}: {claimed:?}");
    }
    assert_eq!(StoreBinding::read(&data.path().join("1")).unwrap(), Some(first));
}

#[tokio::test]
async fn a_data_directory_keeps_its_store() {
    let data = tempfile::tempdir().unwrap();
    let url = |text: &str| text.parse::<ObjectsUrl>().unwrap();
    let with_files = data.path().join("files");
    let objects = Objects::open(&with_files, None, None).await.unwrap();
    Objects::open(&with_files, None, None).await.unwrap();
    write(&objects, extent(1, 0, 10)).await;
    let with_url = data.path().join("url");
    StoreBinding::create(&with_url, &url("s3://blobs/a")).unwrap();

    for (data_dir, url, found) in [
        (&with_files, Some(url("s3://blobs/a")), "files/blob"),
        (&with_url, Some(url("s3://blobs/b")), "s3://blobs/a"),
        (&with_url, None, "s3://blobs/a"),
    ] {
        let opened = Objects::open(data_dir, url.as_ref(), None).await.map(drop);
        let Err(OpenObjectsError::Elsewhere { found: place }) = opened else {
            panic!("{opened:?}");
        };
        assert!(place.ends_with(found), "{place}");
    }
    fs::write(with_url.join("blob-store"), "s3://blobs/a\n").unwrap();
    let malformed = Objects::open(&with_url, None, None).await.map(drop);
    assert!(matches!(malformed, Err(OpenObjectsError::Directory(_))), "{malformed:?}");
}
