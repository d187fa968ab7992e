//! The thread that gives back the space of what was deleted: while disk space is short, and when the engine is idle.
//!
//! For each keyspace: flush what deletes left in memory, compact the marks of deletes down to what they delete, and
//! remove the files that this replaced. A compaction writes its output before its input is removed, so while space is
//! short only those run that fit in what is free.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fjall::{AbstractTree as _, PersistMode, SeqNo};

use super::committer::HEARTBEAT_KEY;
use super::compactions::{self, StoredRows};
use super::options::SpaceProbe;
use super::shared::{EngineState, Tree, error_text};

/// The engine is idle after so long with few writes.
const IDLE_AFTER: Duration = Duration::from_secs(10);
/// Few writes: of so many bytes within that time.
const IDLE_BYTES_MAX: u64 = 1024 * 1024;
/// Idle, a keyspace is compacted if at least one byte of so many in it is dead: it costs writing them all.
const DEAD_PART: u64 = 8;
/// How long open snapshots are waited for; after that the next round tries again.
pub(super) const SNAPSHOTS_WITHIN: Duration = Duration::from_secs(2);
/// How long a flush is waited for.
const FLUSHES_WITHIN: Duration = Duration::from_secs(10);
const FLUSH_POLL: Duration = Duration::from_millis(5);
/// Up to this size a keyspace is compacted as a whole, which holds up its flushes for about two seconds.
const WHOLE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Up to this size a keyspace is read to find out how much of it is live, which takes a few seconds.
const SCANNED_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

pub(super) struct Reclaimer {
    shared: Arc<EngineState>,
    probe: SpaceProbe,
    tick: Duration,
    /// Bytes that were committed when they last were many, and when that was.
    busy: (u64, Instant),
    /// For each keyspace the state that needs no more work.
    settled: Vec<Option<StoredRows>>,
}

impl Reclaimer {
    pub(super) fn new(shared: Arc<EngineState>, probe: SpaceProbe, tick: Duration) -> Self {
        let settled = shared.trees.iter().map(|_| None).collect();
        Self { shared, probe, tick, busy: (0, Instant::now()), settled }
    }

    /// Runs until the sender of `stop` was dropped.
    pub(super) fn run(mut self, stop: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(self.tick) {
            let is_idle = self.is_idle();
            let is_short = self.shared.space.is_short();
            if self.shared.stopped().is_some() || !(is_short || is_idle) {
                continue;
            }
            self.release_journals();
            for place in 0..self.shared.trees.len() {
                if !matches!(stop.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
                    return;
                }
                if let Err(error) = self.reclaim(place, is_short) {
                    let error = error_text(&error);
                    tracing::warn!(%error, "space of deleted data cannot be given back now");
                }
            }
        }
    }

    /// Flushes what keeps the database from removing journals that it has sealed.
    fn release_journals(&self) {
        if self.shared.database.journal_count() < 2 {
            return;
        }
        for tree in &self.shared.trees {
            if let Err(error) = tree.handle.rotate_memtable() {
                let error = error_text(&error);
                tracing::warn!(%error, "a memtable cannot be sealed now");
            }
        }
    }

    fn is_idle(&mut self) -> bool {
        let (bytes, since) = self.busy;
        let now = self.shared.counters.read().bytes;
        if now.saturating_sub(bytes) > IDLE_BYTES_MAX {
            self.busy = (now, Instant::now());
            return false;
        }
        since.elapsed() >= IDLE_AFTER
    }

    /// Gives back what a keyspace can.
    fn reclaim(&mut self, place: usize, is_short: bool) -> Result<(), fjall::Error> {
        let shared = Arc::clone(&self.shared);
        let (Some(tree), Some(settled)) = (shared.trees.get(place), self.settled.get_mut(place))
        else {
            return Ok(());
        };
        if tree.deletes.swap(0, Relaxed) > 0 {
            flush_heartbeat(&shared, tree)?;
        }
        let stored = StoredRows::of(tree);
        let is_worth_it = stored.dead_bytes() > if is_short { 0 } else { stored.bytes / DEAD_PART };
        if !is_worth_it || *settled == Some(stored) {
            return Ok(());
        }
        let Some(watermark) = shared.watermark(SNAPSHOTS_WITHIN) else { return Ok(()) };
        let run = Run { shared: &shared, probe: &self.probe, tree, watermark, is_short };
        if run.compact(&stored)? {
            *settled = Some(StoredRows::of(tree));
        }
        shared.release_files(SNAPSHOTS_WITHIN);
        Ok(())
    }
}

/// Compactions of a keyspace.
struct Run<'a> {
    shared: &'a EngineState,
    probe: &'a SpaceProbe,
    tree: &'a Tree,
    watermark: SeqNo,
    is_short: bool,
}

impl Run<'_> {
    /// Compacts what there is room for. Returns whether nothing is left to do.
    fn compact(&self, stored: &StoredRows) -> Result<bool, fjall::Error> {
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
    fn spare_bytes(&self) -> u64 {
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
fn flush(tree: &Tree) -> Result<(), fjall::Error> {
    tree.handle.rotate_memtable()?;
    let started = Instant::now();
    while tree.handle.sealed_memtable_count() > 0 && started.elapsed() < FLUSHES_WITHIN {
        std::thread::sleep(FLUSH_POLL);
    }
    Ok(())
}
