#[cfg(feature = "testing")]
mod faults;
#[cfg(feature = "testing")]
mod owners;
mod sharing;
mod starts;

use super::*;

fn files(directory: &Path) -> ObjectArea {
    ObjectArea::in_directory(directory, None).unwrap()
}

#[tokio::test]
async fn a_store_belongs_to_one_data_directory() {
    let (directory, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url: ObjectsUrl = "s3://blobs/a".parse().unwrap();
    let (one, two) = (data.path().join("1"), data.path().join("2"));
    let (first, second) = (BindingFile(one.clone()), BindingFile(two));
    // The second has no conditional updates.
    for objects in [ObjectArea::in_memory(), files(directory.path())] {
        let name = objects.name;
        StoreBinding::claim(&first, &url, &*objects.store).await.unwrap();
        let claimed = StoreBinding::claim(&first, &url, &*objects.store).await.unwrap();
        assert_eq!(claimed.is_conditional, name == "memory");

        let claimed = StoreBinding::claim(&second, &url, &*objects.store).await;

        assert!(matches!(claimed, Err(OpenObjectsError::Claimed { .. })), "{name}: {claimed:?}");
    }
    let kept = StoreBinding::in_directory(&one).unwrap().expect("the record of the first");
    assert_eq!(kept.url, url.to_string());
}

#[tokio::test]
async fn a_data_directory_keeps_its_store() {
    let data = tempfile::tempdir().unwrap();
    let url = |text: &str| text.parse::<ObjectsUrl>().unwrap();
    let with_files = data.path().join("files");
    let objects = ObjectStorage::open(&with_files, None, None).await.unwrap();
    ObjectStorage::open(&with_files, None, None).await.unwrap();
    objects.blobs.put("object", "text".into()).await.unwrap();
    let with_url = data.path().join("url");
    let binding = StoreBinding::new(&url("s3://blobs/a"));
    BindingFile(with_url.clone()).replace(None, &binding.to_string()).await.unwrap();

    for (data_dir, url, found) in [
        (&with_files, Some(url("s3://blobs/a")), "files/blob"),
        (&with_url, Some(url("s3://blobs/b")), "s3://blobs/a"),
        (&with_url, None, "s3://blobs/a"),
    ] {
        let opened = ObjectStorage::open(data_dir, url.as_ref(), None).await.map(drop);
        let Err(OpenObjectsError::Elsewhere { found: place }) = opened else {
            panic!("{opened:?}");
        };
        assert!(place.ends_with(found), "{place}");
    }
    fs::write(with_url.join("blob-store"), "s3://blobs/a\n").unwrap();
    let malformed = ObjectStorage::open(&with_url, None, None).await.map(drop);
    assert!(matches!(malformed, Err(OpenObjectsError::Directory(_))), "{malformed:?}");
}
