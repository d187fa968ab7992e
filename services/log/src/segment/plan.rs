//! Which rows of a segment a read has to look at, by the metadata alone.

use std::ops::Range;

use parquet::{
    arrow::ProjectionMask,
    file::{page_index::column_index::ColumnIndexMetaData, statistics::Statistics},
};
use trestle_kv::Direction;

use super::{
    columns::MICROSECOND,
    metadata::CachedMetadata,
    schema::{SegmentSchema, SegmentSizes, column},
    write::RowOrder,
};
use crate::{record::RecordFields, row::Property};

/// Bytes of the rows of a chunk, by the mean of its row group.
const CHUNK_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of a value in a column beside its text.
const VALUE_BYTES: u64 = 8;
/// The same as those of a chunk, of the rows that are decoded at once.
const BATCH_BYTES: u64 = 512 * 1024;

/// Rows of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupRows {
    pub(super) group: usize,
    pub(super) rows: Range<usize>,
}

/// The row groups, and the rows in them, that may have times within `window`, in the order of the read.
pub(super) fn groups_within(
    metadata: &CachedMetadata,
    window: &Range<u64>,
    direction: Direction,
) -> Vec<GroupRows> {
    if window.is_empty() {
        return Vec::new();
    }
    let micros = |time: u64| i64::try_from(time / MICROSECOND).unwrap_or(i64::MAX);
    let (first, last) = (micros(window.start), micros(window.end - 1));
    let parquet = metadata.parquet();
    let mut found: Vec<_> = (0..parquet.num_row_groups())
        .filter_map(|group| {
            let row_group = parquet.row_group(group);
            let all = 0..usize::try_from(row_group.num_rows()).unwrap_or_default();
            if let Some(Statistics::Int64(times)) = row_group.column(column::TIME).statistics()
                && let (Some(min), Some(max)) = (times.min_opt(), times.max_opt())
                && (*max < first || *min > last)
            {
                return None;
            }
            let rows = match metadata.order {
                RowOrder::Time => rows_within(metadata, group, first, last).unwrap_or(all),
                RowOrder::Series => all,
            };
            (!rows.is_empty()).then_some(GroupRows { group, rows })
        })
        .collect();
    if direction == Direction::Backward {
        found.reverse();
    }
    found
}

/// The rows of the pages that have times from `first` to `last`.
fn rows_within(
    metadata: &CachedMetadata,
    group: usize,
    first: i64,
    last: i64,
) -> Option<Range<usize>> {
    let pages = metadata.parquet().page_index_for_row_group(group);
    let ColumnIndexMetaData::INT64(times) = pages.column_index(column::TIME)? else {
        return None;
    };
    let locations = pages.offset_index(column::TIME)?.page_locations();
    let begin = times.max_values().iter().position(|max| *max >= first)?;
    let end = times.min_values().iter().rposition(|min| *min <= last)? + 1;
    let rows = usize::try_from(metadata.parquet().row_group(group).num_rows()).ok()?;
    let row_of = |page: usize| match locations.get(page) {
        Some(page) => usize::try_from(page.first_row_index).unwrap_or(rows),
        None => rows,
    };
    Some(row_of(begin)..row_of(end).max(row_of(begin)))
}

/// The bytes of a decoded row of a group, the mean: of dictionaries and compression little is left.
pub(super) fn row_bytes(metadata: &CachedMetadata, group: usize, columns: &ColumnSet) -> u64 {
    let row_group = metadata.parquet().row_group(group);
    let pages = metadata.parquet().page_index_for_row_group(group);
    let rows = u64::try_from(row_group.num_rows()).unwrap_or(1).max(1);
    let of_column = |at: &usize| {
        let encoded = row_group.column(*at).uncompressed_size();
        let texts =
            pages.offset_index(*at).and_then(|index| index.unencoded_byte_array_data_bytes());
        let texts = texts.map_or(0, |pages| pages.iter().sum());
        VALUE_BYTES + u64::try_from(encoded.max(texts)).unwrap_or_default() / rows
    };
    columns.0.iter().map(of_column).sum()
}

/// How many rows of a group are a chunk, at least one.
pub(super) fn chunk_rows(metadata: &CachedMetadata, group: usize, columns: &ColumnSet) -> usize {
    let rows = CHUNK_BYTES / row_bytes(metadata, group, columns).max(1);
    usize::try_from(rows).unwrap_or(usize::MAX).max(1)
}

/// How many rows of a group are decoded at once, at least one.
pub(super) fn batch_rows(metadata: &CachedMetadata, group: usize, columns: &ColumnSet) -> usize {
    let rows = BATCH_BYTES / row_bytes(metadata, group, columns).max(1);
    usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, metadata.schema.sizes.page_rows)
}

/// Removes the next chunk from the rows of a group that is ordered by time: whole pages, unless rows are large or it is
/// the first chunk of a read.
pub(super) fn next_chunk(
    metadata: &CachedMetadata,
    left: &mut GroupRows,
    direction: Direction,
    (columns, is_first): (&ColumnSet, bool),
) -> Range<usize> {
    let SegmentSizes { page_rows, first_rows, .. } = metadata.schema.sizes;
    let by_bytes = chunk_rows(metadata, left.group, columns).min(page_rows);
    let most = if is_first { by_bytes.min(first_rows) } else { by_bytes };
    let Range { start, end } = left.rows;
    match direction {
        Direction::Forward => {
            let page_end = (start + 1).next_multiple_of(page_rows);
            let middle = page_end.min(start + most).min(end);
            left.rows = middle..end;
            start..middle
        }
        Direction::Backward => {
            let page_start = end.saturating_sub(1) / page_rows * page_rows;
            let middle = page_start.max(end.saturating_sub(most)).max(start);
            left.rows = start..middle;
            middle..end
        }
    }
}

/// A set of columns, by place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnSet(pub(super) Vec<usize>);

impl ColumnSet {
    /// What a read needs of every row.
    fn position() -> Vec<usize> {
        vec![column::TIME, column::TIME_NS, column::SEQUENCE]
    }

    /// The columns of the position of a row.
    pub(super) fn of_position() -> Self {
        Self::of(Self::position())
    }

    fn of(mut places: Vec<usize>) -> Self {
        places.sort_unstable();
        places.dedup();
        Self(places)
    }

    /// The columns of fields of a record.
    pub(super) fn of_fields(schema: &SegmentSchema, fields: RecordFields) -> Self {
        let mut places = Self::position();
        let columns: [(u32, &[usize]); 17] = [
            (2, &[column::SEVERITY_NUMBER]),
            (3, &[column::SEVERITY_TEXT]),
            (5, &[column::BODY, column::BODY_VALUE]),
            (6, &[column::ATTRIBUTES]),
            (7, &[column::DROPPED]),
            (8, &[column::FLAGS]),
            (9, &[column::TRACE_ID]),
            (10, &[column::SPAN_ID]),
            (11, &[column::OBSERVED_TIME]),
            (12, &[column::EVENT_NAME]),
            (16, &[column::VALUE]),
            (17, &[column::RESOURCE]),
            (18, &[column::SCOPE]),
            (20, &[column::START_TIME]),
            (21, &[column::TEMPORALITY]),
            (22, &[column::IS_MONOTONIC]),
            (23, &[column::UNIT]),
        ];
        for (_, columns) in columns.iter().filter(|(field, _)| fields.has(*field)) {
            places.extend(columns.iter().filter_map(|column| schema.place(*column)));
        }
        if fields.has(6) {
            places.extend((schema.base..).take(schema.promoted.len()));
        }
        Self::of(places)
    }

    /// The columns that a predicate reads.
    pub(super) fn of_properties(schema: &SegmentSchema, properties: &[Property]) -> Self {
        let mut places = Self::position();
        for property in properties {
            match property {
                Property::Time | Property::Sequence => {}
                Property::Severity => places.push(column::SEVERITY_NUMBER),
                Property::SeverityText => places.push(column::SEVERITY_TEXT),
                Property::Body => places.push(column::BODY),
                Property::EventName => places.push(column::EVENT_NAME),
                Property::Value => places.push(column::VALUE),
                Property::Temporality => places.extend(schema.place(column::TEMPORALITY)),
                Property::IsMonotonic => places.extend(schema.place(column::IS_MONOTONIC)),
                Property::Unit => places.extend(schema.place(column::UNIT)),
                Property::TraceId => places.push(column::TRACE_ID),
                Property::SpanId => places.push(column::SPAN_ID),
                Property::Resource(_) => places.push(column::RESOURCE),
                Property::Scope => places.push(column::SCOPE),
                Property::Attribute(key) => {
                    places.push(column::ATTRIBUTES);
                    places.extend(schema.promoted_at(key));
                }
            }
        }
        Self::of(places)
    }

    pub(super) fn mask(&self, metadata: &CachedMetadata) -> ProjectionMask {
        ProjectionMask::roots(metadata.arrow.parquet_schema(), self.0.iter().copied())
    }
}
