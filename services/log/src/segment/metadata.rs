//! The metadata of a segment: its row groups and the places of its pages.

use std::sync::Arc;

use bytes::Bytes;
use parquet::{
    DecodeResult,
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder},
};

use super::{
    schema::SegmentSchema,
    source::{CorruptSegment, ReadSegmentError, SegmentSource},
    write::{ORDER_KEY, ORDER_SERIES, RowOrder},
};

/// Bytes at the end of a file that are read first: often all of its metadata.
const TAIL_BYTES: u64 = 64 * 1024;

/// The metadata of a segment. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct CachedMetadata {
    pub(super) arrow: ArrowReaderMetadata,
    pub(super) schema: Arc<SegmentSchema>,
    pub(super) order: RowOrder,
}

impl CachedMetadata {
    pub(super) fn parquet(&self) -> &ParquetMetaData {
        self.arrow.metadata()
    }

    /// Its size in memory, an estimate.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.parquet().memory_size()
    }

    fn of(metadata: ParquetMetaData) -> Result<Self, CorruptSegment> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let arrow = ArrowReaderMetadata::try_new(Arc::new(metadata), options)?;
        let schema = SegmentSchema::of_file(arrow.schema()).map_err(CorruptSegment::Content)?;
        let pairs = arrow.metadata().file_metadata().key_value_metadata();
        let mut pairs = pairs.into_iter().flatten();
        let order = pairs.find(|pair| pair.key == ORDER_KEY).and_then(|pair| pair.value.as_deref());
        let order = match order {
            Some(ORDER_SERIES) => RowOrder::Series,
            _ => RowOrder::Time,
        };
        Ok(Self { arrow, schema: Arc::new(schema), order })
    }
}

/// Reads the metadata of a segment.
///
/// # Errors
/// Every kind of [`ReadSegmentError`].
pub(crate) async fn load_metadata(
    source: &dyn SegmentSource,
) -> Result<CachedMetadata, ReadSegmentError> {
    let corrupt = |error: CorruptSegment| error.of(source.name());
    let size = source.size();
    let decoder = ParquetMetaDataPushDecoder::try_new(size);
    let decoder = decoder.map_err(|error| corrupt(error.into()))?;
    let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Required);
    let tail = size.saturating_sub(TAIL_BYTES)..size;
    let mut needed = vec![tail];
    // The footer, the metadata, the index of the pages: each names the next one.
    for _ in 0..4 {
        let mut buffers: Vec<Bytes> = Vec::with_capacity(needed.len());
        for range in &needed {
            buffers.push(source.read(range.clone()).await?);
        }
        let pushed = decoder.push_ranges(needed, buffers);
        pushed.map_err(|error| corrupt(error.into()))?;
        match decoder.try_decode().map_err(|error| corrupt(error.into()))? {
            DecodeResult::NeedsData(ranges) => needed = ranges,
            DecodeResult::Data(metadata) => return CachedMetadata::of(metadata).map_err(corrupt),
            DecodeResult::Finished => break,
        }
    }
    Err(corrupt(CorruptSegment::Content("its metadata is not complete".to_owned())))
}
