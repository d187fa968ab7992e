//! The data of an upload: digests of it, and extents that are written as it arrives. Memory is one extent for each
//! upload, and bounded over all of them; small content stays in memory and becomes a row.

mod memory;
#[cfg(test)]
mod tests;

pub(crate) use self::memory::UploadMemory;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::task::JoinHandle;
use trestle_kv::{CommitError, SpaceClaim, Version};
use trestle_model::{limits::INLINE_BYTES_MAX, time::Ticks};

use self::memory::HeldMemory;
use crate::{
    blobs::{Blobs, NewContent},
    checksum::{Digests, UploadDigest},
    error::BlobError,
    extent::{EXTENT_BYTES, ExtentId},
    ids,
    objects::Objects,
    record::{ContentId, Part},
    space_shortage::SpaceShortage,
    sweep::ORPHAN_GRACE,
};

/// Memory of an upload of small content, in KiB.
const SMALL_KIB: usize = INLINE_BYTES_MAX / 1024;
/// Memory of any other upload, in KiB.
const LARGE_KIB: usize = 4 * 1024;
const _: () = assert!(LARGE_KIB as u64 * 1024 == EXTENT_BYTES, "an upload holds one extent");
/// Pieces of fewer bytes are joined to ones of this length.
const JOINED_BYTES: usize = 16 * 1024;
/// How long an upload may take from its first object to the change that publishes it: later the sweeper takes its
/// objects for those of an upload that a crash ended. The id is used up to an hour after it was allocated.
const UPLOAD_MAX: Duration = Duration::from_secs(20 * 3600);
const _: () = assert!(
    UPLOAD_MAX.as_secs() + ids::BLOCK_TIME.as_secs() + 3600 < ORPHAN_GRACE.as_secs(),
    "an upload ends before its objects are orphans"
);

/// What becomes of small content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SmallContent {
    /// It becomes a row.
    Inline,
    /// It becomes an object, as all other content.
    Object,
    /// It stays in memory, whatever its length, of at most an extent.
    Memory,
}

/// An upload in progress. Dropped before its end, it deletes what it wrote.
pub(crate) struct Upload {
    blobs: Blobs,
    digest: UploadDigest,
    small: SmallContent,
    pieces: Vec<Bytes>,
    /// Small pieces behind those.
    joined: BytesMut,
    buffered: u64,
    written: WrittenObjects,
    memory: Option<HeldMemory>,
}

/// Data that arrived completely.
pub(crate) struct Uploaded {
    /// What was computed of it.
    pub(crate) digests: Digests,
    /// Where it is.
    pub(crate) content: NewContent,
    /// Deletes its objects, until it is published.
    pub(crate) written: WrittenObjects,
}

impl Upload {
    /// Begins without data.
    pub(crate) fn new(blobs: &Blobs, small: SmallContent, with_md5: bool) -> Self {
        let written = WrittenObjects::none(blobs);
        let digest = UploadDigest::new(with_md5);
        let (pieces, joined, blobs) = (Vec::new(), BytesMut::new(), blobs.clone());
        Self { blobs, digest, small, pieces, joined, buffered: 0, written, memory: None }
    }

    /// The length of the data so far, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.digest.size()
    }

    /// Takes further data, and writes the extents that it completes.
    ///
    /// # Errors
    /// [`BlobError::Busy`] without memory, and errors of the object store.
    pub(crate) async fn push(&mut self, mut data: Bytes) -> Result<(), BlobError> {
        self.digest.update(&data);
        self.reserve(data.len() as u64).await?;
        while !data.is_empty() {
            let room = usize::try_from(EXTENT_BYTES - self.buffered).unwrap_or(usize::MAX);
            let piece = data.split_to(data.len().min(room));
            self.buffered += piece.len() as u64;
            self.keep(piece);
            if self.buffered == EXTENT_BYTES && self.small != SmallContent::Memory {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Joins small pieces: an extent of single bytes would hold an allocation for each, or a message for each.
    fn keep(&mut self, piece: Bytes) {
        if piece.len() >= JOINED_BYTES || self.pieces.is_empty() {
            self.end_joined();
            return self.pieces.push(piece);
        }
        if self.joined.capacity() - self.joined.len() < piece.len() {
            self.end_joined();
            self.joined = BytesMut::with_capacity(JOINED_BYTES);
        }
        self.joined.extend_from_slice(&piece);
    }

    fn end_joined(&mut self) {
        if !self.joined.is_empty() {
            self.pieces.push(std::mem::take(&mut self.joined).freeze());
        }
    }

    async fn reserve(&mut self, more: u64) -> Result<(), BlobError> {
        let is_small = self.size() <= INLINE_BYTES_MAX as u64
            && self.buffered + more <= INLINE_BYTES_MAX as u64;
        let kib = if is_small { SMALL_KIB } else { LARGE_KIB };
        let held = self.memory.as_ref().map_or(0, HeldMemory::kib);
        let missing = kib.saturating_sub(held);
        if missing > 0 {
            let held = self.memory.take();
            self.memory = Some(self.blobs.memory.reserve(held, missing).await?);
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), BlobError> {
        let (needed, status) = (self.buffered, self.blobs.engine.status());
        let shortage = SpaceShortage::of(needed, &status);
        if status.is_space_short() {
            return Err(BlobError::Full(shortage));
        }
        if self.written.contents.is_empty() {
            self.written.began_at = Some(self.blobs.now());
            self.written.contents.push((self.blobs.ids.content().await?, 0));
        }
        self.end_joined();
        let pieces = std::mem::take(&mut self.pieces);
        self.buffered = 0;
        // The write has the memory, also where the upload is dropped meanwhile.
        let written = self.written.write(pieces, self.memory.take()).await;
        self.memory = written.map_err(|error| match error {
            BlobError::Full(_) => BlobError::Full(shortage),
            error => error,
        })?;
        Ok(())
    }

    /// Ends the upload.
    ///
    /// # Errors
    /// Errors of the object store.
    pub(crate) async fn finish(mut self) -> Result<Uploaded, BlobError> {
        let is_small = self.small == SmallContent::Inline
            && self.written.contents.is_empty()
            && self.buffered <= INLINE_BYTES_MAX as u64;
        let is_inline = is_small || self.small == SmallContent::Memory;
        if !is_inline && self.buffered > 0 {
            self.flush().await?;
        }
        self.end_joined();
        let digests = self.digest.finish();
        let content = match self.written.contents.last() {
            Some((content, _)) => {
                let (content, mark) = (*content, self.blobs.ids.mark());
                NewContent::Whole(Part { content, mark, size: digests.size })
            }
            None => NewContent::inline(&self.pieces),
        };
        Ok(Uploaded { digests, content, written: self.written })
    }
}

/// Until when uploaded objects may be published. The sweeper reads which contents are live in a change that is later
/// than that: by the time of its own commit a change finds that it is late, however long its process stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PublishedBy(Option<Ticks>);

impl PublishedBy {
    /// Of content without objects.
    pub(crate) const NEVER_LATE: Self = Self(None);

    /// Whether a change of this version is in time.
    ///
    /// # Errors
    /// [`BlobError::Busy`].
    pub(crate) fn check(self, version: Version) -> Result<(), BlobError> {
        match self.0.is_none_or(|until| version.ticks() <= until) {
            true => Ok(()),
            false => Err(BlobError::Busy),
        }
    }
}

/// Objects that nothing refers to yet: deleted when this is dropped.
pub(crate) struct WrittenObjects {
    objects: Objects,
    /// When the first of them was written.
    began_at: Option<Ticks>,
    /// Each content, with the number of its objects.
    contents: Vec<(ContentId, u64)>,
    /// The mark of these contents.
    mark: u64,
    /// Of the disk, for these objects.
    claims: Vec<SpaceClaim>,
    /// A write in progress, which nothing cancels: a file that is half written by another thread would appear after its
    /// deletion.
    writing: Option<JoinHandle<Result<WrittenExtent, BlobError>>>,
}

/// An extent that is an object now.
struct WrittenExtent {
    claim: Option<SpaceClaim>,
    /// That of its data.
    memory: Option<HeldMemory>,
}

impl WrittenObjects {
    /// None yet.
    pub(crate) fn none(blobs: &Blobs) -> Self {
        let (objects, mark) = (blobs.objects.clone(), blobs.ids.mark());
        let (contents, claims) = (Vec::new(), Vec::new());
        Self { objects, began_at: None, contents, mark, claims, writing: None }
    }

    /// Writes the next extent of the last content, and returns the memory of its data.
    async fn write(
        &mut self,
        pieces: Vec<Bytes>,
        memory: Option<HeldMemory>,
    ) -> Result<Option<HeldMemory>, BlobError> {
        let Some((content, count)) = self.contents.last_mut() else { return Err(BlobError::Busy) };
        let id = ExtentId { content: *content, mark: self.mark, index: *count };
        // Counted before it exists, so that it is deleted if the write fails half-way.
        *count += 1;
        let objects = self.objects.clone();
        let write = async move {
            let claim = objects.write(id, pieces).await?;
            Ok(WrittenExtent { claim, memory })
        };
        let written = self.writing.insert(tokio::spawn(write)).await;
        self.writing = None;
        let written = written.unwrap_or(Err(BlobError::Busy));
        forget_occupied(&mut self.contents, written.as_ref().err());
        let WrittenExtent { claim, memory } = written?;
        self.claims.extend(claim);
        Ok(memory)
    }

    /// Those of another upload too.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.began_at = self.began_at.into_iter().chain(other.began_at).min();
        self.contents.append(&mut other.contents);
        self.claims.append(&mut other.claims);
    }

    /// Runs the change that publishes the objects, which checks that it is in time. If it fails and certainly wrote
    /// nothing, they are deleted at once. Otherwise, also where the caller is cancelled meanwhile, only the sweeper may
    /// delete them.
    ///
    /// # Errors
    /// Those of the change.
    pub(crate) async fn publish<T, F>(
        mut self,
        change: impl FnOnce(PublishedBy) -> F,
    ) -> Result<T, BlobError>
    where
        F: Future<Output = Result<T, BlobError>>,
    {
        let due = PublishedBy(self.began_at.map(|at| at.after(UPLOAD_MAX)));
        let contents = std::mem::take(&mut self.contents);
        let published = change(due).await;
        match &published {
            Ok(_) | Err(BlobError::Commit(CommitError::Unknown { .. })) => {}
            Err(_) => self.contents = contents,
        }
        published
    }
}

/// Does not count the last object where it is that of another server, which must not be deleted.
fn forget_occupied(contents: &mut [(ContentId, u64)], error: Option<&BlobError>) {
    if let (Some(BlobError::Occupied), Some((_, count))) = (error, contents.last_mut()) {
        *count -= 1;
    }
}

impl Drop for WrittenObjects {
    fn drop(&mut self) {
        let mut contents = std::mem::take(&mut self.contents);
        if contents.is_empty() {
            return;
        }
        // Without a runtime the process is shutting down; the sweeper deletes them later.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (objects, claims) = (self.objects.clone(), std::mem::take(&mut self.claims));
        let writing = self.writing.take();
        runtime.spawn(async move {
            let last = match writing {
                Some(writing) => writing.await.ok(),
                None => None,
            };
            let error = last.as_ref().and_then(|last| last.as_ref().err());
            forget_occupied(&mut contents, error);
            let ids = contents.into_iter().flat_map(|(content, count)| {
                (0..count).map(move |index| ExtentId { content, mark: 0, index })
            });
            if let Err(error) = objects.delete_each(ids).await {
                tracing::warn!(%error, "objects of an upload are not deleted yet");
            }
            drop((last, claims));
        });
    }
}
