//! Writes segments.

mod settings;

use bytes::Bytes;
use parquet::arrow::{ArrowWriter, arrow_writer::ArrowWriterOptions};
use trestle_proto::wire::MalformedMessage;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(super) use self::settings::{ORDER_KEY, ORDER_SERIES};
use super::{
    checksums::checksums_of, columns::ColumnBuilders, schema::SegmentSchema,
    write_error::WriteSegmentError,
};
use crate::{
    batch::BatchRow,
    record::{ATTRIBUTES, RESOURCE, RecordView, entries_of},
};

/// Rows that are handed to the encoder at once.
const CHUNK_ROWS: usize = 8 * 1024;
/// The same in bytes of their records.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of the records of a row group: of few rows if they are large.
const GROUP_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Nanoseconds of a day.
const DAY_NANOS: u64 = 24 * 60 * 60 * 1_000_000_000;

/// The day (UTC) of a time in nanoseconds since 1970, as the number of days since then.
pub(crate) fn day_of(time: u64) -> u64 {
    time / DAY_NANOS
}

/// A segment as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct WrittenSegment {
    /// The file.
    pub(crate) bytes: Bytes,
    /// The checksums of its frames, to be stored in the manifest.
    pub(crate) checksums: Bytes,
    /// Number of rows, at least one.
    pub(crate) rows: u64,
    /// The least effective time.
    pub(crate) min_time: u64,
    /// The greatest effective time.
    pub(crate) max_time: u64,
    /// The least sequence.
    pub(crate) min_sequence: u64,
    /// The greatest sequence.
    pub(crate) max_sequence: u64,
}

/// How the rows of each row group are sorted. Row groups follow each other in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOrder {
    /// By time and sequence.
    Time,
    /// By series, time and sequence: data points of a series have much in common.
    Series,
}

/// Writes rows of one stream, in any order: a segment for each day (UTC). It keeps a processor busy and blocks.
///
/// # Errors
/// Every kind of [`WriteSegmentError`].
pub(crate) fn write_segments(
    schema: &SegmentSchema,
    mut rows: Vec<BatchRow<'_>>,
) -> Result<Vec<WrittenSegment>, WriteSegmentError> {
    rows.sort_unstable_by_key(|row| (row.time, row.sequence));
    let days = rows.chunk_by_mut(|first, second| day_of(first.time) == day_of(second.time));
    days.map(|rows| write_sorted(schema, rows)).collect()
}

fn write_sorted(
    schema: &SegmentSchema,
    rows: &mut [BatchRow<'_>],
) -> Result<WrittenSegment, WriteSegmentError> {
    let order = order_of(rows)?;
    let mut segment = SegmentWriter::new(schema, order)?;
    for group in rows.chunks_mut(schema.sizes.group_rows) {
        segment.push_group(group)?;
    }
    segment.finish()
}

/// By series if every row is a data point.
fn order_of(rows: &[BatchRow<'_>]) -> Result<RowOrder, MalformedMessage> {
    for row in rows {
        if RecordView::parse(row.record)?.value.is_none() {
            return Ok(RowOrder::Time);
        }
    }
    Ok(RowOrder::Series)
}

/// What identifies the series of a data point.
fn series_of(row: &BatchRow<'_>) -> Result<u64, MalformedMessage> {
    let record = RecordView::parse(row.record)?;
    let mut hash = xxh3_64_with_seed(record.event_name.as_bytes(), 0);
    for entry in entries_of(row.record, ATTRIBUTES).chain(entries_of(row.record, RESOURCE)) {
        hash = xxh3_64_with_seed(entry?, hash);
    }
    Ok(xxh3_64_with_seed(row.resource, hash))
}

/// A segment that is being written.
pub(super) struct SegmentWriter {
    order: RowOrder,
    columns: ColumnBuilders,
    parquet: ArrowWriter<Vec<u8>>,
    group_bytes: usize,
    rows: u64,
    min_time: u64,
    max_time: u64,
    min_sequence: u64,
    max_sequence: u64,
}

impl SegmentWriter {
    pub(super) fn new(schema: &SegmentSchema, order: RowOrder) -> Result<Self, WriteSegmentError> {
        // Other engines need no schema of Arrow, and the types of Parquet are enough for us.
        let options = ArrowWriterOptions::new()
            .with_properties(settings::properties(schema, order))
            .with_skip_arrow_metadata(true);
        let arrow = std::sync::Arc::clone(&schema.arrow);
        let parquet = ArrowWriter::try_new_with_options(Vec::new(), arrow, options)?;
        Ok(Self {
            order,
            columns: ColumnBuilders::new(schema),
            parquet,
            group_bytes: 0,
            rows: 0,
            min_time: u64::MAX,
            max_time: 0,
            min_sequence: u64::MAX,
            max_sequence: 0,
        })
    }

    /// Writes the rows of a row group, which are in the order of time and behind those before them.
    pub(super) fn push_group(
        &mut self,
        rows: &mut [BatchRow<'_>],
    ) -> Result<(), WriteSegmentError> {
        if self.order == RowOrder::Time {
            return rows.iter().try_for_each(|row| self.push(row));
        }
        let mut series = Vec::with_capacity(rows.len());
        for row in rows.iter() {
            series.push((series_of(row)?, *row));
        }
        series.sort_unstable_by_key(|(series, row)| (*series, row.time, row.sequence));
        series.iter().try_for_each(|(_, row)| self.push(row))?;
        self.end_group()
    }

    /// Writes a row that is behind those before it.
    pub(super) fn push(&mut self, row: &BatchRow<'_>) -> Result<(), WriteSegmentError> {
        self.columns.push(row)?;
        self.rows += 1;
        self.min_time = self.min_time.min(row.time);
        self.max_time = self.max_time.max(row.time);
        self.min_sequence = self.min_sequence.min(row.sequence);
        self.max_sequence = self.max_sequence.max(row.sequence);
        if self.columns.rows() >= CHUNK_ROWS || self.columns.bytes() >= CHUNK_BYTES {
            self.write_chunk()?;
            if self.group_bytes >= GROUP_BYTES_MAX && self.order == RowOrder::Time {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn write_chunk(&mut self) -> Result<(), WriteSegmentError> {
        if self.columns.rows() > 0 {
            self.group_bytes += self.columns.bytes();
            self.parquet.write(&self.columns.finish()?)?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), WriteSegmentError> {
        self.write_chunk()?;
        self.group_bytes = 0;
        Ok(self.parquet.flush()?)
    }

    /// Bytes of the file so far.
    pub(super) fn finish(mut self) -> Result<WrittenSegment, WriteSegmentError> {
        self.write_chunk()?;
        let bytes = Bytes::from(self.parquet.into_inner()?);
        Ok(WrittenSegment {
            checksums: checksums_of(&bytes),
            bytes,
            rows: self.rows,
            min_time: self.min_time,
            max_time: self.max_time,
            min_sequence: self.min_sequence,
            max_sequence: self.max_sequence,
        })
    }
}
