//! Reading a blob: its record by the conditions, then its bytes, in pieces that are verified.

mod ahead;
#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use trestle_kv::Snapshot;
use trestle_model::limits::READ_MESSAGE_BYTES_MAX;
use trestle_rpc::layer::shares::Share;
use uuid::Uuid;

use self::ahead::read_ahead;
use super::{BlobKey, BlobState, Blobs, StateName, decode_record};
use crate::{
    append::ReadStep,
    blocks::BlockList,
    checksum::Crc64,
    conditions::{ConditionError, Conditions, Freshness},
    error::BlobError,
    extent::{EXTENT_BYTES, Extent, ExtentId, to_usize},
    keys::BlobRow,
    pages::PinnedChunks,
    record::{BlobRecord, Content, Part, StoredBlock},
};

/// The range that a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestedRange {
    /// The first byte.
    pub(crate) offset: u64,
    /// At least 1; none: up to the end.
    pub(crate) length: Option<u64>,
}

/// A blob that is being read.
pub(crate) struct OpenedBlob {
    /// Its record.
    pub(crate) record: BlobRecord,
    /// Whether the client needs the content.
    pub(crate) freshness: Freshness,
    /// The bytes that are read.
    pub(crate) range: Range<u64>,
    pub(super) key: BlobKey,
    pub(crate) state: BlobState,
    pub(super) source: ContentSource,
}

/// Where the bytes come from.
pub(super) enum ContentSource {
    Row(Bytes),
    Whole(Part),
    Blocks(BlockList),
    /// The pieces of an append blob of this generation.
    Appended(u64),
    /// The chunks of a page blob.
    Paged(PinnedChunks),
}

/// A state of a blob that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundBlob {
    /// Which state it is.
    pub(crate) state: BlobState,
    /// Its record.
    pub(crate) record: BlobRecord,
    /// The result of the conditions.
    pub(crate) freshness: Freshness,
}

impl Blobs {
    /// The record of a blob, by the conditions.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], a condition or lease, or a failed read.
    pub(crate) async fn get(
        &self,
        (blob, name): (&BlobKey, impl Into<StateName>),
        (conditions, lease_id): (&Conditions, Option<Uuid>),
    ) -> Result<FoundBlob, BlobError> {
        let (state, record) = match name.into() {
            StateName::Current => {
                let value = self.engine.get(&BlobState::Current.row(blob)).await?;
                let record = decode_record(value.as_ref())?.ok_or_else(|| blob.not_found())?;
                (BlobState::Current, record)
            }
            name => {
                let snapshot = self.engine.snapshot().await?;
                return self.get_in(&*snapshot, (blob, name), (conditions, lease_id)).await;
            }
        };
        let freshness = self.check_read(&record, conditions, lease_id)?;
        Ok(FoundBlob { state, record, freshness })
    }

    /// As [`Blobs::get`], in a snapshot.
    ///
    /// # Errors
    /// As [`Blobs::get`].
    pub(crate) async fn get_in(
        &self,
        snapshot: &dyn Snapshot,
        (blob, name): (&BlobKey, impl Into<StateName>),
        (conditions, lease_id): (&Conditions, Option<Uuid>),
    ) -> Result<FoundBlob, BlobError> {
        let (state, record) = name.into().find(snapshot, blob).await?;
        let freshness = self.check_read(&record, conditions, lease_id)?;
        Ok(FoundBlob { state, record, freshness })
    }

    fn check_read(
        &self,
        record: &BlobRecord,
        conditions: &Conditions,
        lease_id: Option<Uuid>,
    ) -> Result<Freshness, BlobError> {
        record.lease.check_read(lease_id, self.now()).map_err(BlobError::BlobLease)?;
        Ok(conditions.check_read(record)?)
    }

    /// Opens a blob for reading, by the conditions: record and small content are of one moment.
    ///
    /// # Errors
    /// As [`Blobs::get`], a range outside of the content, and an archived blob.
    pub(crate) async fn open(
        &self,
        blob: (BlobKey, impl Into<StateName>),
        range: Option<RequestedRange>,
        required: (&Conditions, Option<Uuid>),
    ) -> Result<OpenedBlob, BlobError> {
        let opened = self.open_even_archived(blob, range, required).await?;
        opened.record.check_online()?;
        Ok(opened)
    }

    /// As [`Blobs::open`], also where the blob is archived.
    ///
    /// # Errors
    /// As [`Blobs::open`], but for that.
    pub(super) async fn open_even_archived(
        &self,
        (blob, name): (BlobKey, impl Into<StateName>),
        range: Option<RequestedRange>,
        (conditions, lease_id): (&Conditions, Option<Uuid>),
    ) -> Result<OpenedBlob, BlobError> {
        let snapshot: Arc<dyn Snapshot> = self.engine.snapshot().await?.into();
        let (state, record) = name.into().find(&*snapshot, &blob).await?;
        let freshness = self.check_read(&record, conditions, lease_id)?;
        let range = match freshness {
            Freshness::NotModified => 0..0,
            _ => bounded(range, record.content.size())?,
        };
        let source = self.source(snapshot, (&blob, state, &record), &state.numbers()).await?;
        Ok(OpenedBlob { record, freshness, range, key: blob, state, source })
    }

    /// Opens a state that was read from this snapshot, also one that is deleted or archived.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn open_stored(
        &self,
        snapshot: Arc<dyn Snapshot>,
        (key, state, record): (BlobKey, BlobState, BlobRecord),
    ) -> Result<OpenedBlob, BlobError> {
        // The small content of a deleted blob is at its etag.
        let numbers = match (state, record.deletion) {
            (BlobState::Current, Some(_)) => vec![record.etag.0.get()],
            _ => state.numbers(),
        };
        let source = self.source(snapshot, (&key, state, &record), &numbers).await?;
        let (freshness, range) = (Freshness::Modified, 0..record.content.size());
        Ok(OpenedBlob { record, freshness, range, key, state, source })
    }

    /// Where the bytes of a state are; small content is in the row with these numbers.
    async fn source(
        &self,
        snapshot: Arc<dyn Snapshot>,
        (blob, state, record): (&BlobKey, BlobState, &BlobRecord),
        numbers: &[u64],
    ) -> Result<ContentSource, BlobError> {
        Ok(match record.content {
            Content::Inline { size } => {
                let row = snapshot.get(&blob.row(BlobRow::Inline, numbers)).await?;
                ContentSource::Row(inline(row.as_ref(), size)?)
            }
            Content::Whole(part) => ContentSource::Whole(part),
            Content::Blocks { list, .. } => {
                ContentSource::Blocks(BlockList::read(&*snapshot, (blob, list), &self.reads).await?)
            }
            Content::Append(content) => ContentSource::Appended(content.generation),
            Content::Pages(content) => {
                let version = (content.generation, record.etag);
                ContentSource::Paged(PinnedChunks::new((blob.clone(), state), version, snapshot))
            }
        })
    }

    /// The bytes of an opened blob, in pieces of up to a message.
    pub(crate) fn bytes(self, opened: &OpenedBlob) -> BoxStream<'static, Result<Bytes, BlobError>> {
        let range = opened.range.clone();
        match &opened.source {
            ContentSource::Row(row) => {
                let piece = row.get(to_usize(range.start)..to_usize(range.end));
                let piece = piece.map(|piece| row.slice_ref(piece)).unwrap_or_default();
                stream::iter((!piece.is_empty()).then_some(Ok(piece))).boxed()
            }
            ContentSource::Whole(part) => self.pieces(opened, vec![*part], range),
            ContentSource::Blocks(list) => {
                let (parts, range) = parts_in(&list.blocks, range);
                match self.reads.list(parts.len() * size_of::<Part>()) {
                    Ok(held) => self.read_steps(opened, steps(parts, range), Some(held)),
                    Err(error) => stream::iter([Err(error)]).boxed(),
                }
            }
            ContentSource::Appended(generation) => {
                let steps = self.appended(&opened.key, *generation, range);
                self.read_steps(opened, steps, None)
            }
            ContentSource::Paged(chunks) => {
                let steps = self.paged(chunks.clone(), range);
                self.read_steps(opened, steps, None)
            }
        }
    }

    /// The bytes of a range of some of the contents of an opened blob.
    pub(super) fn pieces(
        self,
        opened: &OpenedBlob,
        parts: Vec<Part>,
        range: Range<u64>,
    ) -> BoxStream<'static, Result<Bytes, BlobError>> {
        self.read_steps(opened, steps(parts, range), None)
    }

    /// The bytes of these steps. `held` is the memory of the steps.
    fn read_steps(
        self,
        opened: &OpenedBlob,
        steps: impl Stream<Item = Result<ReadStep, BlobError>> + Send + 'static,
        held: Option<Share>,
    ) -> BoxStream<'static, Result<Bytes, BlobError>> {
        let memory = self.reads.clone();
        let (key, state, content) = (opened.key.clone(), opened.state, opened.record.content);
        let read = move |step: Result<ReadStep, BlobError>| {
            let (blobs, key) = (self.clone(), key.clone());
            async move {
                let what = match step? {
                    ReadStep::Bytes(bytes) => return Ok(bytes),
                    ReadStep::Object(extent, range) => {
                        match blobs.objects.read(extent, range).await? {
                            Some(bytes) => return Ok(bytes),
                            None => format!("object {}", extent.id.object()),
                        }
                    }
                    ReadStep::Missing(offset) => format!("the piece at {offset}"),
                };
                Err(blobs.missing((&key, state), &content, &what).await)
            }
        };
        read_ahead(steps.map(read), memory, held).boxed()
    }

    /// The error of absent bytes: the blob was overwritten or deleted long ago, or is damaged.
    async fn missing(
        &self,
        (blob, state): (&BlobKey, BlobState),
        content: &Content,
        what: &str,
    ) -> BlobError {
        let snapshot = match self.engine.snapshot().await {
            Ok(snapshot) => snapshot,
            Err(error) => return error.into(),
        };
        match state.stored(&*snapshot, blob).await {
            Ok(record) if record.content.has_bytes_of(content) => {
                BlobError::corrupt(format!("{what} is missing"))
            }
            Ok(_) | Err(BlobError::BlobNotFound(_)) => ConditionError::NotMet.into(),
            Err(error) => error,
        }
    }
}

/// The bytes of a row with a checksum, verified.
///
/// # Errors
/// [`BlobError::Corrupt`].
pub(crate) fn inline(row: Option<&Bytes>, size: u64) -> Result<Bytes, BlobError> {
    let row = row.ok_or_else(|| BlobError::corrupt("inline content"))?;
    let fields = row.split_first_chunk::<8>();
    let (checksum, bytes) = fields.ok_or_else(|| BlobError::corrupt("inline content"))?;
    if bytes.len() as u64 != size || Crc64::of(bytes) != u64::from_le_bytes(*checksum) {
        return Err(BlobError::corrupt("inline content differs from its checksum"));
    }
    Ok(row.slice(8..))
}

/// The range that is read of a content of this length.
fn bounded(range: Option<RequestedRange>, size: u64) -> Result<Range<u64>, BlobError> {
    let Some(RequestedRange { offset, length }) = range else { return Ok(0..size) };
    if offset >= size {
        return Err(BlobError::PastEnd { field: "range", size });
    }
    let end = length.map_or(size, |length| size.min(offset.saturating_add(length)));
    Ok(offset..end)
}

/// The pieces of a range of a content: the extent of each, and the range in it.
pub(crate) fn pieces_of_part(
    part: Part,
    range: Range<u64>,
) -> impl Iterator<Item = (Extent, Range<u64>)> {
    pieces(vec![part], range)
}

/// The parts of the blocks that a range lies in, and the range in them.
fn parts_in(blocks: &[StoredBlock], range: Range<u64>) -> (Vec<Part>, Range<u64>) {
    let (mut parts, mut skipped, mut start) = (Vec::new(), 0, 0_u64);
    for StoredBlock { part, .. } in blocks {
        let end = start.saturating_add(part.size);
        if end <= range.start {
            skipped = end;
        } else if start < range.end {
            parts.push(*part);
        } else {
            break;
        }
        start = end;
    }
    parts.shrink_to_fit();
    (parts, range.start - skipped..range.end - skipped)
}

/// The steps that read a range of contents that follow each other.
fn steps(
    parts: Vec<Part>,
    range: Range<u64>,
) -> impl Stream<Item = Result<ReadStep, BlobError>> + Send + 'static {
    stream::iter(pieces(parts, range).map(|(extent, range)| Ok(ReadStep::Object(extent, range))))
}

/// The pieces of a range of contents that follow each other: the extent of each, and the range in it.
fn pieces(parts: Vec<Part>, range: Range<u64>) -> impl Iterator<Item = (Extent, Range<u64>)> {
    let starts = parts.into_iter().scan(0, |end: &mut u64, part| {
        let start = *end;
        *end = end.saturating_add(part.size);
        Some((start, part))
    });
    starts.flat_map(move |(start, part)| {
        let requested = range.start.saturating_sub(start).min(part.size)
            ..range.end.saturating_sub(start).min(part.size);
        let extents = requested.start / EXTENT_BYTES..requested.end.div_ceil(EXTENT_BYTES);
        let extents = if requested.is_empty() { 0..0 } else { extents };
        extents.flat_map(move |index| {
            let extent_start = index * EXTENT_BYTES;
            let size = EXTENT_BYTES.min(part.size - extent_start);
            let extent =
                Extent { id: ExtentId { content: part.content, mark: part.mark, index }, size };
            let inside = requested.start.saturating_sub(extent_start)
                ..size.min(requested.end.saturating_sub(extent_start));
            let step = READ_MESSAGE_BYTES_MAX as u64;
            let (first, end) = (inside.start, inside.end);
            (0..(end - first).div_ceil(step)).map(move |piece| {
                let from = first + piece * step;
                (extent, from..end.min(from + step))
            })
        })
    })
}
