//! The thread that gives back the space of what was deleted: while disk space is short, and when the engine is idle.
//!
//! For each keyspace: flush what deletes left in memory, compact the marks of deletes down to what they delete, and
//! remove the files that this replaced. A compaction writes its output before its input is removed, so only those run
//! that fit in what is free, beside what the database may compact meanwhile; what they write counts as in flight.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::compactions::StoredRows;
use super::reclaim_run::{Run, SNAPSHOTS_WITHIN, flush_heartbeat};
use super::shared::{EngineState, not_now};

/// The engine is idle after so long with few writes.
const IDLE_AFTER: Duration = Duration::from_secs(10);
/// Few writes: of so many bytes within that time.
const IDLE_BYTES_MAX: u64 = 1024 * 1024;
/// Idle, a keyspace is compacted if at least one byte of so many in it is dead: it costs writing them all.
const DEAD_PART: u64 = 8;

pub(super) struct Reclaimer {
    shared: Arc<EngineState>,
    tick: Duration,
    /// Bytes that were committed when they last were many, and when that was.
    busy: (u64, Instant),
    /// For each keyspace the state that needs no more work.
    settled: Vec<Option<StoredRows>>,
}

impl Reclaimer {
    pub(super) fn new(shared: Arc<EngineState>, tick: Duration) -> Self {
        let settled = shared.trees.iter().map(|_| None).collect();
        Self { shared, tick, busy: (0, Instant::now()), settled }
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
            for index in 0..self.shared.trees.len() {
                if !matches!(stop.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
                    return;
                }
                if let Err(error) = self.reclaim(index, is_short) {
                    not_now(&error, "space of deleted data cannot be given back now");
                }
            }
        }
    }

    /// Flushes what keeps the database from removing journals that it has sealed.
    fn release_journals(&self) {
        if self.shared.database.journal_count() < 2 || !self.shared.may_flush() {
            return;
        }
        for tree in &self.shared.trees {
            if let Err(error) = tree.handle.rotate_memtable() {
                not_now(&error, "a memtable cannot be sealed now");
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
    fn reclaim(&mut self, index: usize, is_short: bool) -> Result<(), fjall::Error> {
        let shared = Arc::clone(&self.shared);
        let (Some(tree), Some(settled)) = (shared.trees.get(index), self.settled.get_mut(index))
        else {
            return Ok(());
        };
        if tree.deletes.load(Relaxed) > 0 && shared.may_flush() {
            tree.deletes.store(0, Relaxed);
            flush_heartbeat(&shared, tree)?;
        }
        let stored = StoredRows::of(tree);
        let is_worth_it = stored.dead_bytes() > if is_short { 0 } else { stored.bytes / DEAD_PART };
        if !is_worth_it || *settled == Some(stored) {
            return Ok(());
        }
        let Some(watermark) = shared.watermark(SNAPSHOTS_WITHIN) else { return Ok(()) };
        let run = Run { shared: &shared, tree, watermark, is_short };
        if run.compact(&stored)? {
            *settled = Some(StoredRows::of(tree));
        }
        shared.release_files(SNAPSHOTS_WITHIN);
        Ok(())
    }
}
