//! Which pages of a page blob have data, and which were changed since a snapshot.

#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc};

use trestle_kv::{Snapshot, turns::Pace};
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::{
    PAGE_BYTES, PageError,
    chunk::{CHUNK_BYTES, CHUNK_PAGES, PageChunk},
    content_of,
    pinned::PinnedChunks,
    read::chunk_indices,
    stored_chunk::{ChunkView, StoredChunk},
};
use crate::{
    blobs::{BlobKey, BlobState, Blobs, FoundBlob, RequestedRange, StateName, decode_record},
    conditions::Conditions,
    error::BlobError,
    record::Content,
};

/// A request for ranges of pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRangesRequest {
    /// Only pages that were changed since this snapshot; none: all that have data.
    pub(crate) since: Option<Ticks>,
    /// The bytes that are examined: first and end.
    pub(crate) bytes: (u64, u64),
    /// At most so many ranges.
    pub(crate) ranges_max: usize,
}

/// Pages that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageRange {
    /// Their bytes.
    pub(crate) bytes: Range<u64>,
    /// Whether their data was cleared since the snapshot.
    pub(crate) is_cleared: bool,
}

/// Ranges, and where the next ones begin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageRangeList {
    /// By offset; two that touch differ.
    pub(crate) ranges: Vec<PageRange>,
    /// The offset of the next one, if there may be one.
    pub(crate) next: Option<u64>,
}

/// What a page is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedState {
    /// It has data, or new data.
    Data,
    /// Its data was cleared.
    Cleared,
}

/// What a page is in a list of all pages with data, or of changes since an earlier chunk.
fn state(
    page: u64,
    now: Option<&PageChunk>,
    since: Option<Option<&PageChunk>>,
) -> Option<ListedState> {
    let now = now.and_then(|chunk| chunk.page(page));
    let Some(earlier) = since else {
        return now.map(|_| ListedState::Data);
    };
    match (now, earlier.and_then(|chunk| chunk.page(page))) {
        (None, None) => None,
        (None, Some(_)) => Some(ListedState::Cleared),
        (Some(now), Some(earlier)) if now == earlier => None,
        (Some(_), _) => Some(ListedState::Data),
    }
}

impl PageRangeList {
    /// Adds a page behind all others; returns false where there are enough.
    fn add(&mut self, start: u64, state: ListedState, ranges_max: usize) -> bool {
        let (end, is_cleared) = (start + PAGE_BYTES, state == ListedState::Cleared);
        let is_full = self.ranges.len() >= ranges_max;
        match self.ranges.last_mut() {
            Some(last) if last.bytes.end == start && last.is_cleared == is_cleared => {
                last.bytes.end = end;
            }
            _ if is_full => {
                self.next = Some(start);
                return false;
            }
            _ => self.ranges.push(PageRange { bytes: start..end, is_cleared }),
        }
        true
    }

    /// Adds the pages of a chunk, which is there in these epochs.
    fn add_chunk(
        &mut self,
        epochs: &[StoredChunk],
        view: ChunkView,
        request: &PageRangesRequest,
    ) -> bool {
        let Some(first) = epochs.first() else { return true };
        let start = first.index * CHUNK_BYTES;
        let newest = |view: ChunkView| view.newest(epochs).map(|stored| &stored.chunk);
        let now = newest(view);
        let since = request
            .since
            .map(|snapshot| newest(ChunkView { before_epoch: Some(snapshot.get()), ..view }));
        let inside = |page: &u64| {
            let at = start + page * PAGE_BYTES;
            (request.bytes.0..request.bytes.1).contains(&at)
        };
        (0..CHUNK_PAGES).filter(inside).all(|page| match state(page, now, since) {
            Some(found) => self.add(start + page * PAGE_BYTES, found, request.ranges_max),
            None => true,
        })
    }
}

impl Blobs {
    /// The record of a page blob or a snapshot by the conditions, its chunks, and the bytes of a range, cut at its end.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], a blob of another kind, a condition or lease, or a failed read.
    pub(crate) async fn open_pages(
        &self,
        (blob, name): (&BlobKey, impl Into<StateName>),
        range: Option<RequestedRange>,
        required: (&Conditions, Option<Uuid>),
    ) -> Result<(FoundBlob, PinnedChunks, Range<u64>), BlobError> {
        let snapshot: Arc<dyn Snapshot> = self.engine.snapshot().await?.into();
        let found = self.get_in(&*snapshot, (blob, name), required).await?;
        let content = content_of(&found.record, blob)?;
        let version = (content.generation, found.record.etag);
        let chunks = PinnedChunks::new((blob.clone(), found.state), version, snapshot);
        let bytes = range.map_or(0..content.size, |RequestedRange { offset, length }| {
            let end = length.map_or(content.size, |length| offset.saturating_add(length));
            offset.min(content.size)..end.min(content.size)
        });
        // Whole pages.
        let first = bytes.start - bytes.start % PAGE_BYTES;
        Ok((found, chunks, first..bytes.end))
    }

    /// Whether the pages of a view can be compared with those of a snapshot.
    ///
    /// # Errors
    /// An absent snapshot, one that is newer, or one of content that was replaced since.
    pub(crate) async fn check_previous(
        &self,
        blob: &BlobKey,
        view: ChunkView,
        previous: Ticks,
    ) -> Result<(), BlobError> {
        if view.before_epoch.is_some_and(|at| previous.get() > at) {
            return Err(PageError::PreviousNewer.into());
        }
        let value = self.engine.get(&BlobState::Past(previous).row(blob)).await?;
        let record = decode_record(value.as_ref())?.filter(|past| past.version.is_none());
        let record = record.ok_or(PageError::PreviousAbsent)?;
        match record.content {
            Content::Pages(content) if content.generation == view.generation => Ok(()),
            _ => Err(PageError::Overwritten.into()),
        }
    }

    /// Ranges of pages that have data, or that were changed since a snapshot.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn page_ranges(
        &self,
        chunks: &mut PinnedChunks,
        request: PageRangesRequest,
    ) -> Result<PageRangeList, BlobError> {
        let (mut list, mut pace) = (PageRangeList::default(), Pace::default());
        let mut indices = chunk_indices(&(request.bytes.0..request.bytes.1));
        while !indices.is_empty() {
            let part = chunks.chunks(self, indices.clone(), &mut pace).await?;
            for epochs in part.chunks.chunk_by(|one, other| one.index == other.index) {
                if !list.add_chunk(epochs, chunks.view(), &request) {
                    return Ok(list);
                }
                pace.step().await;
            }
            indices.start = part.next.unwrap_or(indices.end);
        }
        Ok(list)
    }
}
