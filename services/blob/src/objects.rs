//! The object store: extents as immutable objects under names that are never used twice. An object is durable when it
//! was written, and nothing refers to it before.

mod binding;
mod cloud;
mod http;
mod location;
mod partial;

use std::{collections::BTreeSet, fs, io, ops::Range, path::Path as FilePath, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutPayload, local::LocalFileSystem, memory::InMemory,
    path::Path,
};

pub use self::location::ObjectsUrl;

use self::binding::StoreBinding;
use trestle_kv::{DiskSpace, SpaceClaim};

use crate::{
    error::BlobError,
    extent::{Extent, ExtentId},
    record::{ContentId, Part},
};

/// Directory of the objects within the data directory.
const DIRECTORY: &str = "blob";

/// Deletes in flight.
const DELETES_MAX: usize = 8;

/// Where the contents of large blobs are stored. Clones share it.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    name: &'static str,
    /// The directory of the files, if the objects are files.
    directory: Option<Arc<FilePath>>,
    /// The disk that the objects share with the store of the records.
    disk: Option<DiskSpace>,
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
    /// The blobs of the data directory are in another place.
    #[error("the blobs of this data directory are in another place: found=`{found}`")]
    Elsewhere {
        /// That place.
        found: String,
    },
    /// The data directory cannot be used.
    #[error("the data directory cannot be used: {0}")]
    Directory(#[from] io::Error),
}

impl OpenObjectsError {
    fn of(error: &Error) -> Self {
        Self::Store(error.to_string())
    }
}

impl Objects {
    /// Where the blobs of a data directory are: at the URL, or without one in files of its directory `blob`. It is the
    /// same as when the data directory was used before. Files share the space of the `disk`.
    ///
    /// # Errors
    /// Every kind of [`OpenObjectsError`].
    pub async fn open(
        data_dir: &FilePath,
        url: Option<&ObjectsUrl>,
        disk: Option<DiskSpace>,
    ) -> Result<Self, OpenObjectsError> {
        let directory = data_dir.join(DIRECTORY);
        let binding = StoreBinding::read(data_dir)?;
        let elsewhere = |found: String| Err(OpenObjectsError::Elsewhere { found });
        let (url, binding) = match (url, binding) {
            (None, None) => return Ok(Self { disk, ..Self::in_directory(&directory)? }),
            (Some(_), None) if has_files(&directory)? => {
                return elsewhere(directory.display().to_string());
            }
            (Some(url), None) => (url, StoreBinding::create(data_dir, url)?),
            (Some(url), Some(binding)) if binding.url == url.to_string() => (url, binding),
            (_, Some(binding)) => return elsewhere(binding.url),
        };
        let store = cloud::open(url).map_err(|error| OpenObjectsError::of(&error))?;
        binding.claim(&*store).await?;
        Ok(Self { store, name: url.kind.scheme(), directory: None, disk: None })
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

    /// In files of a directory, which is created. Every file and its name are synced before a write returns.
    ///
    /// # Errors
    /// A directory that cannot be used.
    pub(crate) fn in_directory(directory: &FilePath) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::File::open(parent)?.sync_all()?;
        }
        let store = LocalFileSystem::new_with_prefix(directory).map_err(io::Error::other)?;
        let store = Arc::new(store.with_fsync(true));
        Ok(Self { store, name: "file", directory: Some(directory.into()), disk: None })
    }

    /// In memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { store: Arc::new(InMemory::new()), name: "memory", directory: None, disk: None }
    }

    /// In a store of the test's choice.
    #[cfg(test)]
    pub(crate) fn of(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, name: "test", directory: None, disk: None }
    }

    /// The kind of the store: `file`, `memory`, `s3`, `gs` or `az`.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Writes an extent, whose data may be in pieces. Returns its claim of the disk, which ends when it is published or
    /// deleted.
    ///
    /// # Errors
    /// [`BlobError::Objects`], [`BlobError::Full`]. The object may exist then.
    pub(crate) async fn write(
        &self,
        id: ExtentId,
        pieces: Vec<Bytes>,
    ) -> Result<Option<SpaceClaim>, BlobError> {
        let checksums = id.checksums(&pieces);
        let payload: PutPayload = pieces.into_iter().chain([checksums]).collect();
        let mut claim = match &self.disk {
            Some(disk) => Some(disk.claim(payload.content_length() as u64).await?),
            None => None,
        };
        self.store.put(&path(id), payload).await.map_err(|error| BlobError::objects(&error))?;
        claim.iter_mut().for_each(SpaceClaim::written);
        Ok(claim)
    }

    /// Reads a range of an extent, which lies in it and is not empty. None: there is no such object.
    ///
    /// # Errors
    /// [`BlobError::Corrupt`] where the bytes differ from their checksum, [`BlobError::Objects`].
    pub(crate) async fn read(
        &self,
        extent: Extent,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, BlobError> {
        let corrupt =
            |what: &str| BlobError::corrupt(format!("object {}: {what}", extent.id.object()));
        let frames = extent.frames(&range);
        let read = self.store.get_ranges(&path(extent.id), &[frames.data, frames.checksums]).await;
        let parts = match read {
            Ok(parts) => parts,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => {
                // A shortened object has no such range.
                let size = self.store.head(&path(extent.id)).await.map(|meta| meta.size);
                let frames = extent.frames(&(0..extent.size));
                return match size {
                    Ok(size) if size < frames.checksums.end => Err(corrupt("it is too short")),
                    _ => Err(BlobError::objects(&error)),
                };
            }
        };
        let [data, checksums] = parts.as_slice() else {
            return Err(corrupt("a range is missing"));
        };
        let verified = extent.verified(&range, data, checksums);
        verified.map(Some).map_err(|error| corrupt(&error.to_string()))
    }

    /// Deletes the objects of a content; absent ones are no error.
    ///
    /// # Errors
    /// [`BlobError::Objects`]; some may be deleted.
    pub(crate) async fn delete(&self, part: Part) -> Result<(), BlobError> {
        let extents = Extent::of_content(part.content, part.size);
        self.delete_each(extents.map(|extent| extent.id)).await
    }

    /// Deletes objects; absent ones are no error.
    ///
    /// # Errors
    /// As [`Objects::delete`].
    pub(crate) async fn delete_each(
        &self,
        ids: impl Iterator<Item = ExtentId> + Send,
    ) -> Result<(), BlobError> {
        let delete = |id| async move {
            match self.store.delete(&path(id)).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(BlobError::objects(&error)),
            }
        };
        futures::stream::iter(ids.map(delete)).buffer_unordered(DELETES_MAX).try_collect().await
    }

    /// Deletes what writes of these contents left that a crash ended; how many files.
    ///
    /// # Errors
    /// [`BlobError::Objects`]; some may be deleted.
    pub(crate) async fn delete_partial(
        &self,
        contents: BTreeSet<ContentId>,
    ) -> Result<usize, BlobError> {
        let Some(directory) = self.directory.clone() else { return Ok(0) };
        let deleted = tokio::task::spawn_blocking(move || partial::delete(&directory, &contents));
        let failed = |error: io::Error| {
            BlobError::objects(&Error::Generic { store: self.name, source: error.into() })
        };
        deleted.await.map_err(io::Error::other).map_err(failed)?.map_err(failed)
    }

    /// Every object of this service, in any order.
    pub(crate) fn list(&self) -> BoxStream<'static, Result<ExtentId, BlobError>> {
        let objects = self.store.list(None);
        let extent = |object: Result<object_store::ObjectMeta, Error>| async move {
            match object {
                // A path below is that of another data directory.
                Ok(meta) => ExtentId::of_object(meta.location.as_ref()).map(Ok),
                Err(error) => Some(Err(BlobError::objects(&error))),
            }
        };
        objects.filter_map(extent).boxed()
    }
}

fn path(id: ExtentId) -> Path {
    Path::from(id.object())
}

/// Whether a directory has entries.
fn has_files(directory: &FilePath) -> io::Result<bool> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        entries => Ok(entries?.next().is_some()),
    }
}

#[cfg(test)]
mod tests;
