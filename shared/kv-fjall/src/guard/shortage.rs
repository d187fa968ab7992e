//! When space becomes short and when it is enough again, and the log of both.

use std::sync::atomic::Ordering::Relaxed;

use super::{DRAINED_BYTES, LEAVES_ABOVE, SpaceGuard};

/// Writes are accepted again at the latest once this part of what the store used is free above the reserve, so that
/// deletes of a part of the data are always enough.
const FREED_BY_DELETES: u64 = 2;

impl SpaceGuard {
    /// The flush of what is in flight takes longer than writes wait: they are rejected until it ends.
    pub(crate) fn late(&self) {
        self.is_late.store(true, Relaxed);
        self.is_short.store(true, Relaxed);
    }

    /// The store is open, and space is measured. Where it is short, writes are rejected from the first one on. They go
    /// on without a delete if compactions, or a flush of what a recovery read, free enough.
    pub(crate) fn opened(&self, buffered_bytes: u64) {
        let room = match buffered_bytes {
            ..=DRAINED_BYTES => self.headroom(buffered_bytes),
            // How much a flush takes, and frees by deleting journals, is not known yet.
            _ => self.free_bytes(),
        };
        if room < self.reserve_bytes {
            self.late();
            self.is_draining.store(true, Relaxed);
            self.log_short(buffered_bytes);
        }
    }

    /// What was in flight is flushed: writes go on, or space is short.
    pub(crate) fn drained(&self, buffered_bytes: u64) {
        if !self.has_room(buffered_bytes) {
            self.enter(buffered_bytes);
        } else if self.is_late.swap(false, Relaxed) {
            self.leave();
        }
        self.is_draining.store(false, Relaxed);
    }

    /// Checks whether space became low, which begins with a flush, or is enough again, which is logged once.
    pub(crate) fn check(&self, buffered_bytes: u64) {
        let headroom = self.headroom(buffered_bytes);
        if !self.is_short() {
            self.is_draining.fetch_or(headroom < self.reserve_bytes, Relaxed);
        } else if !self.is_late.load(Relaxed)
            && headroom >= self.accepting_bytes()
            && self.free_bytes() >= self.enough_bytes.load(Relaxed)
        {
            self.leave();
        }
    }

    fn leave(&self) {
        self.is_short.store(false, Relaxed);
        if self.is_logged.swap(false, Relaxed) {
            let (free_bytes, reserve_bytes) = (self.free_bytes(), self.reserve_bytes);
            tracing::info!(
                free_bytes,
                reserve_bytes,
                "disk space is enough again, writes are accepted"
            );
        }
    }

    pub(super) fn enter(&self, buffered_bytes: u64) {
        let was_late = self.is_late.swap(false, Relaxed);
        if !self.is_short.swap(true, Relaxed) || was_late {
            let (free_bytes, reserve_bytes) = (self.free_bytes(), self.reserve_bytes);
            let in_use = free_bytes.saturating_sub(self.compacted(buffered_bytes));
            let enough = bytes_for_writes(reserve_bytes, in_use, self.used_bytes());
            // Calls that fail now delete their files: then a repeated call would make space short again at once.
            let unpublished = self.unpublished_bytes.load(Relaxed).min(reserve_bytes);
            let after_failures =
                free_bytes.saturating_add(unpublished + reserve_bytes / LEAVES_ABOVE);
            let enough = if unpublished == 0 { enough } else { enough.max(after_failures) };
            self.enough_bytes.store(enough, Relaxed);
            self.log_short(buffered_bytes);
        }
    }

    fn log_short(&self, buffered_bytes: u64) {
        if self.is_logged.swap(true, Relaxed) {
            return;
        }
        let (free_bytes, reserve_bytes) = (self.free_bytes(), self.reserve_bytes);
        let in_flight_bytes = self.in_flight(buffered_bytes);
        let effect = match self.accepts_deletes(buffered_bytes) {
            true => "only deletes are accepted",
            false => "writes and deletes are rejected",
        };
        tracing::warn!(free_bytes, in_flight_bytes, reserve_bytes, "disk space is short, {effect}");
    }
}

/// Free bytes from which on writes are accepted again, with what was in flight and what the store used when space
/// became short. What was in flight gets free without a delete, such as by a compaction that ends: if that were enough,
/// a writer would make space short again at once.
pub(super) fn bytes_for_writes(reserve_bytes: u64, in_flight_bytes: u64, used_bytes: u64) -> u64 {
    let margin = reserve_bytes / LEAVES_ABOVE;
    let deleted = (used_bytes / FREED_BY_DELETES).max(margin);
    reserve_bytes.saturating_add(in_flight_bytes.saturating_add(margin).min(deleted))
}
