//! Decodes a chunk of rows, whose bytes are in memory.

use std::{ops::Range, sync::Arc};

use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use trestle_kv::Direction;

use super::SegmentRead;
use crate::{
    row::{RowFields as _, RowSink},
    segment::{
        fetch::HeldRanges,
        metadata::CachedMetadata,
        plan::{ColumnSet, GroupRows, batch_rows, row_bytes},
        row::{ColumnArrays, SegmentRow},
        sealed::{RowEncoder, SealedRow},
        source::CorruptSegment,
        write::RowOrder,
    },
};

/// A chunk that is to be decoded.
pub(super) struct ChunkRequest {
    pub(super) metadata: CachedMetadata,
    pub(super) read: Arc<SegmentRead>,
    pub(super) rows: GroupRows,
    pub(super) columns: Arc<ColumnSet>,
    pub(super) ranges: HeldRanges,
}

/// Which rows of a chunk a predicate matches.
pub(super) enum MatchedRows {
    /// There is no predicate.
    All,
    /// These.
    Some(RowRanges),
}

/// Ranges of rows of a row group, ascending.
pub(super) struct RowRanges(Vec<Range<usize>>);

impl RowRanges {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From the first row to the last one.
    pub(super) fn span_in(&self, rows: &Range<usize>) -> Range<usize> {
        let start = self.0.first().map_or(rows.start, |range| range.start);
        start..self.0.last().map_or(rows.end, |range| range.end)
    }

    /// These rows, which are ascending.
    pub(super) fn of(rows: impl IntoIterator<Item = usize>) -> Self {
        let mut ranges = Self(Vec::new());
        rows.into_iter().for_each(|row| ranges.push(row));
        ranges
    }

    fn push(&mut self, row: usize) {
        match self.0.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => self.0.push(row..row + 1),
        }
    }
}

/// The rows within the window that the predicate matches.
pub(super) fn match_rows(request: &ChunkRequest) -> Result<MatchedRows, CorruptSegment> {
    let mut matched = RowRanges(Vec::new());
    each_match(request, |at, _| matched.push(at))?;
    Ok(MatchedRows::Some(matched))
}

/// The same, in the order of the read.
pub(super) fn order_rows(request: &ChunkRequest) -> Result<Vec<u32>, CorruptSegment> {
    let mut found = Vec::new();
    each_match(request, |at, row| {
        let position = (row.time(), row.sequence());
        found.push((position, u32::try_from(at).unwrap_or(u32::MAX)));
    })?;
    found.sort_unstable();
    if request.read.direction == Direction::Backward {
        found.reverse();
    }
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

/// Has a sink take in the rows within the window that the predicate matches.
pub(super) fn fold_rows<S: RowSink>(
    request: &ChunkRequest,
    mut sink: S,
) -> Result<S, CorruptSegment> {
    each_match(request, |_, row| sink.take(&row))?;
    Ok(sink)
}

/// Calls `found` with each row within the window that the predicate matches, and its place in the row group.
fn each_match(
    request: &ChunkRequest,
    mut found: impl FnMut(usize, SegmentRow<'_>),
) -> Result<(), CorruptSegment> {
    let read = &request.read;
    let mut at = request.rows.rows.start;
    for batch in batches(request, [request.rows.rows.clone()])? {
        let columns = ColumnArrays::of(&batch?, &request.columns, &request.metadata.schema)?;
        for index in 0..columns.rows {
            let row = columns.row(index);
            let matches = |row| read.predicate.as_ref().is_none_or(|found| found.matches(row));
            if read.window.contains(&row.time()) && matches(&row) {
                found(at + index, row);
            }
        }
        at += columns.rows;
    }
    Ok(())
}

/// The rows that match, in the order of the read.
pub(super) fn decode_matching(
    request: &ChunkRequest,
    matched: &MatchedRows,
) -> Result<Vec<SealedRow>, CorruptSegment> {
    let decoded = match matched {
        MatchedRows::All => batches(request, [request.rows.rows.clone()])?,
        MatchedRows::Some(matched) => batches(request, matched.0.iter().cloned())?,
    };
    let read = &request.read;
    let row_bytes = row_bytes(&request.metadata, request.rows.group, &request.columns);
    let row_bytes = usize::try_from(row_bytes).unwrap_or_default();
    let mut rows = Vec::new();
    for batch in decoded {
        let columns = ColumnArrays::of(&batch?, &request.columns, &request.metadata.schema)?;
        let mut encoder = RowEncoder::with_capacity(columns.rows, row_bytes);
        for row in (0..columns.rows).map(|index| columns.row(index)) {
            if read.window.contains(&row.time()) {
                encoder.push(row, read.fields)?;
            }
        }
        rows.extend(encoder.finish());
    }
    if request.metadata.order == RowOrder::Series {
        rows.sort_unstable_by_key(|row| (row.time, row.sequence));
    }
    if read.direction == Direction::Backward {
        rows.reverse();
    }
    Ok(rows)
}

/// The columns of some rows of the chunk, a few rows at a time.
fn batches(
    request: &ChunkRequest,
    rows: impl IntoIterator<Item = Range<usize>>,
) -> Result<ParquetRecordBatchReader, CorruptSegment> {
    let ChunkRequest { metadata, ranges, columns, .. } = request;
    let total = metadata.parquet().row_group(request.rows.group).num_rows();
    let total = usize::try_from(total).unwrap_or_default();
    let selection = RowSelection::from_consecutive_ranges(rows.into_iter(), total);
    let builder =
        ParquetRecordBatchReaderBuilder::new_with_metadata(ranges.clone(), metadata.arrow.clone())
            .with_row_groups(vec![request.rows.group])
            .with_projection(columns.mask(metadata))
            .with_row_selection(selection)
            .with_batch_size(batch_rows(metadata, request.rows.group, columns));
    Ok(builder.build()?)
}
