//! Access to objects that owns none of them: those of a data directory, for a backup of it, and those of a place that
//! backups are in.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use object_store::{ObjectStore, local::LocalFileSystem, memory::InMemory, prefix::PrefixStore};

use crate::{BLOBS, LOGS, ObjectsUrl, OpenObjectsError, binding::StoreBinding, cloud};

/// The objects of a data directory, to read.
#[derive(Clone)]
pub struct SourceObjects {
    /// The contents of blobs.
    pub blobs: Arc<dyn ObjectStore>,
    /// The segments of logs.
    pub logs: Arc<dyn ObjectStore>,
}

impl SourceObjects {
    /// Whether a place is that of the objects of a data directory, in it, or around it. A backup there would be a part
    /// of what it is a backup of.
    ///
    /// # Errors
    /// A data directory that cannot be read.
    pub fn are_at(data_dir: &Path, target: &str) -> io::Result<bool> {
        if let Ok(target) = target.parse::<ObjectsUrl>() {
            let url = StoreBinding::in_directory(data_dir)?
                .and_then(|it| it.url.parse::<ObjectsUrl>().ok());
            return Ok(url.is_some_and(|url| url.overlaps(&target)));
        }
        let target = std::path::absolute(target)?;
        // It may not exist: the part of it that does decides.
        let existing = target.ancestors().find_map(|path| path.canonicalize().ok());
        let data_dir = data_dir.canonicalize()?;
        Ok(existing.is_some_and(|path| path.starts_with(&data_dir)))
    }

    /// Those of a data directory: at the URL that it uses, or without one in its files. The server that uses them is
    /// not disturbed.
    ///
    /// # Errors
    /// [`OpenObjectsError::Elsewhere`] where the data directory uses another URL, [`OpenObjectsError::Store`],
    /// [`OpenObjectsError::Directory`].
    pub fn of(data_dir: &Path) -> Result<Self, OpenObjectsError> {
        let Some(binding) = StoreBinding::in_directory(data_dir)? else {
            return Ok(Self {
                blobs: files(&data_dir.join(BLOBS))?,
                logs: files(&data_dir.join(LOGS))?,
            });
        };
        Self::at(&binding)
    }

    /// Those of a store that keeps this text about them, as [`crate::BindingRecord`] reads it, and the URL that they
    /// are at; without a text there are none.
    ///
    /// # Errors
    /// [`OpenObjectsError::Record`] for a malformed text, [`OpenObjectsError::Store`].
    pub fn of_record(text: Option<&str>) -> Result<(Self, Option<ObjectsUrl>), OpenObjectsError> {
        let Some(text) = text else {
            let none = Arc::new(InMemory::new());
            return Ok((Self { blobs: none.clone(), logs: none }, None));
        };
        let malformed = |error: io::Error| OpenObjectsError::Record(error.to_string());
        let binding: StoreBinding = text.parse().map_err(malformed)?;
        Ok((Self::at(&binding)?, Some(binding.url.parse().map_err(OpenObjectsError::Store)?)))
    }

    /// The URL that the objects of a data directory are at; none where they are in its files.
    ///
    /// # Errors
    /// A file that cannot be read, or is malformed.
    pub fn url_of(data_dir: &Path) -> Result<Option<ObjectsUrl>, OpenObjectsError> {
        let binding = StoreBinding::in_directory(data_dir)?;
        binding.map(|it| it.url.parse()).transpose().map_err(OpenObjectsError::Store)
    }

    fn at(binding: &StoreBinding) -> Result<Self, OpenObjectsError> {
        let url: ObjectsUrl = binding.url.parse().map_err(OpenObjectsError::Store)?;
        let blobs = cloud::open(&url).map_err(|error| OpenObjectsError::of(&error))?;
        let logs = Arc::new(PrefixStore::new(Arc::clone(&blobs), LOGS));
        Ok(Self { blobs, logs })
    }
}

/// Files of a directory; nothing where it does not exist.
fn files(directory: &Path) -> io::Result<Arc<dyn ObjectStore>> {
    if !directory.try_exists()? {
        return Ok(Arc::new(InMemory::new()));
    }
    Ok(Arc::new(LocalFileSystem::new_with_prefix(directory).map_err(io::Error::other)?))
}

/// A place outside the data directory.
#[derive(Clone)]
pub struct CopyTarget {
    /// What is there. Files are synced before a write returns, the names of new directories by [`CopyTarget::sync`].
    pub store: Arc<dyn ObjectStore>,
    directory: Option<TargetDirectory>,
}

/// A directory, and which one it was when it was opened.
#[derive(Clone)]
struct TargetDirectory {
    path: PathBuf,
    /// The file system and the number in it.
    identity: (u64, u64),
}

impl TargetDirectory {
    fn open(path: &str) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        Ok(Self { path: path.into(), identity: (found.dev(), found.ino()) })
    }

    /// Syncs it. Its path may have become that of another one: what was mounted there was unmounted, or it was moved.
    fn sync(&self) -> io::Result<()> {
        let directory = File::open(&self.path)?;
        let found = directory.metadata()?;
        match (found.dev(), found.ino()) == self.identity {
            true => directory.sync_all(),
            false => {
                Err(io::Error::other("it is another directory than before: was it unmounted?"))
            }
        }
    }
}

impl CopyTarget {
    /// The place at the path of a directory, or at the URL of a bucket.
    ///
    /// # Errors
    /// A malformed URL, credentials in the environment that are malformed or absent, or a directory that does not
    /// exist.
    pub fn open(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            let store = cloud::open(&text.parse()?).map_err(|error| error.to_string())?;
            return Ok(Self { store, directory: None });
        }
        let directory = TargetDirectory::open(text).map_err(|error| error.to_string())?;
        let store = LocalFileSystem::new_with_prefix(text).map_err(|error| error.to_string())?;
        Ok(Self { store: Arc::new(store.with_fsync(true)), directory: Some(directory) })
    }

    /// The same, where a directory that does not exist is created.
    ///
    /// # Errors
    /// As [`CopyTarget::open`], or a directory that cannot be created.
    pub fn create(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            std::fs::create_dir_all(text)
                .map_err(|error| format!("the directory cannot be created: {error}"))?;
        }
        Self::open(text)
    }

    /// Makes the names of what was written durable, by the directories that it is in. Blocks.
    ///
    /// # Errors
    /// A directory that cannot be synced, or is another one than when the place was opened.
    pub fn sync(&self, directories: &BTreeSet<String>) -> io::Result<()> {
        let Some(root) = &self.directory else { return Ok(()) };
        // Each of them may be new, and those above it.
        let above = |name: &String| {
            let ancestors = Path::new(name).ancestors().map(Path::to_owned);
            ancestors.collect::<Vec<_>>()
        };
        let all: BTreeSet<PathBuf> = directories.iter().flat_map(above).collect();
        for directory in all.iter().rev() {
            File::open(root.path.join(directory))?.sync_all()?;
        }
        root.sync()
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;
    use object_store::{ObjectStoreExt as _, PutPayload};

    use super::*;

    #[tokio::test]
    async fn the_objects_of_a_data_directory_are_read_and_none_is_claimed() {
        let directory = tempfile::tempdir().unwrap();
        let none = SourceObjects::of(directory.path()).unwrap();
        assert!(none.blobs.list(None).try_next().await.unwrap().is_none());

        std::fs::create_dir_all(directory.path().join("log/main")).unwrap();
        std::fs::write(directory.path().join("log/main/1.parquet"), "segment").unwrap();
        let source = SourceObjects::of(directory.path()).unwrap();
        let read = source.logs.get(&"main/1.parquet".into()).await.unwrap().bytes().await.unwrap();
        assert_eq!(&*read, b"segment");
        assert!(!directory.path().join("blob").exists());
    }

    #[tokio::test]
    async fn the_objects_of_a_record_are_at_its_url() {
        let url: ObjectsUrl = "s3://a/b".parse().unwrap();
        let text = StoreBinding::new(&url).to_string();
        let (_, found) = SourceObjects::of_record(Some(&text)).unwrap();
        assert_eq!(found, Some(url.clone()));
        let (none, found) = SourceObjects::of_record(None).unwrap();
        assert_eq!(found, None);
        assert!(none.logs.list(None).try_next().await.unwrap().is_none());
        assert!(SourceObjects::of_record(Some("s3://a/b")).is_err());

        let directory = tempfile::tempdir().unwrap();
        assert_eq!(SourceObjects::url_of(directory.path()).unwrap(), None);
        std::fs::write(directory.path().join("blob-store"), text).unwrap();
        assert_eq!(SourceObjects::url_of(directory.path()).unwrap(), Some(url));
    }

    #[test]
    fn a_directory_in_the_place_of_the_one_that_was_opened_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (path, away) = (folder.path().join("target"), folder.path().join("away"));
        let target = CopyTarget::create(path.to_str().unwrap()).unwrap();
        target.sync(&BTreeSet::new()).unwrap();
        std::fs::rename(&path, &away).unwrap();
        target.sync(&BTreeSet::new()).unwrap_err();
        std::fs::create_dir(&path).unwrap();
        let error = target.sync(&BTreeSet::new()).unwrap_err().to_string();
        assert!(error.contains("another directory than before"), "{error}");
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(&away, &path).unwrap();
        target.sync(&BTreeSet::new()).unwrap();
    }

    #[test]
    fn a_target_in_the_data_directory_or_at_its_objects_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        std::fs::create_dir(&data_dir).unwrap();
        let are_at = |target: &str| SourceObjects::are_at(&data_dir, target).unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        assert!(are_at(&path("data")) && are_at(&path("data/deep/backups")));
        assert!(!are_at(&path("backups")) && !are_at(&path("data-2")) && !are_at("s3://a/b"));
        let text = StoreBinding::new(&"s3://a/b".parse().unwrap()).to_string();
        std::fs::write(data_dir.join("blob-store"), text).unwrap();
        assert!(are_at("s3://a/b") && are_at("s3://a") && !are_at("s3://a/c"));
    }

    #[tokio::test]
    async fn a_target_is_a_directory_or_a_bucket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/backups");
        let text = path.to_str().unwrap();
        assert!(CopyTarget::open(text).is_err());
        let target = CopyTarget::create(text).unwrap();
        target.store.put(&"a/b".into(), PutPayload::from("x")).await.unwrap();
        target.sync(&BTreeSet::from(["a".to_owned()])).unwrap();
        assert!(target.sync(&BTreeSet::from(["b".to_owned()])).is_err());
        assert!(CopyTarget::open(text).is_ok());
        assert_eq!(std::fs::read(path.join("a/b")).unwrap(), b"x");

        for rejected in ["s3://", "http://x/y", "s3://a?b"] {
            assert!(CopyTarget::create(rejected).is_err(), "{rejected}");
        }
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(CopyTarget::create(file.to_str().unwrap()).is_err());
    }
}
