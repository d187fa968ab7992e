//! The objects of a backup, read by pieces.

use std::{
    collections::HashMap,
    fmt::{self, Debug, Display, Formatter},
    ops::Range,
    sync::Arc,
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    path::Path,
};

use super::cache::PartCache;
use crate::{
    lists::ObjectRef,
    names::PartName,
    pieces::{PIECE_BYTES, pieces},
    repository::Repository,
    verify::{self, BadPart},
};

/// What errors and the status name such a store.
pub(super) const NAME: &str = "backup";
/// Bytes of pieces that are kept: readers of segments read small ranges of one.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// The objects of an area.
pub(super) struct BackedUpObjects {
    repository: Arc<Repository>,
    objects: HashMap<String, ObjectRef>,
    cache: PartCache<Bytes>,
}

impl BackedUpObjects {
    /// Without objects.
    pub(super) fn new(repository: Arc<Repository>) -> Self {
        Self { repository, objects: HashMap::new(), cache: PartCache::new(CACHE_BYTES) }
    }

    /// Adds an object.
    pub(super) fn add(&mut self, object: ObjectRef) {
        self.objects.insert(object.path.clone(), object);
    }

    async fn piece(&self, object: &ObjectRef, at: (u64, u64)) -> Result<Bytes> {
        let parts = PartName::from_bytes(&object.parts);
        let name = parts.ok_or_else(|| failed(&"an object has no name"))?.piece(at.0);
        let read = async {
            let read = verify::piece(&self.repository, object, at).await;
            // A part that is missing or changed is content that is lost: repeating the read does not help.
            let lost = |bad: BadPart| Error::NotFound {
                path: object.path.clone(),
                source: bad.to_string().into(),
            };
            let read = read.map_err(|error| failed(&error))?.map_err(lost)?;
            let bytes = read.len();
            Ok((Bytes::from(read), bytes))
        };
        self.cache.read(name, read).await
    }

    async fn read(&self, object: &ObjectRef, range: &Range<u64>) -> Result<Bytes> {
        let mut read = BytesMut::new();
        let first = range.start / PIECE_BYTES;
        let of_range = |at: &(u64, u64)| at.0 >= first && at.1 < range.end;
        for at in pieces(object.bytes).filter(of_range) {
            let piece = self.piece(object, at).await?;
            let length = piece.len() as u64;
            let cut = |position: u64| position.saturating_sub(at.1).min(length);
            let (start, end) = (cut(range.start), cut(range.end));
            let part = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let part = part.and_then(|(start, end)| piece.get(start..end));
            read.extend_from_slice(part.unwrap_or_default());
        }
        Ok(read.freeze())
    }
}

fn failed(error: &impl Display) -> Error {
    Error::Generic { store: NAME, source: error.to_string().into() }
}

fn read_only<T>() -> Result<T> {
    Err(Error::NotSupported { source: "a backup accepts no writes".into() })
}

impl Debug for BackedUpObjects {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackedUpObjects").field("objects", &self.objects.len()).finish()
    }
}

impl Display for BackedUpObjects {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

#[async_trait]
impl ObjectStore for BackedUpObjects {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        read_only()
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        read_only()
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let Some(object) = self.objects.get(location.as_ref()) else {
            let path = location.to_string();
            return Err(Error::NotFound { path, source: "the backup has no such object".into() });
        };
        let range = match &options.range {
            Some(range) => range.as_range(object.bytes).map_err(|error| failed(&error))?,
            None => 0..object.bytes,
        };
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: Default::default(),
            size: object.bytes,
            e_tag: None,
            version: None,
        };
        let read = match options.head {
            true => Bytes::new(),
            false => self.read(object, &range).await?,
        };
        let payload = GetResultPayload::Stream(stream::iter([Ok(read)]).boxed());
        Ok(GetResult {
            payload,
            meta,
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        stream::iter([read_only()]).boxed()
    }

    /// Nothing: no reader lists, but to see that the store is there.
    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::empty().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        read_only()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        read_only()
    }
}
