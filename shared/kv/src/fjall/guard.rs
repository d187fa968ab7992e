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

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::options::MEMTABLE_BYTES;
use crate::limits::RECLAIM_PUT_BYTES_MAX;
use crate::{CommitError, Write};

/// What the journal adds to a key and its value, at most, in bytes.
const JOURNAL_ENTRY_BYTES: u64 = 64;

/// Free bytes that deletes leave, whatever the reserve is: a flush of what they wrote must still fit, of a memtable.
const KEPT_FROM_DELETES: u64 = MEMTABLE_BYTES;

/// The part of the reserve that files leave which replace rows, beside what they leave for a due compaction and for
/// deletes.
const KEPT_FROM_REPLACEMENTS: u64 = 2;

/// Free bytes that a flush needs beside those of what it writes: a file has an index and a filter too.
const FLUSH_SPARE_BYTES: u64 = 1024 * 1024;

/// Writes are accepted again with so much more than the reserve, as a part of it.
const LEAVES_ABOVE: u64 = 16;

/// Writes are accepted again at the latest once this part of what the store used is free above the reserve, so that
/// deletes of a part of the data are always enough.
const FREED_BY_DELETES: u64 = 2;

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

    /// Counts what a compaction may write that gives back space, until it is dropped.
    pub(super) fn claim_reclaim(&self, bytes: u64) -> ReclaimClaim<'_> {
        self.reclaim_bytes.fetch_add(bytes, Relaxed);
        ReclaimClaim { space: self, bytes }
    }

    /// Whether such a compaction runs.
    pub(super) fn is_reclaiming(&self) -> bool {
        self.reclaim_bytes.load(Relaxed) > 0
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
            return Err(self.full(buffered_bytes));
        }
        if self.is_draining() || self.headroom(buffered_bytes) < self.reserve_bytes {
            self.is_draining.store(true, Relaxed);
            return Ok(Room::WaitsForFlush);
        }
        Ok(Room::Admitted)
    }

    /// Whether a file of so many bytes may be written beside the database. It counts as in flight from then on, and as
    /// written with [`SpaceGuard::written`]; [`SpaceGuard::published`] must follow.
    pub(super) fn claim(&self, bytes: u64, buffered_bytes: u64) -> Result<Room, CommitError> {
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
    pub(super) fn claim_of_reserve(&self, bytes: u64, buffered_bytes: u64) -> bool {
        self.claimed_bytes.fetch_add(bytes, Relaxed);
        let fits = self.spare_bytes(buffered_bytes) >= self.reserve_bytes / KEPT_FROM_REPLACEMENTS;
        if !fits {
            self.claimed_bytes.fetch_sub(bytes, Relaxed);
        }
        fits
    }

    /// A claimed file is written, or failed. Until the next measurement its bytes count as used.
    pub(super) fn written(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Relaxed);
        self.unpublished_bytes.fetch_add(bytes, Relaxed);
        self.claimed_bytes.fetch_sub(bytes, Relaxed);
    }

    /// A written file is part of the store now, or deleted.
    pub(super) fn published(&self, bytes: u64) {
        self.unpublished_bytes.fetch_sub(bytes, Relaxed);
    }

    /// The flush of what is in flight takes longer than writes wait: they are rejected until it ends.
    pub(super) fn late(&self) {
        self.is_late.store(true, Relaxed);
        self.is_short.store(true, Relaxed);
    }

    /// The store is open, and space is measured. Where it is short, writes are rejected from the first one on. They go
    /// on without a delete if compactions, or a flush of what a recovery read, free enough.
    pub(super) fn opened(&self, buffered_bytes: u64) {
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
    pub(super) fn drained(&self, buffered_bytes: u64) {
        if !self.has_room(buffered_bytes) {
            self.enter(buffered_bytes);
        } else if self.is_late.swap(false, Relaxed) {
            self.leave();
        }
        self.is_draining.store(false, Relaxed);
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

    /// Checks whether space became low, which begins with a flush, or is enough again, which is logged once.
    pub(super) fn check(&self, buffered_bytes: u64) {
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

    fn enter(&self, buffered_bytes: u64) {
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

/// What a running compaction that gives back space may write.
pub(super) struct ReclaimClaim<'a> {
    space: &'a SpaceGuard,
    bytes: u64,
}

impl Drop for ReclaimClaim<'_> {
    fn drop(&mut self) {
        self.space.reclaim_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// Free bytes from which on writes are accepted again, with what was in flight and what the store used when space
/// became short. What was in flight gets free without a delete, such as by a compaction that ends: if that were enough,
/// a writer would make space short again at once.
fn bytes_for_writes(reserve_bytes: u64, in_flight_bytes: u64, used_bytes: u64) -> u64 {
    let margin = reserve_bytes / LEAVES_ABOVE;
    let deleted = (used_bytes / FREED_BY_DELETES).max(margin);
    reserve_bytes.saturating_add(in_flight_bytes.saturating_add(margin).min(deleted))
}

fn journal_bytes(writes: &[Write]) -> u64 {
    let bytes = |write: &Write| match write {
        Write::Put { key, value } => key.len().saturating_add(value.len()),
        Write::Delete { key } => key.len(),
    };
    let to_u64 = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    let add = |sum: u64, write| {
        sum.saturating_add(to_u64(bytes(write))).saturating_add(JOURNAL_ENTRY_BYTES)
    };
    writes.iter().fold(0, add)
}

/// Whether the writes remove something, and put no more than a counter.
fn reclaims(writes: &[Write]) -> bool {
    let (mut put_bytes, mut removed_bytes) = (0_usize, 0_usize);
    let mut deletes = false;
    for write in writes {
        match write {
            Write::Put { key, value } => {
                put_bytes = put_bytes.saturating_add(key.len()).saturating_add(value.len());
            }
            Write::Delete { key } => {
                deletes = true;
                removed_bytes = removed_bytes.saturating_add(key.len());
            }
        }
    }
    // A put may name one of the removed keys, which can be long; so their length counts for it.
    deletes && put_bytes <= removed_bytes.saturating_add(RECLAIM_PUT_BYTES_MAX)
}

#[cfg(test)]
mod tests;
