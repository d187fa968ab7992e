//! The bytes of a segment that a chunk needs: known before it is decoded, read together, and decoded without I/O.

use std::{ops::Range, sync::Arc};

use bytes::{Buf as _, Bytes};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use parquet::{
    errors::ParquetError,
    file::reader::{ChunkReader, Length},
};

use super::{
    checksums::FRAME_BYTES,
    metadata::CachedMetadata,
    plan::{ColumnSet, GroupRows},
    source::{ReadSegmentError, SegmentSource},
};

/// Gaps up to this length are read too: verification reads whole frames anyway.
const GAP_BYTES_MAX: u64 = FRAME_BYTES;
/// Reads of one segment that run at once.
const READS_MAX: usize = 8;

/// Ranges of a file, in memory. Clones share them.
#[derive(Clone)]
pub(super) struct HeldRanges {
    size: u64,
    /// Sorted by their offsets.
    ranges: Arc<[(u64, Bytes)]>,
}

/// The ranges of the pages that have rows of `rows`, coalesced.
pub(super) fn ranges_of(
    metadata: &CachedMetadata,
    rows: &GroupRows,
    columns: &ColumnSet,
) -> Vec<Range<u64>> {
    let row_group = metadata.parquet().row_group(rows.group);
    let pages = metadata.parquet().page_index_for_row_group(rows.group);
    let mut ranges = Vec::new();
    for at in &columns.0 {
        let (start, length) = row_group.column(*at).byte_range();
        let Some(pages) = pages.offset_index(*at).map(|index| index.page_locations()) else {
            ranges.push(start..start + length);
            continue;
        };
        let row_of = |index: i64| usize::try_from(index).unwrap_or(usize::MAX);
        let begin = pages.partition_point(|page| row_of(page.first_row_index) <= rows.rows.start);
        let end = pages.partition_point(|page| row_of(page.first_row_index) < rows.rows.end);
        let offset_of = |offset: i64| u64::try_from(offset).unwrap_or(start);
        if let Some(first) = pages.first() {
            // The dictionary, if there is one.
            ranges.push(start..offset_of(first.offset));
        }
        for page in pages.get(begin.saturating_sub(1)..end).unwrap_or_default() {
            let offset = offset_of(page.offset);
            ranges.push(offset..offset + u64::try_from(page.compressed_page_size).unwrap_or(0));
        }
    }
    coalesced(ranges)
}

fn coalesced(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end + GAP_BYTES_MAX => {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Reads ranges, which [`ranges_of`] returned.
pub(super) async fn hold(
    source: &dyn SegmentSource,
    ranges: Vec<Range<u64>>,
) -> Result<HeldRanges, ReadSegmentError> {
    let reads = ranges.into_iter().map(|range| async move {
        let start = range.start;
        source.read(range).await.map(|bytes| (start, bytes))
    });
    let held: Vec<_> = stream::iter(reads).buffered(READS_MAX).try_collect().await?;
    Ok(HeldRanges { size: source.size(), ranges: held.into() })
}

impl HeldRanges {
    fn bytes_at(&self, start: u64) -> Option<Bytes> {
        let after = self.ranges.partition_point(|(offset, _)| *offset <= start);
        let (offset, bytes) = self.ranges.get(after.checked_sub(1)?)?;
        let skipped = usize::try_from(start - offset).ok()?;
        (skipped <= bytes.len()).then(|| bytes.slice(skipped..))
    }
}

fn not_held(start: u64) -> ParquetError {
    ParquetError::General(format!("a page is where none is: offset=`{start}`"))
}

impl Length for HeldRanges {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for HeldRanges {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.bytes_at(start).map(bytes::Buf::reader).ok_or_else(|| not_held(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = self.bytes_at(start).ok_or_else(|| not_held(start))?;
        if bytes.remaining() < length {
            return Err(not_held(start));
        }
        Ok(bytes.split_to(length))
    }
}
