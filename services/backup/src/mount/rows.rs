//! The rows of a backup, read by chunks.

use std::{ops::RangeInclusive, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use trestle_kv::{Direction, EngineError, Entry, Scan, ScanLimit, Snapshot, Span};

use super::cache::PartCache;
use crate::{lists::ChunkRef, names::PartName, repository::Repository, verify};

/// Bytes of rows that are kept.
const CACHE_BYTES: usize = 64 * 1024 * 1024;
/// What a row takes beside its bytes.
const ROW_BYTES: usize = size_of::<Entry>();

/// The rows of a backup.
pub(super) struct BackedUpRows {
    repository: Arc<Repository>,
    restored: fn(Entry) -> Result<Option<Entry>, String>,
    /// The chunks of each keyspace in the order of their keys, by its kinds.
    keyspaces: Vec<(RangeInclusive<u8>, Vec<ChunkRef>)>,
    cache: PartCache<Arc<Vec<Entry>>>,
}

impl BackedUpRows {
    /// Without rows. They are as a restored store has them.
    pub(super) fn new(
        repository: Arc<Repository>,
        restored: fn(Entry) -> Result<Option<Entry>, String>,
    ) -> Self {
        Self { repository, restored, keyspaces: Vec::new(), cache: PartCache::new(CACHE_BYTES) }
    }

    /// Adds a keyspace.
    pub(super) fn add(&mut self, kinds: RangeInclusive<u8>, chunks: Vec<ChunkRef>) {
        self.keyspaces.push((kinds, chunks));
    }

    fn chunks(&self, key: &[u8]) -> &[ChunkRef] {
        let kind = key.first().copied().unwrap_or_default();
        let found = self.keyspaces.iter().find(|(kinds, _)| kinds.contains(&kind));
        found.map(|(_, chunks)| chunks.as_slice()).unwrap_or_default()
    }

    async fn rows(&self, chunk: &ChunkRef) -> Result<Arc<Vec<Entry>>, EngineError> {
        let name = PartName::from_bytes(&chunk.name);
        let name = name.ok_or_else(|| corrupt("a chunk has no name"))?;
        self.cache.read(name, self.read(chunk)).await
    }

    /// The rows of a chunk, and what they take.
    async fn read(&self, chunk: &ChunkRef) -> Result<(Arc<Vec<Entry>>, usize), EngineError> {
        let read = verify::chunk(&self.repository, chunk).await;
        let read =
            read.map_err(|error| EngineError::Unavailable { reason: error.to_string().into() })?;
        let read = read.map_err(|bad| corrupt(&bad.to_string()))?;
        let rows = read.into_iter().filter_map(|row| (self.restored)(row).transpose());
        let rows: Vec<Entry> = rows.collect::<Result<_, _>>().map_err(|reason| corrupt(&reason))?;
        let bytes = rows.iter().map(|row| row.key.len() + row.value.len() + ROW_BYTES).sum();
        Ok((Arc::new(rows), bytes))
    }
}

fn corrupt(reason: &str) -> EngineError {
    EngineError::Corrupt { reason: reason.into() }
}

/// The rows of a chunk that are in a span.
fn within<'r>(rows: &'r [Entry], span: &Span) -> &'r [Entry] {
    let start = rows.partition_point(|row| row.key < span.start);
    let end = rows.partition_point(|row| row.key < span.end);
    rows.get(start..end).unwrap_or_default()
}

/// Adds rows until a limit is reached. Returns whether it was.
pub(super) fn fill(scan: &mut Scan, rows: impl Iterator<Item = Entry>, limit: ScanLimit) -> bool {
    let mut bytes: usize = scan.entries.iter().map(|it| it.key.len() + it.value.len()).sum();
    for row in rows {
        if scan.entries.len() >= limit.rows.max(1) || (bytes >= limit.bytes && bytes > 0) {
            scan.more = true;
            return true;
        }
        bytes += row.key.len() + row.value.len();
        scan.entries.push(row);
    }
    false
}

#[async_trait]
impl Snapshot for BackedUpRows {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let chunks = self.chunks(key);
        let index = chunks.partition_point(|chunk| &*chunk.last < key);
        let Some(chunk) = chunks.get(index).filter(|chunk| &*chunk.first <= key) else {
            return Ok(None);
        };
        let rows = self.rows(chunk).await?;
        let found = rows.binary_search_by(|row| (*row.key).cmp(key)).ok();
        Ok(found.and_then(|index| rows.get(index)).map(|row| row.value.clone()))
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        let chunks = self.chunks(&span.start);
        let start = chunks.partition_point(|chunk| chunk.last < span.start);
        let end = chunks.partition_point(|chunk| chunk.first < span.end);
        let chunks = chunks.get(start..end).unwrap_or_default();
        let mut scan = Scan { entries: Vec::new(), more: false };
        for index in 0..chunks.len() {
            let index = match span.direction {
                Direction::Forward => index,
                Direction::Backward => chunks.len() - 1 - index,
            };
            let Some(chunk) = chunks.get(index) else { break };
            let rows = self.rows(chunk).await?;
            let rows = within(&rows, span).iter().cloned();
            let is_full = match span.direction {
                Direction::Forward => fill(&mut scan, rows, limit),
                Direction::Backward => fill(&mut scan, rows.rev(), limit),
            };
            if is_full {
                break;
            }
        }
        Ok(scan)
    }
}
