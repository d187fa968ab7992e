//! The background work on blobs: reclaiming what changes left behind, the blobs of deleted containers, staged blocks
//! that were never committed, and objects that no blob has; and compacting the rows of append blobs.

mod compactions;
mod containers;
mod epochs;
mod expired;
#[cfg(test)]
mod interleaved_tests;
mod orphans;
mod reclaim;
mod retired;
mod shared;
mod stagings;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use trestle_kv::{Entry, ScanLimit, Span, after_key};
use trestle_model::read_grace::ReadGrace;

use self::epochs::EpochScan;
use crate::{blobs::Blobs, error::BlobError, keys::BlobRow};

/// Most rows that one step examines.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };
/// Rows that are deleted at once.
const ROWS: usize = 500;
/// How long the rows of a deleted container are kept for writes in flight; longer than such a write may take.
pub(crate) const CONTAINER_GRACE: Duration = Duration::from_secs(120);
/// How long an object may exist without a blob: longer than any upload, and than the ids of a block are used.
pub(crate) const ORPHAN_GRACE: Duration = Duration::from_secs(24 * 3600);

/// The background work.
pub(crate) struct BlobSweeper {
    blobs: Blobs,
    positions: Mutex<Positions>,
    grace: ReadGrace,
}

/// Where the next tick continues. It can be reconstructed.
#[derive(Default)]
struct Positions {
    retired: Bytes,
    shared: Bytes,
    stagings: Bytes,
    expired: Bytes,
    expired_containers: Bytes,
    compactions: Bytes,
    /// Scans for chunks that deleted snapshots had, in the order of their next parts.
    epochs: VecDeque<EpochScan>,
}

impl Positions {
    /// That of a kind of retired rows.
    fn retired(&mut self, row: BlobRow) -> &mut Bytes {
        if row == BlobRow::SharedRetired { &mut self.shared } else { &mut self.retired }
    }
}

/// A part of a scan that continues from tick to tick.
struct ScannedPart {
    entries: Vec<Entry>,
    /// Where the next one begins; empty: at the start.
    next: Bytes,
}

impl BlobSweeper {
    /// Sweeps these blobs.
    pub(crate) fn new(blobs: Blobs) -> Self {
        Self { blobs, positions: Mutex::default(), grace: ReadGrace::default() }
    }

    fn with<T>(&self, use_positions: impl FnOnce(&mut Positions) -> T) -> T {
        use_positions(&mut self.positions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs one step of each kind. Returns true when another step should follow at once.
    ///
    /// # Errors
    /// The first error; the other steps were executed too, and the next tick retries.
    pub(crate) async fn tick(&self) -> Result<bool, BlobError> {
        let steps = [
            self.sweep_expired().await,
            self.sweep_expired_containers().await,
            self.sweep_retired(BlobRow::Retired).await,
            self.sweep_retired(BlobRow::SharedRetired).await,
            self.sweep_epochs().await,
            self.sweep_containers().await,
            self.sweep_stagings().await,
            self.sweep_compactions().await,
            self.sweep_orphans().await,
        ];
        let mut more = false;
        for step in steps {
            more |= step?;
        }
        Ok(more)
    }

    /// The next part of a range.
    async fn part(&self, span: Span, from: Bytes) -> Result<ScannedPart, BlobError> {
        let span = Span::new(from.max(span.start.clone()), span.end);
        let scan = self.blobs.engine.scan(&span, STEP).await?;
        let last = scan.entries.last().filter(|_| scan.more);
        let next = last.map(|last| after_key(&last.key).into()).unwrap_or_default();
        Ok(ScannedPart { entries: scan.entries, next })
    }
}
