//! Changing pages, the length and the sequence number of a page blob.

use std::{collections::BTreeMap, ops::Range};

use bytes::Bytes;
use trestle_kv::{ChangeSpec, ReadId, Writes, transact};

use super::{
    ATTEMPTS_MAX, PAGE_BYTES, PageCommand, PageError, check,
    chunk::{CHUNK_BYTES, CHUNK_PAGES, PageChunk},
    content_of, epoch,
    read::chunk_indices,
    stored_chunk::ChunkView,
};
use crate::{
    blobs::{BlobKey, Blobs, decode_record},
    error::BlobError,
    etag::ETag,
    extent::to_usize,
    keys::{self, BlobRow},
    record::{BlobRecord, Content, PageContent},
    stored::Stored as _,
};

/// Most chunks that one change clears; more are cleared in several changes.
const CLEARED_MAX: usize = 2048;

/// A change of a page blob as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PageUpdate {
    /// The new length, in bytes: whole pages.
    pub(crate) size: Option<u64>,
    /// What becomes of the sequence number.
    pub(crate) sequence: Option<SequenceUpdate>,
}

/// What becomes of a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SequenceUpdate {
    /// It is set.
    Set(u64),
    /// It is raised to this, if it is less.
    Raise(u64),
    /// It is incremented by one.
    Increment,
}

impl SequenceUpdate {
    /// The new number.
    ///
    /// # Errors
    /// [`PageError::SequenceTooLarge`].
    fn apply(self, current: u64) -> Result<u64, PageError> {
        match self {
            Self::Set(number) => Ok(number),
            Self::Raise(number) => Ok(current.max(number)),
            Self::Increment if current < i64::MAX as u64 => Ok(current + 1),
            Self::Increment => Err(PageError::SequenceTooLarge),
        }
    }
}

/// The chunks that a write covers partly, as far as they are known before the change.
struct PartlyWritten {
    index: u64,
    /// The chunk of an earlier epoch, which never changes.
    earlier: PageChunk,
    /// The chunk of the epoch of the write.
    current: ReadId,
}

impl Blobs {
    /// Writes pages. `data` is as long as whole pages, `offset` the start of one.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], a blob of another kind, a lease or a condition that does not permit it, pages that
    /// are not in the blob, or a failed commit.
    pub(crate) async fn write_pages(
        &self,
        command: PageCommand,
        offset: u64,
        data: Bytes,
    ) -> Result<BlobRecord, BlobError> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(record) = self.try_write_pages(&command, offset, &data).await? {
                return Ok(record);
            }
        }
        Err(BlobError::KeepsChanging(command.blob.name))
    }

    /// Whether pages could be written now: to reject it before the data is sent.
    ///
    /// # Errors
    /// As [`Blobs::write_pages`].
    pub(crate) async fn check_pages(&self, command: &PageCommand) -> Result<(), BlobError> {
        let mut current = self.page_blob(&command.blob).await?;
        check(&mut current, command, self.now()).map(drop)
    }

    async fn page_blob(&self, blob: &BlobKey) -> Result<BlobRecord, BlobError> {
        let value = self.engine.get(&blob.row(BlobRow::Record, &[])).await?;
        decode_record(value.as_ref())?.ok_or_else(|| blob.not_found())
    }

    /// Returns none where there is a new snapshot, or the blob was replaced, meanwhile.
    async fn try_write_pages(
        &self,
        command: &PageCommand,
        offset: u64,
        data: &Bytes,
    ) -> Result<Option<BlobRecord>, BlobError> {
        let (blob, range) =
            (command.blob.clone(), offset..offset.saturating_add(data.len() as u64));
        let before = self.page_blob(&blob).await?;
        let (content, epoch_before) = (content_of(&before, &blob)?, epoch(&before));
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        let view = ChunkView { generation: content.generation, before_epoch: Some(epoch_before) };
        let mut partly = Vec::new();
        for index in chunk_indices(&range) {
            let pages = pages_inside(index, &range);
            if pages == (0..CHUNK_PAGES) {
                continue;
            }
            let earlier = self.chunk_in(&blob, view, index).await?;
            let place = (content.generation, index, epoch_before);
            let current = spec.read(keys::chunk(blob.container, &blob.name, place));
            partly.push(PartlyWritten { index, earlier, current });
        }
        let (command, data) = (command.clone(), data.clone());
        transact(&*self.engine, spec, move |reads, version| {
            let mut current = decode_record(reads.get(record))?.ok_or_else(|| blob.not_found())?;
            let content = check(&mut current, &command, version.ticks())?;
            if range.end > content.size {
                return Err(PageError::Range { size: content.size }.into());
            }
            if (content.generation, epoch(&current)) != (view.generation, epoch_before) {
                return Ok((Writes::new(), None));
            }
            let mut writes = Writes::new();
            for index in chunk_indices(&range) {
                let pages = pages_inside(index, &range);
                let start = index * CHUNK_BYTES + pages.start * PAGE_BYTES - range.start;
                let length = (pages.end - pages.start) * PAGE_BYTES;
                let data = data.slice(to_usize(start)..to_usize(start + length));
                let known = partly.iter().find(|partly| partly.index == index);
                let stored = known.and_then(|known| reads.get(known.current));
                let before = match (stored, known) {
                    (Some(row), _) => PageChunk::decode(row)?,
                    (None, Some(known)) => known.earlier.clone(),
                    (None, None) => PageChunk::default(),
                };
                let place = (content.generation, index, epoch_before);
                let key = keys::chunk(blob.container, &blob.name, place);
                writes.put(key, before.with(pages.start, &data).encode());
            }
            let changed = BlobRecord { etag: ETag(version.ticks()), ..current };
            writes.put(reads.key(record).clone(), changed.encode());
            Ok((writes, Some(changed)))
        })
        .await?
    }

    /// A chunk as a view has it.
    async fn chunk_in(
        &self,
        blob: &BlobKey,
        view: ChunkView,
        index: u64,
    ) -> Result<PageChunk, BlobError> {
        let part = self.chunks(blob, view.generation, index..index + 1).await?;
        Ok(view.newest(&part.chunks).map(|stored| stored.chunk.clone()).unwrap_or_default())
    }

    /// Clears pages: they read as zeros. `range` begins and ends with pages.
    ///
    /// # Errors
    /// As [`Blobs::write_pages`]. More than 128 MiB of pages that have data are cleared in several changes, of which a
    /// failure may leave some.
    pub(crate) async fn clear_pages(
        &self,
        command: PageCommand,
        range: Range<u64>,
    ) -> Result<BlobRecord, BlobError> {
        let mut current = self.page_blob(&command.blob).await?;
        let content = check(&mut current, &command, self.now())?;
        if range.end > content.size {
            return Err(PageError::Range { size: content.size }.into());
        }
        self.clear_and(&command, Some(range), PageUpdate::default()).await
    }

    /// Changes the length and the sequence number. Pages past the new length are cleared.
    ///
    /// # Errors
    /// As [`Blobs::clear_pages`], but for pages that are not in the blob.
    pub(crate) async fn update_pages(
        &self,
        command: PageCommand,
        update: PageUpdate,
    ) -> Result<BlobRecord, BlobError> {
        let mut current = self.page_blob(&command.blob).await?;
        let content = check(&mut current, &command, self.now())?;
        let cleared = update.size.filter(|size| *size < content.size);
        self.clear_and(&command, cleared.map(|size| size..content.size), update).await
    }

    /// Clears pages, then applies an update in the last change of it.
    async fn clear_and(
        &self,
        command: &PageCommand,
        range: Option<Range<u64>>,
        update: PageUpdate,
    ) -> Result<BlobRecord, BlobError> {
        let (mut range, mut attempts) = (range.unwrap_or(0..0), 0);
        // The first change checks the conditions; later ones are of the same call.
        let mut command = command.clone();
        while attempts < ATTEMPTS_MAX {
            let mut before = self.page_blob(&command.blob).await?;
            let content = check(&mut before, &command, self.now())?;
            let (rows, next) = self.cleared(&command.blob, content, &range).await?;
            let update = if next.is_none() { update } else { PageUpdate::default() };
            match self.publish_cleared(&command, &before, rows, update).await? {
                Some(record) if next.is_none() => return Ok(record),
                Some(record) => {
                    command.conditions = Default::default();
                    command.sequence = Default::default();
                    drop(record);
                    range.start = next.unwrap_or(range.end);
                }
                None => attempts += 1,
            }
        }
        Err(BlobError::KeepsChanging(command.blob.name))
    }

    /// The rows of chunks without the pages of a range, by index; and where the rest of the range begins.
    async fn cleared(
        &self,
        blob: &BlobKey,
        content: PageContent,
        range: &Range<u64>,
    ) -> Result<(BTreeMap<u64, PageChunk>, Option<u64>), BlobError> {
        let view = ChunkView { generation: content.generation, before_epoch: None };
        let (mut rows, mut indices) = (BTreeMap::new(), chunk_indices(range));
        while !indices.is_empty() {
            if rows.len() >= CLEARED_MAX {
                return Ok((rows, Some(indices.start * CHUNK_BYTES)));
            }
            let part = self.chunks(blob, content.generation, indices.clone()).await?;
            for epochs in part.chunks.chunk_by(|one, other| one.index == other.index) {
                let Some(stored) = view.newest(epochs) else { continue };
                let cleared = stored.chunk.without(&pages_inside(stored.index, range));
                if cleared != stored.chunk {
                    rows.insert(stored.index, cleared);
                }
            }
            indices.start = part.next.unwrap_or(indices.end);
        }
        Ok((rows, None))
    }

    /// Writes cleared chunks; returns none where the blob was changed meanwhile.
    async fn publish_cleared(
        &self,
        command: &PageCommand,
        before: &BlobRecord,
        rows: BTreeMap<u64, PageChunk>,
        update: PageUpdate,
    ) -> Result<Option<BlobRecord>, BlobError> {
        let (blob, command, etag) = (command.blob.clone(), command.clone(), before.etag);
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        transact(&*self.engine, spec, move |reads, version| {
            let mut current = decode_record(reads.get(record))?.ok_or_else(|| blob.not_found())?;
            let content = check(&mut current, &command, version.ticks())?;
            if current.etag != etag {
                return Ok((Writes::new(), None));
            }
            let (epoch, mut writes) = (epoch(&current), Writes::with_capacity(rows.len() + 1));
            for (index, chunk) in &rows {
                let place = (content.generation, *index, epoch);
                let key = keys::chunk(blob.container, &blob.name, place);
                // An empty chunk hides those of earlier epochs, of which there are none before the first snapshot.
                match chunk.is_empty() && epoch == 0 {
                    true => writes.delete(key),
                    false => writes.put(key, chunk.encode()),
                };
            }
            let sequence = update.sequence.map(|update| update.apply(content.sequence_number));
            let sequence_number = sequence.transpose()?.unwrap_or(content.sequence_number);
            let size = update.size.unwrap_or(content.size);
            let changed = BlobRecord {
                etag: ETag(version.ticks()),
                content: Content::Pages(PageContent { size, sequence_number, ..content }),
                ..current
            };
            writes.put(reads.key(record).clone(), changed.encode());
            Ok((writes, Some(changed)))
        })
        .await?
    }
}

/// The pages of a chunk that lie in a range of bytes, which begins and ends with pages.
fn pages_inside(index: u64, range: &Range<u64>) -> Range<u64> {
    let start = index * CHUNK_BYTES;
    let page = |offset: u64| offset.saturating_sub(start).min(CHUNK_BYTES) / PAGE_BYTES;
    page(range.start)..page(range.end)
}
