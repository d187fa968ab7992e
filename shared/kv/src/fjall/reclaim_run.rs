//! One round of giving back the space of a keyspace: what is compacted, and whether it fits.

use std::time::{Duration, Instant};

use fjall::{AbstractTree as _, PersistMode, SeqNo};

use super::committer::HEARTBEAT_KEY;
use super::compactions::{self, StoredRows};
use super::options::SpaceProbe;
use super::reclaim::SNAPSHOTS_WITHIN;
use super::shared::{EngineState, Tree};

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
    pub(super) probe: &'a SpaceProbe,
    pub(super) tree: &'a Tree,
    pub(super) watermark: SeqNo,
    pub(super) is_short: bool,
}

impl Run<'_> {
    /// Compacts what there is room for. Returns whether nothing is left to do.
    pub(super) fn compact(&self, stored: &StoredRows) -> Result<bool, fjall::Error> {
        let room = self.spare_bytes().min(WHOLE_BYTES_MAX);
        let fits = stored.bytes <= room
            || self.is_short
                && stored.bytes <= SCANNED_BYTES_MAX
                && compactions::live_bytes(self.tree, room)? <= room;
        if fits {
            compactions::compact_whole(self.tree, self.watermark)?;
            return Ok(true);
        }
        self.push_down()
    }

    /// Compacts step by step, for as long as there is room for a step. Returns whether nothing is left to do; a
    /// compaction of the database that is under way may hide what is.
    fn push_down(&self) -> Result<bool, fjall::Error> {
        if self.is_short && self.tree.handle.tree.l0_run_count() > 0 {
            // A file alone in the first level would be moved down as it is. Two that overlap, which the second with
            // this row does, are merged into small ones.
            flush_heartbeat(self.shared, self.tree)?;
        }
        while compactions::next_step_output(self.tree) <= self.spare_bytes()
            && self.shared.stopped().is_none()
        {
            if !compactions::push_down(self.tree, self.watermark, self.is_short)? {
                return Ok(self.shared.database.active_compactions() == 0);
            }
            self.shared.release_files(SNAPSHOTS_WITHIN);
        }
        Ok(false)
    }

    /// What a compaction may write now; nothing, where free space cannot be measured.
    pub(super) fn spare_bytes(&self) -> u64 {
        let free_bytes = (self.probe)(&self.shared.path).unwrap_or(0);
        self.shared.space.spare_bytes(free_bytes, self.shared.measure_buffered())
    }
}

/// Flushes with a row that nothing reads.
pub(super) fn flush_heartbeat(shared: &EngineState, tree: &Tree) -> Result<(), fjall::Error> {
    let mut batch = shared.database.batch().durability(Some(PersistMode::SyncData));
    batch.insert(&tree.handle, HEARTBEAT_KEY, [0; 8]);
    batch.commit()?;
    flush(tree)
}

/// Writes the memtable of a keyspace to disk and waits for it.
#[expect(clippy::disallowed_methods, reason = "the threads of an engine are no async workers")]
pub(super) fn flush(tree: &Tree) -> Result<(), fjall::Error> {
    tree.handle.rotate_memtable()?;
    let started = Instant::now();
    while tree.handle.sealed_memtable_count() > 0 && started.elapsed() < FLUSHES_WITHIN {
        std::thread::sleep(FLUSH_POLL);
    }
    Ok(())
}
