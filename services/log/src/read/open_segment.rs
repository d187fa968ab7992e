//! A segment that is read.

use std::sync::Arc;

use trestle_proto::log::v1::LogReadCost;

use crate::{
    error::LogError,
    logs::Logs,
    segment::{ObjectSource, SealedRow, SegmentRead, SegmentReader, load_metadata},
    stream::SegmentRecord,
};

/// See the module.
pub(crate) struct OpenSegment {
    /// Its rows.
    pub(crate) reader: SegmentReader,
    source: Arc<ObjectSource>,
}

impl OpenSegment {
    /// The next rows, in the order of the read; none at the end.
    ///
    /// # Errors
    /// [`LogError::Corrupt`], [`LogError::Objects`].
    pub(super) async fn next_rows(&mut self) -> Result<Option<Vec<SealedRow>>, LogError> {
        Ok(self.reader.next_rows().await?)
    }

    /// Adds what was read of it.
    pub(super) fn add_cost(&self, cost: &mut LogReadCost) {
        cost.bytes += self.source.bytes_read();
        cost.records_scanned += self.reader.rows_scanned();
    }
}

impl Logs {
    /// Opens a segment for a read.
    ///
    /// # Errors
    /// [`LogError::Corrupt`], [`LogError::Objects`].
    pub(crate) async fn open_segment(
        &self,
        segment: &SegmentRecord,
        read: SegmentRead,
    ) -> Result<OpenSegment, LogError> {
        let SegmentRecord { id, path, bytes, checksums, .. } = segment.clone();
        let source = Arc::new(ObjectSource::new(self.area.clone(), path, bytes, checksums));
        let metadata = match self.metadata.get(id.0) {
            Some(metadata) => metadata,
            None => {
                let metadata = load_metadata(&*source).await?;
                self.metadata.put(id.0, metadata.clone());
                metadata
            }
        };
        let reader = SegmentReader::new(Arc::clone(&source) as _, metadata, read);
        Ok(OpenSegment { reader, source })
    }
}
