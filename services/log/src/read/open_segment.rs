//! A segment that is read.

use std::{mem, sync::Arc};

use tokio_util::task::AbortOnDropHandle;
use trestle_model::fault::Fault;
use trestle_proto::log::v1::LogReadCost;
use trestle_rpc::layer::shares::Share;
use trestle_rpc::propagation;

use crate::{
    error::LogError,
    logs::Logs,
    segment::{
        ObjectSource, ReadSegmentError, SealedRow, SegmentRead, SegmentReader, load_metadata,
    },
    stream::SegmentRecord,
};

/// See the module.
pub(crate) struct OpenSegment {
    state: ReadState,
    source: Arc<ObjectSource>,
    rows_scanned: u64,
    /// The bytes of its chunks, of those that all reads may hold; none before it is read.
    share: Option<Share>,
}

/// Where the next rows come from.
enum ReadState {
    Waits(Box<SegmentReader>),
    /// They are read while those before them are sent, and so many bytes are charged for them.
    ReadsAhead(AbortOnDropHandle<(Box<SegmentReader>, ReadRows)>, usize),
    Ended,
}

/// Rows of a chunk; none at the end.
type ReadRows = Result<Option<Vec<SealedRow>>, ReadSegmentError>;

impl OpenSegment {
    fn new(reader: SegmentReader, source: Arc<ObjectSource>) -> Self {
        let state = ReadState::Waits(Box::new(reader));
        Self { state, source, rows_scanned: 0, share: None }
    }

    /// Charges the bytes of its chunks from now on.
    pub(super) fn charge_to(&mut self, share: Share) {
        self.share = Some(share);
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Fault> {
        self.share.as_mut().map_or(Ok(()), |share| share.resize(bytes))
    }

    /// The next rows, in the order of the read; none at the end. If there are fewer than `ahead_below`, those behind
    /// them are read at once where their bytes can be charged too. The rows before them are not held any more.
    ///
    /// # Errors
    /// The bytes of the rows cannot be charged; [`LogError::Corrupt`], [`LogError::Objects`].
    pub(super) async fn next_rows(
        &mut self,
        ahead_below: u64,
    ) -> Result<Option<Vec<SealedRow>>, LogError> {
        let ((reader, rows), bytes) = match mem::replace(&mut self.state, ReadState::Ended) {
            ReadState::Waits(reader) => {
                let bytes = reader.next_bytes();
                self.charge(bytes)?;
                (read_next(reader).await, bytes)
            }
            ReadState::ReadsAhead(task, bytes) => (task.await?, bytes),
            ReadState::Ended => return Ok(None),
        };
        self.rows_scanned = reader.rows_scanned();
        let rows = rows?;
        self.state = match &rows {
            None => ReadState::Ended,
            Some(rows) => {
                let next = reader.next_bytes();
                let is_ahead = (rows.len() as u64) < ahead_below;
                if is_ahead && self.charge(bytes.saturating_add(next)).is_ok() {
                    let task = tokio::spawn(propagation::carry(read_next(reader)));
                    ReadState::ReadsAhead(AbortOnDropHandle::new(task), next)
                } else {
                    self.charge(bytes)?;
                    ReadState::Waits(reader)
                }
            }
        };
        Ok(rows)
    }

    /// Adds what was read of it.
    pub(super) fn add_cost(&self, cost: &mut LogReadCost) {
        cost.bytes += self.source.bytes_read();
        cost.records_scanned += self.rows_scanned;
    }
}

async fn read_next(mut reader: Box<SegmentReader>) -> (Box<SegmentReader>, ReadRows) {
    let rows = reader.next_rows().await;
    (reader, rows)
}

impl Logs {
    /// Opens a segment for a read.
    ///
    /// # Errors
    /// [`LogError::Corrupt`], [`LogError::Objects`].
    pub(super) async fn open_segment(
        &self,
        segment: &SegmentRecord,
        read: SegmentRead,
    ) -> Result<OpenSegment, LogError> {
        let (reader, source) = self.segment_reader(segment, read).await?;
        Ok(OpenSegment::new(reader, source))
    }

    /// The same, with the row groups that bloom filters exclude skipped.
    ///
    /// # Errors
    /// [`LogError::Corrupt`], [`LogError::Objects`].
    pub(super) async fn open_pruned(
        &self,
        segment: &SegmentRecord,
        read: SegmentRead,
    ) -> Result<OpenSegment, LogError> {
        let (mut reader, source) = self.segment_reader(segment, read).await?;
        reader.prune().await?;
        Ok(OpenSegment::new(reader, source))
    }

    /// The rows of a segment, and where they come from.
    ///
    /// # Errors
    /// [`LogError::Corrupt`], [`LogError::Objects`].
    pub(crate) async fn segment_reader(
        &self,
        segment: &SegmentRecord,
        read: SegmentRead,
    ) -> Result<(SegmentReader, Arc<ObjectSource>), LogError> {
        let SegmentRecord { path, bytes, checksums, .. } = segment.clone();
        let source = Arc::new(ObjectSource::new(self.area.clone(), path, bytes, checksums));
        let metadata = match self.metadata.get(&segment.path) {
            Some(metadata) => metadata,
            None => {
                let metadata = load_metadata(&*source).await?;
                self.metadata.put(&segment.path, metadata.clone());
                metadata
            }
        };
        Ok((SegmentReader::new(Arc::clone(&source) as _, metadata, read), source))
    }
}
