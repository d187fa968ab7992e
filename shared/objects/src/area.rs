//! The objects of one service.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path as FilePath, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures::StreamExt as _;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    local::LocalFileSystem, memory::InMemory, path::Path,
};
use trestle_kv::{CommitError, DiskSpace, SpaceClaim};

use crate::hold::ObjectHold;

/// What the name of a file ends with while its object is written, in a directory: each path is written once.
const STAGED: &str = "#1";

/// Where a service stores its objects. Clones share it.
#[derive(Clone)]
pub struct ObjectArea {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// The kind of the store: `file`, `memory`, `s3`, `gs` or `az`.
    pub name: &'static str,
    /// The directory of the files, if the objects are files.
    pub directory: Option<Arc<FilePath>>,
    /// The disk that the objects share with the store of the records.
    pub disk: Option<DiskSpace>,
    /// The number of this start among those that owned the objects; 0 where the data directory has them, and one
    /// process at a time.
    pub start: u64,
    /// Keeps its objects from background work while a backup reads them.
    pub hold: ObjectHold,
    /// The directories whose names are durable.
    named: Arc<DurableNames>,
    /// Whether the store applies the conditions of requests.
    pub(crate) is_conditional: bool,
    /// What the URL of an object begins with, without a `/` at its end.
    url: String,
}

/// An object cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteObjectError {
    /// The object store failed. The object may exist.
    #[error(transparent)]
    Store(#[from] Error),
    /// The disk has no more space, or the store of the records is closed.
    #[error(transparent)]
    Space(#[from] CommitError),
    /// Another object has the name. Nothing was written, and it must not be deleted.
    #[error("another object has this name: path=`{path}`")]
    Occupied {
        /// The name.
        path: String,
    },
    /// A directory cannot be created or synced.
    #[error("a directory cannot be created: {0}")]
    Directory(#[from] io::Error),
}

impl ObjectArea {
    /// In files of a directory, which is created. Every file and its name are synced before a write returns.
    ///
    /// # Errors
    /// A directory that cannot be used.
    pub fn in_directory(directory: &FilePath, disk: Option<DiskSpace>) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::File::open(parent)?.sync_all()?;
        }
        let store = LocalFileSystem::new_with_prefix(directory).map_err(io::Error::other)?;
        let store = Arc::new(store.with_fsync(true));
        let url = format!("file://{}", fs::canonicalize(directory)?.display());
        let (directory, named) = (Some(directory.into()), Arc::default());
        Ok(Self {
            store,
            name: "file",
            directory,
            disk,
            start: 0,
            hold: ObjectHold::default(),
            named,
            is_conditional: true,
            url,
        })
    }

    /// In memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::remote(Arc::new(InMemory::new()), "memory", "memory://".to_owned())
    }

    /// At a URL.
    pub(crate) fn remote(store: Arc<dyn ObjectStore>, name: &'static str, url: String) -> Self {
        let (directory, disk, named) = (None, None, Arc::default());
        let hold = ObjectHold::default();
        Self { store, name, directory, disk, start: 0, hold, named, is_conditional: true, url }
    }

    /// At a URL, whichever data directory uses it: for tests.
    ///
    /// # Errors
    /// Variables that are malformed, or missing.
    #[cfg(feature = "testing")]
    pub fn at(url: &crate::ObjectsUrl) -> object_store::Result<Self> {
        Ok(Self::remote(crate::cloud::open(url)?, url.kind.scheme(), url.to_string()))
    }

    /// In a store of the test's choice.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn of(store: Arc<dyn ObjectStore>) -> Self {
        Self::remote(store, "test", "test://".to_owned())
    }

    /// The URL of an object.
    #[must_use]
    pub fn url_of(&self, path: &str) -> String {
        format!("{}/{path}", self.url)
    }

    /// Checks that the store is there, once an object is not: it may be back with the store. A directory that has
    /// nothing is not the one that had objects, such as where a disk is not mounted.
    ///
    /// # Errors
    /// The store that is absent, or cannot be read.
    pub async fn check_present(&self) -> object_store::Result<()> {
        let Some(directory) = self.directory.clone() else {
            return self.store.list(None).next().await.transpose().map(drop);
        };
        let first = tokio::task::spawn_blocking(move || match fs::read_dir(&directory) {
            Ok(mut entries) => match entries.next() {
                Some(entry) => entry.map(drop),
                None => Err(io::Error::new(io::ErrorKind::NotFound, "the directory is empty")),
            },
            Err(error) => Err(error),
        });
        let first = first.await.map_err(io::Error::other).flatten();
        first.map_err(|error| Error::Generic { store: self.name, source: error.into() })
    }

    /// Whether an object is shorter than it was written, once a range of it cannot be read.
    pub async fn is_shortened(&self, path: &Path, size: u64) -> bool {
        self.store.head(path).await.is_ok_and(|found| found.size < size)
    }

    /// Deletes an object, and what a crash left of a write of it, durably. An absent one is not an error, unless the
    /// store is absent too.
    ///
    /// # Errors
    /// A failed store.
    pub async fn delete(&self, path: &str) -> object_store::Result<()> {
        match self.store.delete(&Path::from(path)).await {
            Err(Error::NotFound { .. }) => self.check_present().await?,
            deleted => deleted?,
        }
        let Some(root) = self.directory.clone() else { return Ok(()) };
        let path = path.to_owned();
        let removed = tokio::task::spawn_blocking(move || remove_staged(&root, &path)).await;
        let removed = removed.map_err(io::Error::other).flatten();
        removed.map_err(|error| Error::Generic { store: self.name, source: error.into() })
    }

    /// Makes the deletes of objects without directories in their paths durable.
    ///
    /// # Errors
    /// A directory that cannot be synced.
    pub async fn sync_deletes(&self) -> object_store::Result<()> {
        let Some(root) = self.directory.clone() else { return Ok(()) };
        let synced = tokio::task::spawn_blocking(move || fs::File::open(&root)?.sync_all()).await;
        let synced = synced.map_err(io::Error::other).flatten();
        synced.map_err(|error| Error::Generic { store: self.name, source: error.into() })
    }

    /// Writes an object, whose path may name directories that do not exist. It is durable when this returns, the names
    /// of new directories included. The claim of the disk ends when it is dropped: once the object is published, or
    /// deleted.
    ///
    /// # Errors
    /// Every kind of [`WriteObjectError`].
    pub async fn put(
        &self,
        path: &str,
        payload: PutPayload,
    ) -> Result<Option<SpaceClaim>, WriteObjectError> {
        let claim = match &self.disk {
            Some(disk) => Some(disk.claim(payload.content_length() as u64).await?),
            None => None,
        };
        self.put_claimed(path, payload, claim).await
    }

    /// The same for an object that replaces more bytes of rows, which are deleted once it is published: it may use a
    /// part of the free bytes that are reserved.
    ///
    /// # Errors
    /// Every kind of [`WriteObjectError`].
    pub async fn put_to_replace_rows(
        &self,
        path: &str,
        payload: PutPayload,
    ) -> Result<Option<SpaceClaim>, WriteObjectError> {
        let bytes = payload.content_length() as u64;
        let claim = match &self.disk {
            Some(disk) => Some(disk.claim_to_replace_rows(bytes).await?),
            None => None,
        };
        self.put_claimed(path, payload, claim).await
    }

    /// Writes an object that does not exist. It may exist after a try whose response was lost: then it is the same.
    ///
    /// # Errors
    /// [`WriteObjectError::Occupied`], [`WriteObjectError::Store`].
    async fn create(&self, path: &Path, payload: PutPayload) -> Result<(), WriteObjectError> {
        if self.is_conditional {
            let if_absent = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match self.store.put_opts(path, payload.clone(), if_absent).await {
                Err(Error::AlreadyExists { .. }) => {}
                created => return Ok(created.map(drop)?),
            }
        }
        match self.store.get(path).await {
            Ok(found) => match found.bytes().await? == Bytes::from(payload) {
                true => Ok(()),
                false => Err(WriteObjectError::Occupied { path: path.to_string() }),
            },
            Err(Error::NotFound { .. }) if !self.is_conditional => {
                Ok(self.store.put(path, payload).await.map(drop)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn put_claimed(
        &self,
        path: &str,
        payload: PutPayload,
        mut claim: Option<SpaceClaim>,
    ) -> Result<Option<SpaceClaim>, WriteObjectError> {
        if let (Some(root), Some((parents, _))) = (&self.directory, path.rsplit_once('/')) {
            let (root, parents) = (Arc::clone(root), parents.to_owned());
            let named = Arc::clone(&self.named);
            let create = move || named.create(&root, &parents).map(drop);
            tokio::task::spawn_blocking(create).await.map_err(io::Error::other)??;
        }
        let location = Path::from(path);
        match self.directory {
            // Names are used once, and one process has the directory: only a try before this one may have written it.
            Some(_) => self.store.put(&location, payload).await.map(drop)?,
            None => self.create(&location, payload).await?,
        }
        claim.iter_mut().for_each(|claim| claim.written());
        Ok(claim)
    }
}

/// Removes the file in which the store writes an object before it has its name, which a crash leaves, and syncs the
/// directory: who forgets the object once it is deleted must not find it after a loss of power.
fn remove_staged(root: &FilePath, path: &str) -> io::Result<()> {
    let staged = root.join(format!("{path}{STAGED}"));
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    if let Err(error) = fs::remove_file(&staged)
        && !is_absent(&error)
    {
        return Err(error);
    }
    match staged.parent().map(fs::File::open).transpose() {
        Ok(Some(directory)) => directory.sync_all(),
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Most directories that are remembered: those of the streams that are sealed in a day.
const NAMES_MAX: usize = 4096;

/// The directories whose names this process synced. The name of one that an earlier process created may have been lost
/// with that process before it was synced.
#[derive(Debug, Default)]
struct DurableNames(Mutex<HashSet<PathBuf>>);

impl DurableNames {
    /// Creates the directories of a path below `root`, and makes their names durable, once for each: the store syncs
    /// only the directory of a file. How many were synced.
    fn create(&self, root: &FilePath, parents: &str) -> io::Result<usize> {
        let (mut directory, mut synced) = (root.to_owned(), 0);
        for name in parents.split('/') {
            let parent = directory.clone();
            directory.push(name);
            let is_durable = match fs::create_dir(&directory) {
                Ok(()) => false,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.lock().contains(&directory)
                }
                Err(error) => return Err(error),
            };
            if !is_durable {
                fs::File::open(&parent)?.sync_all()?;
                synced += 1;
                self.add(directory.clone());
            }
        }
        Ok(synced)
    }

    fn add(&self, directory: PathBuf) {
        let mut names = self.lock();
        // The others are synced once more when they are used.
        if names.len() >= NAMES_MAX {
            names.clear();
        }
        names.insert(directory);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_is_present_if_it_has_an_object_or_is_remote_and_answers() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("log");
        let area = ObjectArea::in_directory(&directory, None).unwrap();
        assert!(area.check_present().await.is_err(), "empty");
        area.put("a=1/1.parquet", PutPayload::from_static(b"bytes")).await.unwrap();
        assert!(area.check_present().await.is_ok());
        fs::rename(&directory, folder.path().join("away")).unwrap();
        let absent = area.check_present().await;
        assert!(matches!(absent, Err(Error::Generic { .. })), "{absent:?}");
        assert!(ObjectArea::in_memory().check_present().await.is_ok());
    }

    #[tokio::test]
    async fn a_delete_removes_what_a_crash_left_of_a_write() {
        let folder = tempfile::tempdir().unwrap();
        let area = ObjectArea::in_directory(folder.path(), None).unwrap();
        area.put("a/1", PutPayload::from_static(b"bytes")).await.unwrap();
        let staged = folder.path().join("a/2#1");
        fs::write(&staged, b"byt").unwrap();

        for path in ["a/1", "a/2", "a/3"] {
            area.delete(path).await.unwrap();
        }

        assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn an_object_is_written_below_directories_that_do_not_exist() {
        let folder = tempfile::tempdir().unwrap();
        let area = ObjectArea::in_directory(&folder.path().join("log"), None).unwrap();

        for path in ["a=1/date=2026-11-25/1.parquet", "a=1/date=2026-11-25/2.parquet", "3.parquet"]
        {
            area.put(path, PutPayload::from_static(b"bytes")).await.unwrap();
            let url = area.url_of(path);
            let file = url.strip_prefix("file://").unwrap();
            assert_eq!(fs::read(file).unwrap(), b"bytes", "{url}");
        }
    }

    #[test]
    fn the_name_of_a_directory_is_synced_once_in_a_process_also_if_it_existed() {
        let folder = tempfile::tempdir().unwrap();
        let (first, next) = (DurableNames::default(), DurableNames::default());
        let (root, path) = (folder.path(), "a=1/date=2026-11-25");

        assert_eq!(first.create(root, path).unwrap(), 2);
        assert_eq!(first.create(root, path).unwrap(), 0);
        assert_eq!(first.create(root, "a=1/date=2026-11-26").unwrap(), 1);
        // A process after a crash in between.
        assert_eq!(next.create(root, path).unwrap(), 2);
        assert_eq!(next.create(root, path).unwrap(), 0);
        fs::remove_dir(root.join(path)).unwrap();
        assert_eq!(next.create(root, path).unwrap(), 1, "it was created again");
    }

    #[test]
    fn the_remembered_directories_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let names = DurableNames::default();
        for number in 0..=NAMES_MAX {
            names.add(PathBuf::from(number.to_string()));
        }
        assert!(names.lock().len() <= NAMES_MAX);
        assert_eq!(names.create(folder.path(), "a").unwrap(), 1);
    }
}
