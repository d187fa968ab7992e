use super::*;
use crate::{manifest::tests::manifest, packed::pack};

async fn place(folder: &std::path::Path) -> Repository {
    Repository::create(folder.to_str().unwrap(), "a", None).await.unwrap()
}

async fn put_manifest(place: &Repository, at: &str, manifest: &BackupManifest) {
    let path = manifest_path(at);
    let text = serde_json::to_vec(manifest).unwrap();
    place.put(&path, pack(&path, &text, 0)).await.unwrap();
}

#[tokio::test]
async fn what_is_there_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path()).await;
    place.put("parts/a", pack("parts/a", b"first", 0)).await.unwrap();
    place.put("parts/a", pack("parts/a", b"second", 0)).await.unwrap();
    assert_eq!(place.read("parts/a").await.unwrap(), b"first");
    assert!(matches!(place.read("parts/b").await, Err(PartError::Missing)));
}

#[tokio::test]
async fn a_file_that_is_larger_than_a_part_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path()).await;
    place.put("parts/a", pack("parts/a", b"a", 0)).await.unwrap();
    let file = std::fs::File::options().write(true).open(folder.path().join("parts/a")).unwrap();
    file.set_len(STORED_BYTES_MAX + 1).unwrap();
    let read = place.read("parts/a").await;
    let foreign = matches!(read, Err(PartError::UnreadablePart(UnreadablePart::Foreign)));
    assert!(foreign, "{read:?}");
}

#[tokio::test]
async fn the_newest_backup_is_opened_unless_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path()).await;
    let error = place.id(None).await.unwrap_err().to_string();
    assert!(error.contains("no such backup"), "{error}");
    for id in ["b", "a"] {
        put_manifest(&place, id, &manifest(id)).await;
    }
    assert_eq!(place.backups().await.unwrap(), ["a", "b"]);
    assert_eq!(place.id(None).await.unwrap(), "b");
    assert_eq!(place.id(Some("a")).await.unwrap(), "a");
    let error = place.id(Some("c")).await.unwrap_err().to_string();
    assert!(error.contains("id=`c`"), "{error}");
    let error = place.open_backup(None, &[]).await.unwrap_err().to_string();
    assert!(error.contains("keyspace=`rows`"), "{error}");
}

#[tokio::test]
async fn a_manifest_in_the_place_of_another_one_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path()).await;
    put_manifest(&place, "b", &manifest("a")).await;
    let error = place.open_backup(Some("b"), &[]).await.unwrap_err().to_string();
    assert!(error.contains("that of another backup: id=`a`"), "{error}");
}

#[tokio::test]
async fn an_encrypted_backup_needs_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path()).await;
    let recipients = BTreeSet::from(["age1key".to_owned()]);
    let sealed = BackupManifest { recipients, ..manifest("a") };
    let error = place.unlock(&sealed).unwrap_err().to_string();
    assert!(error.contains("--decrypt") && error.contains("keys=`age1key`"), "{error}");
    place.put("parts/a", pack("parts/a", b"a", 0)).await.unwrap();
    assert!(matches!(place.read_sealed("parts/a").await, Err(PartError::Plain)));
    place.unlock(&manifest("a")).unwrap();
    assert_eq!(place.read_sealed("parts/a").await.unwrap(), b"a");
}
