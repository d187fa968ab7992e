//! Merges small segments of one day into one.

use super::{
    read::SegmentReader,
    schema::SegmentSchema,
    sealed::SealedRow,
    source::ReadSegmentError,
    write::{RowOrder, SegmentWriter, WrittenSegment},
    write_error::WriteSegmentError,
};
use crate::{batch::BatchRow, threads};

/// Rows that are written at once.
const CHUNK_ROWS: usize = 8 * 1024;
/// The same in bytes.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// Most bytes of data points in a row group, which is written at once.
const SERIES_BYTES: usize = 64 * 1024 * 1024;

/// Segments cannot be merged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MergeSegmentsError {
    /// One cannot be read.
    #[error(transparent)]
    Read(#[from] ReadSegmentError),
    /// The new one cannot be written.
    #[error(transparent)]
    Write(#[from] WriteSegmentError),
    /// The task that writes failed.
    #[error("the task that merges segments failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Merges segments, which are read whole: [`SegmentRead::whole`](super::SegmentRead::whole).
///
/// # Errors
/// Every kind of [`MergeSegmentsError`].
pub(crate) async fn merge_segments(
    readers: Vec<SegmentReader>,
    schema: &SegmentSchema,
) -> Result<WrittenSegment, MergeSegmentsError> {
    let is_series = readers.iter().all(|reader| reader.metadata().order == RowOrder::Series);
    let (order, rows_max, bytes_max) = match is_series {
        true => (RowOrder::Series, schema.sizes.group_rows, SERIES_BYTES),
        false => (RowOrder::Time, CHUNK_ROWS, CHUNK_BYTES),
    };
    let mut writer = SegmentWriter::new(schema, order)?;
    let mut heads = Vec::with_capacity(readers.len());
    for mut reader in readers {
        heads.push((reader.next_row().await?, reader));
    }
    loop {
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while chunk.len() < rows_max && bytes < bytes_max {
            let Some(row) = next_merged(&mut heads).await? else { break };
            bytes += row.record.len();
            chunk.push(row);
        }
        if chunk.is_empty() {
            return Ok(threads::encode(move || writer.finish()).await??);
        }
        writer = threads::encode(move || push_chunk(writer, &chunk)).await??;
    }
}

/// The least row of the heads.
async fn next_merged(
    heads: &mut [(Option<SealedRow>, SegmentReader)],
) -> Result<Option<SealedRow>, ReadSegmentError> {
    let present = heads.iter_mut().filter(|(row, _)| row.is_some());
    let least = present.min_by_key(|(row, _)| row.as_ref().map(|row| (row.time, row.sequence)));
    match least {
        None => Ok(None),
        Some((head, reader)) => Ok(std::mem::replace(head, reader.next_row().await?)),
    }
}

fn push_chunk(
    mut writer: SegmentWriter,
    rows: &[SealedRow],
) -> Result<SegmentWriter, WriteSegmentError> {
    // The resource and the scope are in the records.
    let mut rows: Vec<_> = rows.iter().map(of_row).collect();
    writer.push_group(&mut rows)?;
    Ok(writer)
}

fn of_row(row: &SealedRow) -> BatchRow<'_> {
    let SealedRow { time, sequence, record } = row;
    BatchRow { time: *time, sequence: *sequence, record, resource: &[], scope: &[] }
}
