//! One suite for every object store: in memory, in files, and those that the variable `OBJECT_STORES` names by their
//! URLs, separated by spaces.

use object_store::{PutMode, PutOptions};
use trestle_objects::ObjectsUrl;
use uuid::Uuid;

use super::*;
use crate::{extent::EXTENT_BYTES, fixture::sample, record::ContentId};

/// The stores, each empty.
#[expect(clippy::disallowed_methods, reason = "which stores exist, the test set-up decides")]
fn stores(directory: &std::path::Path) -> Vec<Objects> {
    let mut stores = vec![Objects::in_memory(), Objects::in_directory(directory).unwrap()];
    let urls = std::env::var("OBJECT_STORES").unwrap_or_default();
    for url in urls.split_whitespace() {
        let url: ObjectsUrl = format!("{url}/{}", Uuid::new_v4()).parse().unwrap();
        stores.push(Objects(ObjectArea::at(&url).unwrap()));
    }
    for store in &stores {
        println!("store: {}", store.name());
    }
    stores
}

fn extent(content: u64, index: u64, size: u64) -> Extent {
    Extent { id: ExtentId { content: ContentId(content), mark: 3, index }, size }
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
        let name = objects.name();
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
        let (absent, name) = (extent(1, 0, 100), objects.name());

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
        let name = objects.name();
        for (content, index) in [(1, 0), (1, 1), (2, 0)] {
            write(&objects, extent(content, index, 10)).await;
        }
        for foreign in ["trestle-owner", "below/0000000000000009-00000000"] {
            objects.0.store.put(&Path::from(foreign), "text".into()).await.unwrap();
        }

        let before = listed(&objects).await;
        objects
            .delete(Part { content: ContentId(1), mark: 0, size: EXTENT_BYTES + 1 })
            .await
            .unwrap();

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
        let (path, name) = (Path::from("object"), objects.name());
        let put = async |text: &'static str, mode: PutMode| {
            let options = PutOptions { mode, ..PutOptions::default() };
            objects.0.store.put_opts(&path, text.into(), options).await
        };

        put("first", PutMode::Create).await.unwrap();
        let again = put("second", PutMode::Create).await;

        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{name}: {again:?}");
        let found = objects.0.store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!(found, "first", "{name}");
        put("third", PutMode::Overwrite).await.unwrap();
        let found = objects.0.store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!(found, "third", "{name}");
    }
}

#[tokio::test]
async fn every_store_detects_damage() {
    let directory = tempfile::tempdir().unwrap();
    for objects in stores(directory.path()) {
        let (extent, name) = (extent(1, 0, 100_000), objects.name());
        write(&objects, extent).await;
        let path = path(extent.id);
        let whole = objects.0.store.get(&path).await.unwrap().bytes().await.unwrap();

        let mut changed = whole.to_vec();
        changed[50_000] ^= 1;
        for damaged in [whole.slice(..whole.len() - 1), whole.slice(..10), changed.into()] {
            objects.0.store.put(&path, damaged.into()).await.unwrap();
            let read = objects.read(extent, 40_000..60_000).await;
            let last = objects.read(extent, 99_000..100_000).await;
            let is_corrupt = [read, last].iter().any(|it| matches!(it, Err(BlobError::Corrupt(_))));
            assert!(is_corrupt, "{name}");
        }
    }
}
