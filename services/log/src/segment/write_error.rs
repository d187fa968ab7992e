//! Why a segment cannot be written.

use parquet::errors::ParquetError;
use trestle_proto::wire::MalformedMessage;

/// A segment cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteSegmentError {
    /// A stored record is malformed.
    #[error("a stored record is malformed: {0}")]
    Record(#[from] MalformedMessage),
    /// Columns that Parquet does not accept.
    #[error("a segment cannot be encoded: {0}")]
    Parquet(#[from] ParquetError),
    /// Columns that Arrow does not accept.
    #[error("columns of a segment cannot be built: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
}
