//! The object store of a data directory: at a URL, in files of the directory, or in memory; or that of a database, at a
//! URL. Each service that stores objects has an area of its own in it.

mod area;
mod binding;
mod cloud;
mod copies;
pub mod document;
#[cfg(feature = "testing")]
pub mod faulty;
mod hold;
mod http;
pub mod https;
mod location;
mod owner;
mod transfer;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::StreamExt as _;
use object_store::{ObjectStore, prefix::PrefixStore};
use trestle_kv::DiskSpace;

use self::{
    binding::{BindingFile, ClaimedStore, StoreBinding},
    owner::OwnedStore,
};

pub use self::{
    area::{ObjectArea, WriteObjectError},
    binding::BindingRecord,
    copies::{CopyTarget, SourceObjects},
    hold::{ObjectDeletes, ObjectHold},
    location::ObjectsUrl,
    owner::StoreOwner,
    transfer::{ObjectTransfer, TransferError, copy_object, object_size},
};

/// Directory of the objects of blobs within the data directory.
const BLOBS: &str = "blob";
/// Directory of the segments of logs within the data directory, and their prefix at a URL. The objects of blobs have no
/// prefix there.
const LOGS: &str = "log";

/// The object store of a data directory or of a database. Clones share it.
#[derive(Clone)]
pub struct ObjectStorage {
    /// The contents of blobs.
    pub blobs: ObjectArea,
    /// The segments of logs.
    pub logs: ObjectArea,
    /// Whether this process owns the objects; none where they are in the data directory, which it locks.
    pub owner: Option<StoreOwner>,
    /// Keeps the objects of both areas while a backup reads them.
    pub hold: ObjectHold,
}

/// The object store of a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenObjectsError {
    /// The store cannot be reached, or does not permit the access.
    #[error("the object store cannot be used: {0}")]
    Store(String),
    /// The objects there are those of another data directory, or of another database.
    #[error(
        "the object store is in use by another data directory or database, use another path: \
         url=`{url}`"
    )]
    Claimed {
        /// The store.
        url: String,
    },
    /// A copy of this data directory, or of this database, used the objects later, or this is a restored backup.
    #[error(
        "a copy of these records used the object store later: url=`{url}`, start=`{there}`, of \
         these records=`{here}`; give the copy a path of its own, see docs/operations.md, Blobs in \
         a cloud"
    )]
    Copied {
        /// The store.
        url: String,
        /// The number of the last start in the store.
        there: u64,
        /// The number of the last start of these records.
        here: u64,
    },
    /// The objects of the data directory, or of the database, are in another place.
    #[error("the objects of these records are in another place: found=`{found}`")]
    Elsewhere {
        /// That place.
        found: String,
    },
    /// The data directory cannot be used.
    #[error("the data directory cannot be used: {0}")]
    Directory(#[from] io::Error),
    /// The database, which has the record of its objects, cannot be read or written.
    #[error("the record of the objects cannot be used: {0}")]
    Record(String),
}

impl OpenObjectsError {
    fn of(error: &object_store::Error) -> Self {
        Self::Store(error.to_string())
    }
}

impl ObjectStorage {
    /// Where the objects of a data directory are: at the URL, or without one in files of the directory. It is the
    /// same as when the data directory was used before. Files share the space of the `disk`.
    ///
    /// # Errors
    /// Every kind of [`OpenObjectsError`].
    pub async fn open(
        data_dir: &Path,
        url: Option<&ObjectsUrl>,
        disk: Option<DiskSpace>,
    ) -> Result<Self, OpenObjectsError> {
        let binding = StoreBinding::in_directory(data_dir)?;
        let elsewhere = |found: String| Err(OpenObjectsError::Elsewhere { found });
        let url = match (url, binding) {
            (None, None) => return Ok(Self::in_files(data_dir, disk.as_ref())?),
            (None, Some(binding)) => return elsewhere(binding.url),
            (Some(url), None) => match objects_in(data_dir)? {
                Some(found) => return elsewhere(found.display().to_string()),
                None => url,
            },
            (Some(url), Some(_)) => url,
        };
        let store = cloud::open(url).map_err(|error| OpenObjectsError::of(&error))?;
        let record = BindingFile(data_dir.to_owned());
        let claimed = StoreBinding::claim(&record, url, &*store).await?;
        Ok(Self::owned(store, url, claimed, None))
    }

    /// The objects of records that other processes may serve too, at the URL that is kept beside those.
    ///
    /// # Errors
    /// Every kind of [`OpenObjectsError`] but that of a directory.
    pub async fn open_shared(
        record: Arc<dyn BindingRecord>,
        url: &ObjectsUrl,
    ) -> Result<Self, OpenObjectsError> {
        let store = cloud::open(url).map_err(|error| OpenObjectsError::of(&error))?;
        Self::shared(store, record, url).await
    }

    async fn shared(
        store: Arc<dyn ObjectStore>,
        record: Arc<dyn BindingRecord>,
        url: &ObjectsUrl,
    ) -> Result<Self, OpenObjectsError> {
        let claimed = StoreBinding::claim(&*record, url, &*store).await?;
        Ok(Self::owned(store, url, claimed, Some(record)))
    }

    /// At a URL, of a start that owns the objects there, perhaps together with others whose claims are recorded.
    fn owned(
        store: Arc<dyn ObjectStore>,
        url: &ObjectsUrl,
        claimed: ClaimedStore,
        shared: Option<Arc<dyn BindingRecord>>,
    ) -> Self {
        let ClaimedStore { claim, is_conditional } = claimed;
        let (start, name) = (claim.start, url.kind.scheme());
        let owner = StoreOwner::new(Arc::clone(&store), url.to_string(), claim, shared);
        let store: Arc<dyn ObjectStore> = Arc::new(OwnedStore::new(store, owner.clone()));
        let logs: Arc<dyn ObjectStore> = Arc::new(PrefixStore::new(Arc::clone(&store), LOGS));
        let area = |store, url| {
            let mut area = ObjectArea::remote(store, name, url);
            (area.start, area.is_conditional) = (start, is_conditional);
            area
        };
        let blobs = area(store, url.to_string());
        Self::of_areas(blobs, area(logs, format!("{url}/{LOGS}")), Some(owner))
    }

    fn of_areas(blobs: ObjectArea, mut logs: ObjectArea, owner: Option<StoreOwner>) -> Self {
        let hold = blobs.hold.clone();
        logs.hold = hold.clone();
        Self { blobs, logs, owner, hold }
    }

    /// Whether the store at a URL answers a read. Nothing is written, and no data directory is named.
    ///
    /// # Errors
    /// [`OpenObjectsError::Store`].
    pub async fn probe(url: &ObjectsUrl) -> Result<(), OpenObjectsError> {
        let store = cloud::open(url).map_err(|error| OpenObjectsError::of(&error))?;
        // The bucket is listed, because a read of an absent object also fails where there is no bucket.
        match store.list(None).next().await {
            None | Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(OpenObjectsError::of(&error)),
        }
    }

    /// In files of a data directory. Every file and its name are synced before a write returns.
    ///
    /// # Errors
    /// A directory that cannot be used.
    fn in_files(data_dir: &Path, disk: Option<&DiskSpace>) -> io::Result<Self> {
        let area = |name| ObjectArea::in_directory(&data_dir.join(name), disk.cloned());
        Ok(Self::of_areas(area(BLOBS)?, area(LOGS)?, None))
    }

    /// In stores that accept no writes, such as those of a backup. `name` is the kind of them, in errors and URLs.
    #[must_use]
    pub fn read_only(
        blobs: Arc<dyn ObjectStore>,
        logs: Arc<dyn ObjectStore>,
        name: &'static str,
    ) -> Self {
        let area = |store, folder| ObjectArea::remote(store, name, format!("{name}://{folder}"));
        Self::of_areas(area(blobs, BLOBS), area(logs, LOGS), None)
    }

    /// In memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::of_areas(ObjectArea::in_memory(), ObjectArea::in_memory(), None)
    }
}

/// Whether the objects of blobs of a data directory are at a URL.
#[must_use]
pub fn is_remote(data_dir: &Path) -> bool {
    data_dir.join(binding::FILE).exists()
}

/// The first directory of a data directory that has objects.
///
/// # Errors
/// A directory that cannot be read.
pub fn objects_in(data_dir: &Path) -> io::Result<Option<PathBuf>> {
    for name in [BLOBS, LOGS] {
        let directory = data_dir.join(name);
        match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            entries => {
                if entries?.next().is_some() {
                    return Ok(Some(directory));
                }
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
