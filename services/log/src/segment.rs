//! Segments: immutable Parquet files with records of one stream and one day (UTC).

mod cache;
mod checksums;
mod columns;
mod fetch;
mod merge;
mod metadata;
mod plan;
mod read;
mod row;
mod schema;
mod sealed;
mod source;
mod write;
mod write_error;

#[cfg(test)]
mod tests;

pub(crate) use cache::MetadataCache;
pub(crate) use merge::{MergeSegmentsError, merge_segments};
pub(crate) use metadata::load_metadata;
pub(crate) use read::{FoldedSegment, SegmentRead, SegmentReader};
pub(crate) use schema::{PromotedColumn, PromotedType, SegmentSchema};
pub(crate) use sealed::SealedRow;
pub(crate) use source::{ObjectSource, ReadSegmentError};
pub(crate) use write::{WrittenSegment, day_of, write_segments};
pub(crate) use write_error::WriteSegmentError;
