//! The gate before a write that keeps disk space free.
//!
//! Free space is measured once a tick, and a fast writer fills a small disk in less. So the gate also counts what will
//! be written without a further decision: the journal since the last measurement, the memtables that are not flushed
//! or were flushed since then, and the output of compactions, which exists beside their input until they are done:
//! of the next one of the database, with what is flushed until then, and of one that gives back space. What is left is
//! the headroom. A failure of the database in the background stops the store for good, also one that a full disk
//! causes, so each of them must find the room it needs whatever else runs.
//!
//! What is in flight is written within seconds, and then takes less, since journals are deleted. So where the headroom
//! is below the reserve, writes first wait until everything is flushed; space is short if it is below it even then.

mod claims;
mod cost;
mod shortage;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use self::cost::{journal_bytes, reclaims};
use super::options::MEMTABLE_BYTES;
use trestle_kv::{CommitError, Write};

/// Free bytes that deletes leave, whatever the reserve is: a flush of what they wrote must still fit, of a memtable.
const KEPT_FROM_DELETES: u64 = MEMTABLE_BYTES;

/// Free bytes that a flush needs beside those of what it writes: a file has an index and a filter too.
const FLUSH_SPARE_BYTES: u64 = 1024 * 1024;

/// Writes are accepted again with so much more than the reserve, as a part of it.
const LEAVES_ABOVE: u64 = 16;

/// Bytes that may remain in memtables when all is flushed: heartbeats and deletes go on.
pub(super) const DRAINED_BYTES: u64 = 256 * 1024;

/// Near the reserve, space is measured again once so much was admitted: the thread that does it each tick may be late.
const MEASURED_EVERY_BYTES: u64 = 1024 * 1024;

/// Whether there is room for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// They are admitted.
    Admitted,
    /// They wait until what is in flight is flushed.
    WaitsForFlush,
}

/// Measures how much space is free, and what of it is in use already.
#[derive(Debug)]
pub(super) struct SpaceGuard {
    reserve_bytes: u64,
    free_bytes: AtomicU64,
    used_bytes: AtomicU64,
    /// Bytes in memtables when free space was measured; those that are flushed since are no longer in them.
    measured_buffered_bytes: AtomicU64,
    /// Bytes for the journal, admitted since free space was measured.
    admitted_bytes: AtomicU64,
    /// Bytes of files beside the database, written since free space was measured.
    written_bytes: AtomicU64,
    /// Bytes of files beside the database that are being written.
    claimed_bytes: AtomicU64,
    /// Bytes of written files that are deleted again if the call that writes them fails.
    unpublished_bytes: AtomicU64,
    /// What the next compaction of the database may write.
    compaction_bytes: AtomicU64,
    /// What the database compacts after its next flush.
    due_bytes: AtomicU64,
    /// What a compaction that gives back space may write, while it runs.
    reclaim_bytes: AtomicU64,
    /// Held while free space is measured.
    measuring: Mutex<()>,
    is_short: AtomicBool,
    /// Whether writes wait until what is in flight is flushed.
    is_draining: AtomicBool,
    /// Whether writes are rejected while that flush takes long; whether space is short is not known until it ends.
    is_late: AtomicBool,
    /// Whether the log reports that space is short.
    is_logged: AtomicBool,
    /// Free bytes from which on space is no longer short, whatever is in flight then.
    enough_bytes: AtomicU64,
}

impl SpaceGuard {
    /// A reserve of zero disables the gate.
    pub(super) fn new(reserve_bytes: u64) -> Self {
        Self {
            reserve_bytes,
            free_bytes: AtomicU64::new(u64::MAX),
            used_bytes: AtomicU64::new(0),
            measured_buffered_bytes: AtomicU64::new(0),
            admitted_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            claimed_bytes: AtomicU64::new(0),
            unpublished_bytes: AtomicU64::new(0),
            compaction_bytes: AtomicU64::new(0),
            due_bytes: AtomicU64::new(0),
            reclaim_bytes: AtomicU64::new(0),
            measuring: Mutex::new(()),
            is_short: AtomicBool::new(false),
            is_draining: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            is_logged: AtomicBool::new(false),
            enough_bytes: AtomicU64::new(0),
        }
    }

    /// Measures free space with `probe`, with so many bytes in memtables. What is admitted meanwhile counts on top.
    pub(super) fn measure<E>(
        &self,
        buffered_bytes: u64,
        probe: impl FnOnce() -> Result<u64, E>,
    ) -> Result<(), E> {
        let _measuring = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = self.admitted_bytes.load(Relaxed);
        let written = self.written_bytes.load(Relaxed);
        self.free_bytes.store(probe()?, Relaxed);
        self.measured_buffered_bytes.store(buffered_bytes, Relaxed);
        self.admitted_bytes.fetch_sub(admitted, Relaxed);
        self.written_bytes.fetch_sub(written, Relaxed);
        Ok(())
    }

    /// Whether free space is to be measured before more is admitted: it is near the reserve, and much was written
    /// since.
    pub(super) fn is_stale(&self, buffered_bytes: u64) -> bool {
        self.admitted_bytes.load(Relaxed) >= MEASURED_EVERY_BYTES
            && !self.is_short()
            && !self.has_room(buffered_bytes)
    }

    pub(super) fn measured_used(&self, used_bytes: u64) {
        self.used_bytes.store(used_bytes, Relaxed);
    }

    /// What the next compaction of the database may write, and the one that is due after its next flush.
    pub(super) fn measured_compaction(&self, bytes: u64, due_bytes: u64) {
        self.compaction_bytes.store(bytes, Relaxed);
        self.due_bytes.store(due_bytes, Relaxed);
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Relaxed)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    pub(super) fn reserve_bytes(&self) -> u64 {
        self.reserve_bytes
    }

    /// Whether only changes that remove keys are accepted.
    pub(super) fn is_short(&self) -> bool {
        self.is_short.load(Relaxed)
    }

    /// What a compaction that gives back space may write: it leaves what a due compaction of the database writes, and
    /// for deletes what is theirs.
    pub(super) fn spare_bytes(&self, buffered_bytes: u64) -> u64 {
        let due = match self.has_flush_room(buffered_bytes) {
            true => self.due_bytes.load(Relaxed),
            // Nothing is flushed then, so it does not begin.
            false => 0,
        };
        self.unwritten(buffered_bytes).saturating_sub(due.saturating_add(KEPT_FROM_DELETES))
    }

    /// Whether a flush fits, and the compaction of the database that follows it.
    pub(super) fn has_flush_room(&self, buffered_bytes: u64) -> bool {
        let due = self.due_bytes.load(Relaxed);
        self.unwritten(buffered_bytes) >= due.max(FLUSH_SPARE_BYTES)
    }

    /// Whether a flush alone fits. One that does not would stop the store; what is in memory waits for free space.
    pub(super) fn fits_flush(&self, buffered_bytes: u64) -> bool {
        self.reserve_bytes == 0 || self.unwritten(buffered_bytes) >= FLUSH_SPARE_BYTES
    }

    /// What such a compaction may write without that a write has to wait for it.
    pub(super) fn idle_bytes(&self, buffered_bytes: u64) -> u64 {
        // It counts as in flight until it is done, also what it has written.
        self.headroom(buffered_bytes).saturating_sub(self.accepting_bytes()) / 2
    }

    /// Free bytes once journal and memtables are written.
    fn unwritten(&self, buffered_bytes: u64) -> u64 {
        let parts = [&self.admitted_bytes, &self.written_bytes, &self.claimed_bytes];
        let in_files = self.unwritten_files(buffered_bytes);
        let sum = parts.iter().fold(in_files, |sum, part| sum.saturating_add(part.load(Relaxed)));
        self.free_bytes().saturating_sub(sum)
    }

    /// Bytes that are flushed from now on, or were since free space was measured.
    fn unwritten_files(&self, buffered_bytes: u64) -> u64 {
        let measured = self.measured_buffered_bytes.load(Relaxed);
        buffered_bytes.max(measured.saturating_add(self.admitted_bytes.load(Relaxed)))
    }

    /// Free bytes once compactions also ran. That of the database also writes what is flushed before it, for which the
    /// reserve is there as far as deletes leave it.
    fn headroom(&self, buffered_bytes: u64) -> u64 {
        let reserved = self.reserve_bytes.saturating_sub(KEPT_FROM_DELETES);
        let above = self.unwritten_files(buffered_bytes).saturating_sub(reserved);
        self.compacted(buffered_bytes).saturating_sub(above)
    }

    /// Free bytes once compactions also ran, of what is in files now.
    fn compacted(&self, buffered_bytes: u64) -> u64 {
        let reclaim = self.reclaim_bytes.load(Relaxed);
        let compaction = self.compaction_bytes.load(Relaxed).saturating_add(reclaim);
        self.unwritten(buffered_bytes).saturating_sub(compaction)
    }

    /// Whether writes wait until what is in flight is flushed.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Relaxed)
    }

    /// Whether the writes may go on with the space there is, beside so many bytes in memtables and in the group that
    /// is not written yet. They count as admitted from then on. Deletes may use the reserve, and so may a change that
    /// gives back space.
    pub(super) fn admit(
        &self,
        writes: &[Write],
        gives_back: bool,
        buffered_bytes: u64,
    ) -> Result<Room, CommitError> {
        let bytes = journal_bytes(writes);
        // Once in the journal, and once in a memtable that becomes a file.
        let buffered_bytes = self.unwritten_files(buffered_bytes);
        let buffered_bytes = buffered_bytes.saturating_add(bytes.saturating_mul(2));
        let room = self.room_for(gives_back || reclaims(writes), buffered_bytes)?;
        if room == Room::Admitted {
            self.admitted_bytes.fetch_add(bytes, Relaxed);
        }
        Ok(room)
    }

    fn room_for(&self, gives_back: bool, buffered_bytes: u64) -> Result<Room, CommitError> {
        if self.reserve_bytes == 0 {
            return Ok(Room::Admitted);
        }
        if gives_back {
            if self.accepts_deletes(buffered_bytes) {
                return Ok(Room::Admitted);
            }
            self.enter(buffered_bytes);
        }
        self.above_reserve(buffered_bytes)
    }

    fn above_reserve(&self, buffered_bytes: u64) -> Result<Room, CommitError> {
        if self.is_short() {
            // Space may have become enough since the last check, which is made once a second.
            self.check(buffered_bytes);
        }
        if self.is_short() {
            return Err(self.full(buffered_bytes));
        }
        if self.is_draining() || self.headroom(buffered_bytes) < self.reserve_bytes {
            self.is_draining.store(true, Relaxed);
            return Ok(Room::WaitsForFlush);
        }
        Ok(Room::Admitted)
    }

    /// Whether the headroom is one with which writes go on.
    pub(super) fn has_room(&self, buffered_bytes: u64) -> bool {
        self.headroom(buffered_bytes) >= self.accepting_bytes()
    }

    /// The headroom from which on writes go on.
    fn accepting_bytes(&self) -> u64 {
        self.reserve_bytes.saturating_add(self.reserve_bytes / LEAVES_ABOVE)
    }

    pub(super) fn full(&self, buffered_bytes: u64) -> CommitError {
        let free_bytes = self.free_bytes();
        let in_flight_bytes = self.in_flight(buffered_bytes);
        let accepting = self.accepting_bytes().saturating_add(in_flight_bytes);
        let since_short = if self.is_short() { self.enough_bytes.load(Relaxed) } else { 0 };
        CommitError::Full {
            free_bytes,
            in_flight_bytes,
            reserve_bytes: self.reserve_bytes,
            enough_bytes: accepting.max(since_short),
            are_deletes_accepted: self.accepts_deletes(buffered_bytes),
        }
    }

    fn accepts_deletes(&self, buffered_bytes: u64) -> bool {
        self.unwritten(buffered_bytes) >= KEPT_FROM_DELETES
    }

    fn in_flight(&self, buffered_bytes: u64) -> u64 {
        self.free_bytes().saturating_sub(self.headroom(buffered_bytes))
    }
}

#[cfg(test)]
mod tests;
