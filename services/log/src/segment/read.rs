//! Reads segments: a chunk of rows at a time, of one row group at a time.

mod chunk;
mod fold;
mod prune;
mod series;

use std::{collections::VecDeque, ops::Range, sync::Arc};

use trestle_kv::Direction;

pub(crate) use self::fold::FoldedSegment;
use self::{
    chunk::{ChunkRequest, MatchedRows, decode_matching, match_rows},
    series::SeriesGroup,
};
use super::{
    fetch::{HeldRanges, hold, ranges_of},
    metadata::CachedMetadata,
    plan::{ColumnSet, GroupRows, chunk_rows, groups_within, next_chunk, row_bytes},
    sealed::SealedRow,
    source::{CorruptSegment, ReadSegmentError, SegmentSource},
    write::RowOrder,
};
use crate::{record::RecordFields, row::RowPredicate, threads};

/// Bytes that are read ahead, at most: half of a row group of many columns.
const AHEAD_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What to read of a segment.
#[derive(Clone)]
pub(crate) struct SegmentRead {
    /// The times: from the start, inclusive, to the end, exclusive.
    pub(crate) window: Range<u64>,
    /// The order, by time and sequence.
    pub(crate) direction: Direction,
    /// The fields of the records.
    pub(crate) fields: RecordFields,
    /// Which records, if not all.
    pub(crate) predicate: Option<Arc<dyn RowPredicate>>,
}

impl SegmentRead {
    /// All records, oldest first, as they are merged.
    pub(crate) fn whole() -> Self {
        Self {
            window: 0..u64::MAX,
            direction: Direction::Forward,
            fields: RecordFields::STORED,
            predicate: None,
        }
    }
}

/// Reads the rows of a segment in order.
pub(crate) struct SegmentReader {
    source: Arc<dyn SegmentSource>,
    metadata: CachedMetadata,
    read: Arc<SegmentRead>,
    /// The columns of the predicate, and those of the returned fields.
    filter_columns: Option<Arc<ColumnSet>>,
    columns: Arc<ColumnSet>,
    groups: VecDeque<GroupRows>,
    is_pruned: bool,
    chunks: u64,
    held: Option<Held>,
    /// The row group that is read, where it is ordered by series.
    series: Option<SeriesGroup>,
    rows: std::vec::IntoIter<SealedRow>,
    rows_scanned: u64,
}

/// The bytes of rows.
struct Held {
    rows: GroupRows,
    ranges: HeldRanges,
}

impl SegmentReader {
    /// Reads nothing yet.
    pub(crate) fn new(
        source: Arc<dyn SegmentSource>,
        metadata: CachedMetadata,
        read: SegmentRead,
    ) -> Self {
        let properties = read.predicate.as_ref().map(|predicate| predicate.properties());
        let schema = &metadata.schema;
        let filter_columns =
            properties.map(|found| Arc::new(ColumnSet::of_properties(schema, &found)));
        Self {
            filter_columns,
            columns: Arc::new(ColumnSet::of_fields(schema, read.fields)),
            groups: groups_within(&metadata, &read.window, read.direction).into(),
            is_pruned: false,
            chunks: 0,
            held: None,
            series: None,
            rows: Vec::new().into_iter(),
            rows_scanned: 0,
            source,
            metadata,
            read: Arc::new(read),
        }
    }

    /// How many rows were examined so far.
    pub(crate) fn rows_scanned(&self) -> u64 {
        self.rows_scanned
    }

    pub(super) fn metadata(&self) -> &CachedMetadata {
        &self.metadata
    }

    /// The next row; none at the end.
    ///
    /// # Errors
    /// Every kind of [`ReadSegmentError`].
    pub(crate) async fn next_row(&mut self) -> Result<Option<SealedRow>, ReadSegmentError> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            match self.next_rows().await? {
                Some(rows) => self.rows = rows.into_iter(),
                None => return Ok(None),
            }
        }
    }

    /// About how many bytes the next chunk needs while it is read, and until its rows are returned; 0 at the end.
    pub(crate) fn next_bytes(&self) -> usize {
        let is_first = self.chunks == 0;
        let left = self.series.as_ref().map(SeriesGroup::rows);
        let left = left.or_else(|| self.groups.iter().find(|group| !group.rows.is_empty()));
        let Some(GroupRows { group, rows }) = left else { return 0 };
        let columns = &self.columns;
        let chunks = if self.metadata.order == RowOrder::Series { series::CHUNKS } else { 1 };
        let mut most = chunks * chunk_rows(&self.metadata, *group, columns);
        if is_first {
            most = most.min(self.metadata.schema.sizes.first_rows);
        }
        let (count, total) = (rows.len().min(most) as u64, rows.len() as u64);
        let row_group = self.metadata.parquet().row_group(*group);
        let stored = columns.0.iter().map(|at| row_group.column(*at).byte_range().1).sum::<u64>();
        let held = match self.metadata.order {
            RowOrder::Series => stored,
            RowOrder::Time if is_first => stored.saturating_mul(count) / total.max(1),
            RowOrder::Time => stored.min(AHEAD_BYTES_MAX),
        };
        let decoded = count.saturating_mul(row_bytes(&self.metadata, *group, columns));
        usize::try_from(decoded.saturating_add(held)).unwrap_or(usize::MAX)
    }

    /// The rows of the next chunk, which may have none that match; none at the end.
    pub(crate) async fn next_rows(&mut self) -> Result<Option<Vec<SealedRow>>, ReadSegmentError> {
        self.prune().await?;
        if self.metadata.order == RowOrder::Series {
            return self.next_series_rows().await;
        }
        while self.groups.front().is_some_and(|group| group.rows.is_empty()) {
            self.groups.pop_front();
        }
        let direction = self.read.direction;
        let Some(left) = self.groups.front_mut() else {
            return Ok(None);
        };
        let group = left.group;
        let ahead = left.rows.clone();
        let is_first = self.chunks == 0;
        let rows = next_chunk(&self.metadata, left, direction, (&self.columns, is_first));
        let rows = GroupRows { group, rows };
        let ahead = if is_first { rows.rows.clone() } else { ahead };
        self.chunks += 1;
        self.rows_scanned += rows.rows.len() as u64;
        let matched = match self.filter_columns.clone() {
            None => MatchedRows::All,
            Some(columns) => {
                let ranges = self.hold_ahead(&rows, ahead.clone(), &columns).await?;
                self.blocking(rows.clone(), columns, ranges, match_rows).await?
            }
        };
        let (columns, ranges) = (
            Arc::clone(&self.columns),
            match &matched {
                MatchedRows::Some(matched) if matched.is_empty() => return Ok(Some(Vec::new())),
                MatchedRows::Some(matched) => {
                    let within = matched.span_in(&rows.rows);
                    let rows = GroupRows { group, rows: within };
                    let ranges = ranges_of(&self.metadata, &rows, &self.columns);
                    hold(self.source.as_ref(), ranges).await?
                }
                MatchedRows::All => {
                    self.hold_ahead(&rows, ahead, &Arc::clone(&self.columns)).await?
                }
            },
        );
        let decode = move |request: &ChunkRequest| decode_matching(request, &matched);
        self.blocking(rows, columns, ranges, decode).await.map(Some)
    }

    /// Skips row groups that the bloom filters exclude, once.
    ///
    /// # Errors
    /// Every kind of [`ReadSegmentError`].
    pub(crate) async fn prune(&mut self) -> Result<(), ReadSegmentError> {
        if std::mem::replace(&mut self.is_pruned, true) {
            return Ok(());
        }
        let required = self.read.predicate.as_ref().map(|predicate| predicate.required());
        let required = required.unwrap_or_default();
        if required.is_empty() {
            return Ok(());
        }
        let mut groups = VecDeque::with_capacity(self.groups.len());
        for rows in std::mem::take(&mut self.groups) {
            let source = self.source.as_ref();
            if prune::may_match(source, &self.metadata, rows.group, &required).await? {
                groups.push_back(rows);
            }
        }
        self.groups = groups;
        Ok(())
    }

    /// The bytes of a chunk; those of the rest of its row group with it, if they are few.
    async fn hold_ahead(
        &mut self,
        rows: &GroupRows,
        ahead: Range<usize>,
        columns: &ColumnSet,
    ) -> Result<HeldRanges, ReadSegmentError> {
        if let Some(held) = &self.held
            && held.rows.group == rows.group
            && held.rows.rows.start <= rows.rows.start
            && held.rows.rows.end >= rows.rows.end
        {
            return Ok(held.ranges.clone());
        }
        self.held = None;
        let mut requested = GroupRows { group: rows.group, rows: ahead };
        let mut ranges = ranges_of(&self.metadata, &requested, columns);
        let bytes = ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        if bytes > AHEAD_BYTES_MAX {
            let (ahead, part) = (requested.rows.len() as u64, AHEAD_BYTES_MAX);
            let fewer = usize::try_from(ahead.saturating_mul(part) / bytes).unwrap_or_default();
            let fewer = fewer.max(rows.rows.len());
            let Range { start, end } = requested.rows;
            requested.rows = match self.read.direction {
                Direction::Forward => start..end.min(start + fewer),
                Direction::Backward => end.saturating_sub(fewer).max(start)..end,
            };
            ranges = ranges_of(&self.metadata, &requested, columns);
        }
        let ranges = hold(self.source.as_ref(), ranges).await?;
        self.held = Some(Held { rows: requested, ranges: ranges.clone() });
        Ok(ranges)
    }

    /// Decodes on a thread that may be busy for long.
    async fn blocking<T: Send + 'static>(
        &self,
        rows: GroupRows,
        columns: Arc<ColumnSet>,
        ranges: HeldRanges,
        decode: impl FnOnce(&ChunkRequest) -> Result<T, CorruptSegment> + Send + 'static,
    ) -> Result<T, ReadSegmentError> {
        let (metadata, read) = (self.metadata.clone(), Arc::clone(&self.read));
        let request = ChunkRequest { metadata, read, rows, columns, ranges };
        let decoded = threads::decode(move || decode(&request)).await;
        let panicked = |error: tokio::task::JoinError| CorruptSegment::Content(error.to_string());
        decoded.map_err(panicked).flatten().map_err(|error| error.of(self.source.name()))
    }
}
