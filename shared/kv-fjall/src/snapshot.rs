//! Reads at one instant.
//!
//! A scan outside a snapshot could see half of a batch, because the database reads each keyspace
//! at its newest state; so every read of a service goes through here. Point reads run on the
//! calling thread: a cached one takes microseconds, less than a hand-over to another thread. A
//! scan starts there too, and moves to the blocking pool when it turns out long, or at once where
//! so much was deleted or overwritten that the next row may be far. Few long scans are there at a time,
//! so that they cannot take every core from point reads, and they are there in turns by owner.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fjall::Readable as _;

use super::open_views::{OpenView, ViewCheck};
use super::read_epochs::EpochGuard;
use super::shared::{EngineState, read_failed};
use trestle_kv::keyspace::unknown_keyspace;
use trestle_kv::{Direction, EngineError, Entry, Scan, ScanLimit, Snapshot, Span};

/// What a scan may read on the calling thread.
const INLINE: ScanLimit = ScanLimit { rows: 500, bytes: 512 * 1024 };

/// Rows between two looks whether the snapshot was ended.
const CHECKED_ROWS: usize = 256;

pub(super) struct FjallSnapshot {
    view: OpenView,
}

impl FjallSnapshot {
    pub(super) fn new(shared: Arc<EngineState>) -> Self {
        Self { view: OpenView::open(shared) }
    }

    fn open(&self, span: &Span) -> Result<ScanCursor, EngineError> {
        let shared = self.view.engine();
        let index = shared.keyspaces.index_of_span(span)?;
        let tree = shared.trees.get(index).ok_or_else(|| unknown_keyspace(&span.start))?;
        let range = span.start.as_ref()..span.end.as_ref();
        self.view.read(|view, reading| {
            Ok(ScanCursor {
                rows: view.range(&tree.handle, range),
                _reading: reading.clone(),
                view: self.view.new_check(),
                direction: span.direction,
                scan: Scan { entries: Vec::new(), more: true },
                bytes: 0,
            })
        })
    }
}

#[async_trait]
impl Snapshot for FjallSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let tree = self.view.engine().tree(key).ok_or_else(|| unknown_keyspace(key))?;
        let value = self
            .view
            .read(|view, _| view.get(&tree.handle, key).map_err(|error| read_failed(&error)))?;
        Ok(value.map(Bytes::from))
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        if span.is_empty() {
            return Ok(Scan { entries: Vec::new(), more: false });
        }
        let shared = self.view.engine();
        let limit = shared.limits.of_scan(limit);
        let mut cursor = self.open(span)?;
        if shared.tombstones.are_few() {
            let inline = ScanLimit {
                rows: limit.rows.min(INLINE.rows),
                bytes: limit.bytes.min(INLINE.bytes),
            };
            cursor.read(inline)?;
            if !cursor.scan.more || cursor.reached(limit) {
                return Ok(cursor.finish());
            }
        }
        let turn = shared.long_scans.take().await;
        let shared = Arc::clone(shared);
        let rest = tokio::task::spawn_blocking(move || {
            let outcome = cursor.read(limit).map(|()| cursor.finish());
            drop((shared, turn));
            outcome
        });
        rest.await.unwrap_or_else(|_| {
            Err(EngineError::Unavailable { reason: "a scan was cut short".into() })
        })
    }
}

/// A scan under way.
struct ScanCursor {
    rows: fjall::Iter,
    /// The caller may drop the snapshot while a scan goes on, or the engine end it.
    _reading: EpochGuard,
    view: ViewCheck,
    direction: Direction,
    /// `more` is true until the range ends.
    scan: Scan,
    bytes: usize,
}

impl ScanCursor {
    /// Reads on until the limit, counted from the start of the scan, or the range is reached.
    fn read(&mut self, limit: ScanLimit) -> Result<(), EngineError> {
        loop {
            let Some(row) = self.next_row() else {
                self.scan.more = false;
                return Ok(());
            };
            let (key, value) = row.into_inner().map_err(|error| read_failed(&error))?;
            self.bytes = self.bytes.saturating_add(key.len()).saturating_add(value.len());
            self.scan.entries.push(Entry { key: key.into(), value: value.into() });
            if self.scan.entries.len().is_multiple_of(CHECKED_ROWS) {
                self.view.check()?;
            }
            if self.reached(limit) {
                return Ok(());
            }
        }
    }

    fn next_row(&mut self) -> Option<fjall::Guard> {
        match self.direction {
            Direction::Forward => self.rows.next(),
            Direction::Backward => self.rows.next_back(),
        }
    }

    /// The scan, having looked whether there is a row after it.
    fn finish(mut self) -> Scan {
        self.scan.more = self.scan.more && self.next_row().is_some();
        self.scan
    }

    fn reached(&self, limit: ScanLimit) -> bool {
        self.scan.entries.len() >= limit.rows || self.bytes >= limit.bytes
    }
}
