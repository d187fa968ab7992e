//! The object store: extents as immutable objects under names that are never used twice. An object is durable when it
//! was written, and nothing refers to it before.

mod partial;

use std::{collections::BTreeSet, io, ops::Range};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use object_store::{Error, ObjectStoreExt as _, PutPayload, path::Path};
use trestle_kv::SpaceClaim;
use trestle_objects::{ObjectArea, ObjectHold, WriteObjectError};

use crate::{
    error::BlobError,
    extent::{Extent, ExtentId},
    record::{ContentId, Part},
};

/// Bits of the ids of contents that one start may write.
const CONTENTS_OF_START_BITS: u32 = 40;
/// The last start whose contents have ids of their own.
const STARTS_MAX: u64 = u64::MAX >> CONTENTS_OF_START_BITS;
/// Deletes in flight.
const DELETES_MAX: usize = 8;

/// Where the contents of large blobs are stored. Clones share it.
#[derive(Clone)]
pub(crate) struct Objects(ObjectArea);

impl Objects {
    /// In the area of blobs.
    pub(crate) fn new(area: ObjectArea) -> Self {
        Self(area)
    }

    /// In memory.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        Self(ObjectArea::in_memory())
    }

    /// In files of a directory, which is created.
    ///
    /// # Errors
    /// A directory that cannot be used.
    #[cfg(test)]
    pub(crate) fn in_directory(directory: &std::path::Path) -> io::Result<Self> {
        ObjectArea::in_directory(directory, None).map(Self)
    }

    /// In a store of the test's choice.
    #[cfg(test)]
    pub(crate) fn of(store: std::sync::Arc<dyn object_store::ObjectStore>) -> Self {
        Self(ObjectArea::of(store))
    }

    /// The first content id of this start: those of different starts differ, also of copies of one data directory.
    pub(crate) fn first_content(&self) -> u64 {
        self.0.start.min(STARTS_MAX) << CONTENTS_OF_START_BITS
    }

    /// The kind of the store: `file`, `memory`, `s3`, `gs` or `az`.
    pub(crate) fn name(&self) -> &'static str {
        self.0.name
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
        self.0.put(&id.object(), payload).await.map_err(|error| match error {
            WriteObjectError::Store(error) => BlobError::objects(&error),
            WriteObjectError::Space(error) => error.into(),
            error @ WriteObjectError::Occupied { .. } => {
                tracing::error!(%error, "an object of another server is not overwritten");
                BlobError::Occupied
            }
            WriteObjectError::Directory(error) => {
                BlobError::objects(&Error::Generic { store: self.0.name, source: error.into() })
            }
        })
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
        let read =
            self.0.store.get_ranges(&path(extent.id), &[frames.data, frames.checksums]).await;
        let parts = match read {
            Ok(parts) => parts,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => {
                let size = extent.frames(&(0..extent.size)).checksums.end;
                return match self.0.is_shortened(&path(extent.id), size).await {
                    true => Err(corrupt("it is too short")),
                    false => Err(BlobError::objects(&error)),
                };
            }
        };
        let [data, checksums] = parts.as_slice() else {
            return Err(corrupt("a range is missing"));
        };
        let verified = extent.verified(&range, data, checksums);
        verified.map(Some).map_err(|error| corrupt(&error.to_string()))
    }

    /// Keeps published objects while a backup reads them.
    pub(crate) fn hold(&self) -> &ObjectHold {
        &self.0.hold
    }

    /// Deletes the objects of a content; absent ones are not errors.
    ///
    /// # Errors
    /// [`BlobError::Objects`]; some may be deleted.
    pub(crate) async fn delete(&self, part: Part) -> Result<(), BlobError> {
        let extents = Extent::of_part(part);
        self.delete_each(extents.map(|extent| extent.id)).await
    }

    /// Deletes objects; absent ones are not errors.
    ///
    /// # Errors
    /// As [`Objects::delete`].
    pub(crate) async fn delete_each(
        &self,
        ids: impl Iterator<Item = ExtentId> + Send,
    ) -> Result<(), BlobError> {
        let delete = |id| async move {
            match self.0.store.delete(&path(id)).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(BlobError::objects(&error)),
            }
        };
        futures::stream::iter(ids.map(delete)).buffer_unordered(DELETES_MAX).try_collect().await
    }

    /// Makes deletes durable: what is deleted then does not come back after a loss of power.
    ///
    /// # Errors
    /// [`BlobError::Objects`].
    pub(crate) async fn sync_deletes(&self) -> Result<(), BlobError> {
        self.0.sync_deletes().await.map_err(|error| BlobError::objects(&error))
    }

    /// Deletes what writes of these contents left that a crash ended; how many files.
    ///
    /// # Errors
    /// [`BlobError::Objects`]; some may be deleted.
    pub(crate) async fn delete_partial(
        &self,
        contents: BTreeSet<ContentId>,
    ) -> Result<usize, BlobError> {
        let Some(directory) = self.0.directory.clone() else { return Ok(0) };
        let deleted = tokio::task::spawn_blocking(move || partial::delete(&directory, &contents));
        let failed = |error: io::Error| {
            BlobError::objects(&Error::Generic { store: self.0.name, source: error.into() })
        };
        deleted.await.map_err(io::Error::other).map_err(failed)?.map_err(failed)
    }

    /// Every object of this service, in any order.
    pub(crate) fn list(&self) -> BoxStream<'static, Result<ExtentId, BlobError>> {
        let objects = self.0.store.list(None);
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

#[cfg(test)]
mod tests;
