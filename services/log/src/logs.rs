//! The streams of a process and what they share.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use trestle_kv::Engine;
use trestle_model::name::AccountName;
use trestle_objects::ObjectArea;
use trestle_rpc::layer::shares::{Holder, SharePool};

use crate::{
    append::{self, AppendOutcome, NewBatch},
    clocks::Clocks,
    error::LogError,
    late_searches::LateSearches,
    names::StreamName,
    placement::StreamPlacement,
    segment::MetadataCache,
    stream::{StreamId, StreamSettings},
    streams::{OpenStream, Streams},
    unreadable::UnreadableSegments,
    unsealed::UnsealedStreams,
};

/// Most bytes of unsealed batches that reads hold, of all calls. An account has a share of them.
const READ_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The same of one read, which has the next records in memory.
const SLICE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most bytes of chunks of segments that reads hold, of all calls. An account has a share of them. Where many segments
/// overlap, a read holds a chunk of each.
const SEGMENT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Most bytes that batches of exports have beyond those of their requests, of all calls until they are stored. An
/// account has a share of them.
const DERIVED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Most bytes of batches that wait for their commit: the queue of commits bounds their number alone, and a call that is
/// cancelled does not remove its own. Four of the largest requests.
const COMMIT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Most bytes of the metadata of segments that are kept.
const METADATA_BYTES_MAX: usize = 32 * 1024 * 1024;

/// See the module. Clones share everything.
#[derive(Clone)]
pub(crate) struct Logs {
    /// The store of records and unsealed batches.
    pub(crate) engine: Arc<dyn Engine>,
    /// The store of segments.
    pub(crate) area: ObjectArea,
    /// The streams of every account.
    pub(crate) streams: Streams,
    /// Which of them have unsealed records.
    pub(crate) unsealed: Arc<UnsealedStreams>,
    /// One segment is written at a time: each needs the memory of its records.
    pub(crate) writing: Arc<Mutex<()>>,
    /// Bytes of unsealed batches that reads may hold.
    pub(crate) read_bytes: Arc<SharePool>,
    /// The same of one read.
    pub(crate) slice_bytes: usize,
    /// Bytes of chunks of segments that reads may hold.
    pub(crate) segment_bytes: Arc<SharePool>,
    /// Bytes that batches of exports may have beyond those of their requests.
    pub(crate) derived_bytes: Arc<SharePool>,
    /// Bytes of batches that wait for their commit.
    pub(crate) commit_bytes: Arc<SharePool>,
    /// Which small segments of past days may be merged.
    pub(crate) late_searches: Arc<LateSearches>,
    /// Segments that the store could not read lately.
    pub(crate) unreadable: Arc<UnreadableSegments>,
    /// Metadata of segments that were read.
    pub(crate) metadata: Arc<MetadataCache>,
    /// Which process works on a stream in the background; none: this one has the store to itself.
    pub(crate) placement: Option<Arc<dyn StreamPlacement>>,
    /// Ends calls that last.
    pub(crate) shutdown: CancellationToken,
}

impl Logs {
    /// Streams in `engine` with segments in `area`. `random` generates ids of streams.
    pub(crate) fn new(engine: Arc<dyn Engine>, area: ObjectArea, random: fn() -> u128) -> Self {
        Self {
            streams: Streams::new(Arc::clone(&engine), random),
            engine,
            area,
            unsealed: Arc::default(),
            writing: Arc::default(),
            read_bytes: SharePool::new("bytes of unsealed records", READ_BYTES_MAX),
            slice_bytes: SLICE_BYTES_MAX,
            segment_bytes: SharePool::new("bytes of segments", SEGMENT_BYTES_MAX),
            derived_bytes: SharePool::new("bytes of expanded exports", DERIVED_BYTES_MAX),
            commit_bytes: SharePool::new("bytes of appends", COMMIT_BYTES_MAX),
            late_searches: Arc::default(),
            unreadable: Arc::default(),
            metadata: Arc::new(MetadataCache::new(METADATA_BYTES_MAX)),
            placement: None,
            shutdown: CancellationToken::new(),
        }
    }

    /// Whether this process works on a stream in the background.
    pub(crate) fn is_ours(&self, stream: StreamId) -> bool {
        self.placement.as_ref().is_none_or(|placement| !placement.is_elsewhere(stream.0))
    }

    /// The time by which records are refused and deleted.
    pub(crate) fn clocks(&self) -> Clocks {
        Clocks::of(&*self.engine)
    }

    /// A stream by its name.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], or a failed read.
    pub(crate) async fn open(
        &self,
        account: &AccountName,
        name: &StreamName,
    ) -> Result<Arc<OpenStream>, LogError> {
        Ok(OpenStream::of(account, name, self.streams.open(account, name).await?))
    }

    /// A stream by its name, if it exists.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn find(
        &self,
        account: &AccountName,
        name: &StreamName,
    ) -> Result<Option<Arc<OpenStream>>, LogError> {
        let record = self.streams.find(account, name).await?;
        Ok(record.map(|record| OpenStream::of(account, name, record)))
    }

    /// A stream by its name, created with the default settings where there is none.
    ///
    /// # Errors
    /// A failed read or commit.
    pub(crate) async fn open_or_create(
        &self,
        account: &AccountName,
        name: &StreamName,
    ) -> Result<Arc<OpenStream>, LogError> {
        if let Some(stream) = self.find(account, name).await? {
            return Ok(stream);
        }
        let (record, _) = self.streams.ensure(account, name, &StreamSettings::default()).await?;
        Ok(OpenStream::of(account, name, record))
    }

    /// Appends batches to these streams, all or none.
    ///
    /// # Errors
    /// Too many bytes wait for their commit, and as [`append::append`].
    pub(crate) async fn append(
        &self,
        batches: Vec<(Arc<OpenStream>, NewBatch)>,
    ) -> Result<Vec<AppendOutcome>, LogError> {
        let (streams, batches): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
        let held = match streams.first() {
            Some(stream) => {
                let bytes = batches.iter().map(NewBatch::bytes).sum();
                let holder = Holder::account_alone(stream.account.as_str());
                Some(self.commit_bytes.take(holder, bytes)?)
            }
            None => None,
        };
        let appended = append::append(&*self.engine, batches, held).await?;
        for (stream, appended) in streams.iter().zip(&appended) {
            self.unsealed.changed(stream, &appended.head);
        }
        Ok(appended)
    }

    /// Deletes a stream.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], or a failed commit.
    pub(crate) async fn delete(
        &self,
        account: &AccountName,
        name: &StreamName,
    ) -> Result<StreamId, LogError> {
        let id = self.streams.delete(account, name).await?;
        self.unsealed.deleted(id);
        Ok(id)
    }
}
