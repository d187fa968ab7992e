//! Where the bytes of a segment are read.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use parquet::errors::ParquetError;
use trestle_objects::ObjectArea;
use trestle_proto::wire::MalformedMessage;

use super::checksums::{find_corrupt, frames_around};
use crate::json::MalformedJson;

/// A segment cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadSegmentError {
    /// The object store failed. A later try may succeed.
    #[error("the object store failed: {0}")]
    Store(#[from] object_store::Error),
    /// Bytes are lost.
    #[error("a segment is corrupt: object=`{object}`, {detail}")]
    DataLoss {
        /// The path of the object.
        object: String,
        /// What is wrong.
        detail: String,
    },
}

/// Content of a segment that is not as it was written.
#[derive(Debug, thiserror::Error)]
pub(super) enum CorruptSegment {
    #[error("{0}")]
    Parquet(#[from] ParquetError),
    #[error("{0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    #[error("{0}")]
    Json(#[from] MalformedJson),
    #[error("{0}")]
    Message(#[from] MalformedMessage),
    #[error("{0}")]
    Content(String),
}

impl CorruptSegment {
    /// The error of an object with this content.
    pub(super) fn of(self, object: &str) -> ReadSegmentError {
        ReadSegmentError::DataLoss { object: object.to_owned(), detail: self.to_string() }
    }
}

/// The bytes of one segment.
#[async_trait]
pub(crate) trait SegmentSource: Send + Sync {
    /// The path of the object, for errors.
    fn name(&self) -> &str;

    /// Bytes of the object.
    fn size(&self) -> u64;

    /// The bytes of a range, verified.
    ///
    /// # Errors
    /// Every kind of [`ReadSegmentError`].
    async fn read(&self, range: Range<u64>) -> Result<Bytes, ReadSegmentError>;
}

/// A segment in the object store, verified by the checksums of its frames.
pub(crate) struct ObjectSource {
    area: ObjectArea,
    path: String,
    size: u64,
    checksums: Bytes,
    bytes_read: AtomicU64,
}

impl ObjectSource {
    /// The object at `path`, of `size` bytes and with the checksums that were stored with it.
    pub(crate) fn new(area: ObjectArea, path: String, size: u64, checksums: Bytes) -> Self {
        Self { area, path, size, checksums, bytes_read: AtomicU64::new(0) }
    }

    /// How many bytes were read of the store.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn lost(&self, detail: impl Into<String>) -> ReadSegmentError {
        ReadSegmentError::DataLoss { object: self.path.clone(), detail: detail.into() }
    }
}

#[async_trait]
impl SegmentSource for ObjectSource {
    fn name(&self) -> &str {
        &self.path
    }

    fn size(&self) -> u64 {
        self.size
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes, ReadSegmentError> {
        if range.start > range.end || range.end > self.size {
            return Err(self.lost(format!("it has no range {range:?}")));
        }
        let frames = frames_around(&range, self.size);
        let path = Path::from(self.path.as_str());
        // Several ranges: of a file, they are read in one step, one range in two.
        let read = self.area.store.get_ranges(&path, std::slice::from_ref(&frames)).await;
        let bytes = match read.map(|mut parts| parts.pop().unwrap_or_default()) {
            Ok(bytes) => bytes,
            Err(object_store::Error::NotFound { .. }) => {
                self.area.check_present().await?;
                return Err(self.lost("it does not exist"));
            }
            Err(_) if self.area.is_shortened(&path, self.size).await => {
                return Err(self.lost("it is shorter than it was"));
            }
            Err(error) => return Err(error.into()),
        };
        self.bytes_read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if bytes.len() as u64 != frames.end - frames.start {
            return Err(self.lost("it is shorter than it was"));
        }
        if let Some(offset) = find_corrupt(&bytes, frames.start, &self.checksums) {
            return Err(self.lost(format!("a checksum does not match, offset=`{offset}`")));
        }
        let within = |offset: u64| usize::try_from(offset - frames.start).unwrap_or(usize::MAX);
        Ok(bytes.slice(within(range.start)..within(range.end)))
    }
}
