//! Row groups that are ordered by series: rows of any time are anywhere in them. Only the positions of all rows are
//! held; the rows are decoded in chunks, by time.

use super::{
    GroupRows, SegmentReader,
    chunk::{MatchedRows, RowRanges, decode_matching, order_rows},
};
use crate::segment::{
    fetch::{HeldRanges, hold, ranges_of},
    plan::{ColumnSet, chunk_rows},
    sealed::SealedRow,
    source::ReadSegmentError,
};

/// Chunks that are decoded together: each time all pages of the group are decompressed again.
pub(super) const CHUNKS: usize = 2;

/// A row group of which rows remain.
pub(super) struct SeriesGroup {
    rows: GroupRows,
    /// The bytes of all columns.
    ranges: HeldRanges,
    /// The rows that match and are not returned, the next one last.
    remaining: Vec<u32>,
}

impl SeriesGroup {
    /// The rows of the group.
    pub(super) fn rows(&self) -> &GroupRows {
        &self.rows
    }
}

impl SegmentReader {
    /// The rows of the next chunk, which may have none that match; none at the end.
    pub(super) async fn next_series_rows(
        &mut self,
    ) -> Result<Option<Vec<SealedRow>>, ReadSegmentError> {
        let series = match self.series.take() {
            Some(series) => series,
            None => match self.groups.pop_front() {
                Some(rows) => self.open_series(rows).await?,
                None => return Ok(None),
            },
        };
        let SeriesGroup { rows, ranges, mut remaining } = series;
        let mut count = CHUNKS * chunk_rows(&self.metadata, rows.group, &self.columns);
        if self.chunks == 0 {
            count = count.min(self.metadata.schema.sizes.first_rows);
        }
        self.chunks += 1;
        let mut chunk = remaining.split_off(remaining.len().saturating_sub(count));
        if chunk.is_empty() {
            return Ok(Some(Vec::new()));
        }
        chunk.sort_unstable();
        let chunk = chunk.into_iter().map(|row| usize::try_from(row).unwrap_or(usize::MAX));
        let matched = MatchedRows::Some(RowRanges::of(chunk));
        let columns = std::sync::Arc::clone(&self.columns);
        let decoded = self.blocking(rows.clone(), columns, ranges.clone(), move |request| {
            decode_matching(request, &matched)
        });
        let decoded = decoded.await?;
        if !remaining.is_empty() {
            self.series = Some(SeriesGroup { rows, ranges, remaining });
        }
        Ok(Some(decoded))
    }

    /// Reads the positions of the rows of a group that match.
    async fn open_series(&mut self, rows: GroupRows) -> Result<SeriesGroup, ReadSegmentError> {
        let columns = self.filter_columns.clone();
        let columns = columns.unwrap_or_else(|| ColumnSet::of_position().into());
        let ranges = hold(self.source.as_ref(), ranges_of(&self.metadata, &rows, &columns)).await?;
        self.rows_scanned += rows.rows.len() as u64;
        let mut remaining = self.blocking(rows.clone(), columns, ranges, order_rows).await?;
        remaining.reverse();
        let ranges = match remaining.is_empty() {
            true => Vec::new(),
            false => ranges_of(&self.metadata, &rows, &self.columns),
        };
        let ranges = hold(self.source.as_ref(), ranges).await?;
        Ok(SeriesGroup { rows, ranges, remaining })
    }
}
