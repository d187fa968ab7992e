//! The object store of a data directory: at a URL, in files of the directory, or in memory. Each service that stores
//! objects has an area of its own in it.

mod area;
mod binding;
mod cloud;
#[cfg(feature = "testing")]
pub mod faulty;
mod http;
pub mod https;
mod location;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::StreamExt as _;
use object_store::prefix::PrefixStore;
use trestle_kv::DiskSpace;

use self::binding::StoreBinding;

pub use self::{
    area::{ObjectArea, WriteObjectError},
    location::ObjectsUrl,
};

/// Directory of the objects of blobs within the data directory.
const BLOBS: &str = "blob";
/// Directory of the segments of logs within the data directory, and their prefix at a URL. The objects of blobs have no
/// prefix there.
const LOGS: &str = "log";

/// The object store of a data directory. Clones share it.
#[derive(Clone)]
pub struct ObjectStorage {
    /// The contents of blobs.
    pub blobs: ObjectArea,
    /// The segments of logs.
    pub logs: ObjectArea,
}

/// The object store of a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenObjectsError {
    /// The store cannot be reached, or does not permit the access.
    #[error("the object store cannot be used: {0}")]
    Store(String),
    /// The objects there are those of another data directory.
    #[error("the object store is in use by another data directory, use another path: url=`{url}`")]
    Claimed {
        /// The store.
        url: String,
    },
    /// The objects of the data directory are in another place.
    #[error("the objects of this data directory are in another place: found=`{found}`")]
    Elsewhere {
        /// That place.
        found: String,
    },
    /// The data directory cannot be used.
    #[error("the data directory cannot be used: {0}")]
    Directory(#[from] io::Error),
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
        let binding = StoreBinding::read(data_dir)?;
        let elsewhere = |found: String| Err(OpenObjectsError::Elsewhere { found });
        let (url, binding) = match (url, binding) {
            (None, None) => return Ok(Self::in_files(data_dir, disk.as_ref())?),
            (Some(url), None) => match objects_in(data_dir)? {
                Some(found) => return elsewhere(found.display().to_string()),
                None => (url, StoreBinding::create(data_dir, url)?),
            },
            (Some(url), Some(binding)) if binding.url == url.to_string() => (url, binding),
            (_, Some(binding)) => return elsewhere(binding.url),
        };
        let store = cloud::open(url).map_err(|error| OpenObjectsError::of(&error))?;
        binding.claim(&*store).await?;
        let name = url.kind.scheme();
        let logs = Arc::new(PrefixStore::new(Arc::clone(&store), LOGS));
        Ok(Self {
            blobs: ObjectArea::remote(store, name, url.to_string()),
            logs: ObjectArea::remote(logs, name, format!("{url}/{LOGS}")),
        })
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
        Ok(Self { blobs: area(BLOBS)?, logs: area(LOGS)? })
    }

    /// In memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { blobs: ObjectArea::in_memory(), logs: ObjectArea::in_memory() }
    }
}

/// The first directory of a data directory that has objects.
fn objects_in(data_dir: &Path) -> io::Result<Option<PathBuf>> {
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
