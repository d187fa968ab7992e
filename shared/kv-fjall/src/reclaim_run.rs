//! One round of giving back the space of a keyspace: what is compacted, and whether it fits.

use std::time::{Duration, Instant};

use fjall::{AbstractTree as _, PersistMode, SeqNo};

use super::committer::HEARTBEAT_KEY;
use super::compactions::{self, StoredRows};
use super::guard::SpaceGuard;
use super::shared::{EngineState, Tree};

/// How long open snapshots are waited for; after that the next round tries again.
pub(super) const SNAPSHOTS_WITHIN: Duration = Duration::from_secs(2);
/// Up to this size a keyspace is read to find out how much of it is live, which takes a few seconds.
const SCANNED_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Up to this size a keyspace is compacted as a whole, which holds up its flushes for about two seconds.
const WHOLE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How long a flush is waited for.
const FLUSHES_WITHIN: Duration = Duration::from_secs(10);
const FLUSH_POLL: Duration = Duration::from_millis(5);

/// Compactions of a keyspace.
pub(super) struct Run<'a> {
    pub(super) shared: &'a EngineState,
    pub(super) tree: &'a Tree,
    pub(super) watermark: SeqNo,
    pub(super) is_short: bool,
}

impl Run<'_> {
    /// Compacts what there is room for. Returns whether nothing is left to do.
    pub(super) fn compact(&self, stored: &StoredRows) -> Result<bool, fjall::Error> {
        let room = self.whole_room().min(WHOLE_BYTES_MAX);
        let is_scanned = stored.bytes > room && self.is_short && stored.bytes <= SCANNED_BYTES_MAX;
        let bytes = match is_scanned {
            true => compactions::live_bytes(self.tree, room)?,
            false => stored.bytes,
        };
        if bytes <= WHOLE_BYTES_MAX && self.compact_whole(bytes)? {
            return Ok(true);
        }
        self.push_down()
    }

    /// Compacts the keyspace as a whole, which writes at most so many bytes. Returns whether there was room.
    pub(super) fn compact_whole(&self, bytes: u64) -> Result<bool, fjall::Error> {
        let compacted = self.within(self.whole_room(), bytes, || {
            compactions::compact_whole(self.tree, self.watermark)?;
            Ok(true)
        });
        Ok(compacted?.is_some())
    }

    /// Compacts step by step, for as long as there is room for a step. Returns whether nothing is left to do; a
    /// compaction of the database that is under way may hide what is.
    fn push_down(&self) -> Result<bool, fjall::Error> {
        if self.is_short && self.tree.handle.tree.l0_run_count() > 0 && self.shared.may_flush() {
            // A file alone in the first level would be moved down as it is. Two that overlap, which the second with
            // this row does, are merged into small ones.
            flush_heartbeat(self.shared, self.tree)?;
        }
        while self.shared.stopped().is_none() {
            let step = || compactions::push_down(self.tree, self.watermark, self.is_short);
            match self.within(self.step_room(), compactions::next_step_output(self.tree), step)? {
                Some(true) => {}
                Some(false) => return Ok(self.shared.database.active_compactions() == 0),
                None => {
                    self.let_database_compact()?;
                    break;
                }
            }
        }
        Ok(false)
    }

    /// Lets the database run the compaction that room is kept for, after a flush.
    fn let_database_compact(&self) -> Result<(), fjall::Error> {
        if self.is_short && compactions::outputs(self.tree).1 > 0 && self.shared.may_flush() {
            flush_heartbeat(self.shared, self.tree)?;
        }
        Ok(())
    }

    /// Runs a compaction that writes at most so many bytes, if there is room for it.
    fn within(
        &self,
        room: u64,
        bytes: u64,
        compact: impl FnOnce() -> Result<bool, fjall::Error>,
    ) -> Result<Option<bool>, fjall::Error> {
        if bytes > room {
            return Ok(None);
        }
        let claim = self.shared.space.claim_reclaim(bytes);
        let compacted = compact();
        self.shared.release_files(SNAPSHOTS_WITHIN);
        // What it wrote counts as in flight until it counts as used.
        self.shared.measure_space();
        drop(claim);
        compacted.map(Some)
    }

    /// What a compaction of the whole keyspace may write now. While space is not short, no write is to wait for it.
    fn whole_room(&self) -> u64 {
        match self.is_short {
            true => self.step_room(),
            false => self.measured(SpaceGuard::idle_bytes),
        }
    }

    /// What a step may write now; writes wait for it at most shortly.
    fn step_room(&self) -> u64 {
        self.measured(SpaceGuard::spare_bytes)
    }

    /// Nothing, where free space cannot be measured.
    fn measured(&self, bytes: fn(&SpaceGuard, u64) -> u64) -> u64 {
        let buffered_bytes = self.shared.measure_space();
        if self.shared.is_blind() { 0 } else { bytes(&self.shared.space, buffered_bytes) }
    }
}

/// Flushes with a row that nothing reads.
pub(super) fn flush_heartbeat(shared: &EngineState, tree: &Tree) -> Result<(), fjall::Error> {
    let mut batch = shared.database.batch().durability(Some(PersistMode::SyncData));
    batch.insert(&tree.handle, HEARTBEAT_KEY, [0; 8]);
    let in_order = shared.written.lock();
    batch.commit()?;
    drop(in_order);
    flush(tree)
}

/// Writes the memtable of a keyspace to disk and waits for it.
#[expect(clippy::disallowed_methods, reason = "the threads of an engine are not async workers")]
pub(super) fn flush(tree: &Tree) -> Result<(), fjall::Error> {
    tree.handle.rotate_memtable()?;
    let started = Instant::now();
    while tree.handle.sealed_memtable_count() > 0 && started.elapsed() < FLUSHES_WITHIN {
        std::thread::sleep(FLUSH_POLL);
    }
    Ok(())
}
