//! What is about to be written beside the journal: files beside the database, and compactions that give back space.

use std::sync::atomic::Ordering::Relaxed;

use super::{Room, SpaceGuard};
use trestle_kv::CommitError;

/// The part of the reserve that files leave which replace rows, beside what they leave for a due compaction and for
/// deletes.
const KEPT_FROM_REPLACEMENTS: u64 = 2;

impl SpaceGuard {
    /// Counts what a compaction may write that gives back space, until it is dropped.
    pub(crate) fn claim_reclaim(&self, bytes: u64) -> ReclaimClaim<'_> {
        self.reclaim_bytes.fetch_add(bytes, Relaxed);
        ReclaimClaim { space: self, bytes }
    }

    /// Whether such a compaction runs.
    pub(crate) fn is_reclaiming(&self) -> bool {
        self.reclaim_bytes.load(Relaxed) > 0
    }

    /// Whether a file of so many bytes may be written beside the database. It counts as in flight from then on, and as
    /// written with [`SpaceGuard::written`]; [`SpaceGuard::published`] must follow.
    pub(crate) fn claim(&self, bytes: u64, buffered_bytes: u64) -> Result<Room, CommitError> {
        self.claimed_bytes.fetch_add(bytes, Relaxed);
        let room = match self.reserve_bytes {
            0 => Ok(Room::Admitted),
            _ => self.above_reserve(buffered_bytes),
        };
        if !matches!(room, Ok(Room::Admitted)) {
            self.claimed_bytes.fetch_sub(bytes, Relaxed);
        }
        room
    }

    /// Whether a file of so many bytes may be written that replaces more bytes of the database. It may use a part of
    /// the reserve: the rest is for the compactions that give back what it replaces. It counts as a claim does.
    pub(crate) fn claim_of_reserve(&self, bytes: u64, buffered_bytes: u64) -> bool {
        self.claimed_bytes.fetch_add(bytes, Relaxed);
        let fits = self.spare_bytes(buffered_bytes) >= self.reserve_bytes / KEPT_FROM_REPLACEMENTS;
        if !fits {
            self.claimed_bytes.fetch_sub(bytes, Relaxed);
        }
        fits
    }

    /// A claimed file is written, or failed. Until the next measurement its bytes count as used.
    pub(crate) fn written(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Relaxed);
        self.unpublished_bytes.fetch_add(bytes, Relaxed);
        self.claimed_bytes.fetch_sub(bytes, Relaxed);
    }

    /// A written file is part of the store now, or deleted.
    pub(crate) fn published(&self, bytes: u64) {
        self.unpublished_bytes.fetch_sub(bytes, Relaxed);
    }
}

/// What a running compaction that gives back space may write.
pub(crate) struct ReclaimClaim<'a> {
    space: &'a SpaceGuard,
    bytes: u64,
}

impl Drop for ReclaimClaim<'_> {
    fn drop(&mut self) {
        self.space.reclaim_bytes.fetch_sub(self.bytes, Relaxed);
    }
}
