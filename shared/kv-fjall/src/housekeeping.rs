//! The thread that maintains an open engine once a tick: measures space, requests heartbeats,
//! detects a database that failed in the background, and syncs at the interval if commits do not.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fjall::{AbstractTree as _, PersistMode};

use super::backpressure;
use super::failure;
use super::guard::DRAINED_BYTES;
use super::options::SyncPolicy;
use super::shared::{EngineState, Tree, not_now};
use trestle_kv::point::CommitPoint;

/// How often memory is looked at: the fastest writers fill a memtable in about this time.
const RELIEVES_EVERY: Duration = Duration::from_millis(100);
/// How long snapshots are waited for, to release what they may need.
const SNAPSHOTS_WITHIN: Duration = Duration::from_millis(50);
/// How long a snapshot may be open while writes wait for what it holds. A page is read in less, and they wait for up to
/// ten seconds.
const SNAPSHOT_TIME: Duration = Duration::from_secs(2);

/// The files that a compaction replaced are deleted by then, also on a busy machine.
const FILES_WITHIN: Duration = Duration::from_secs(1);
/// Journals are deleted by then where they can be.
const JOURNALS_WITHIN: Duration = Duration::from_secs(3);
/// Shorter than writes wait at most.
const DRAINS_WITHIN: Duration = Duration::from_secs(8);
/// A flush that takes longer, such as one that finds no space, is not waited for.
const LATE_WITHIN: Duration = Duration::from_secs(60);

/// A flush of everything under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drain {
    since: Instant,
    /// When free space changed last, and what it was then.
    moved: Instant,
    free_bytes: u64,
}

pub(super) struct Housekeeper {
    pub(super) shared: Arc<EngineState>,
    pub(super) tick: Duration,
    /// What writes wait for, if space is low.
    pub(super) drain: Option<Drain>,
}

impl Housekeeper {
    /// Runs until the sender of `stop` was dropped.
    pub(super) fn run(mut self, stop: &Receiver<()>) {
        let wait = match self.shared.durability {
            SyncPolicy::Interval(interval) => interval.min(self.tick),
            SyncPolicy::Always | SyncPolicy::Os => self.tick,
        };
        let mut looked = Instant::now();
        while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(wait.min(RELIEVES_EVERY)) {
            self.shared.views.note();
            self.relieve();
            self.drain();
            if looked.elapsed() >= wait {
                looked = Instant::now();
                self.persist();
                self.look_around();
            }
        }
        // What was answered before a sync must not wait for the next start.
        self.persist();
    }

    /// Measures for the first time: what a short disk rejects is rejected, and reported, from the first write on.
    pub(super) fn begin(&mut self) {
        self.look_around();
        self.shared.space.opened(self.shared.measure_buffered());
    }

    /// Measures space and what scans have to pass, and requests heartbeats.
    pub(super) fn look_around(&mut self) {
        let buffered_bytes = self.shared.measure_space();
        self.shared.space.check(buffered_bytes);
        if let Ok(used_bytes) = self.shared.database.disk_space() {
            self.shared.space.measured_used(used_bytes);
        }
        self.shared.tombstones.measure(&self.shared.trees);
        // A wall clock that steps is logged even while no change reads it.
        let _ = self.shared.clock.now();
        self.shared.heartbeat_due.store(true, Relaxed);
    }

    /// Flushes everything while writes wait for it, and ends their wait once all is flushed and compacted.
    fn drain(&mut self) {
        if !self.shared.space.is_draining() || self.shared.stopped().is_some() {
            return;
        }
        let drain = *self.drain.get_or_insert_with(|| {
            if self.shared.may_flush() {
                self.shared.trees.iter().for_each(rotate);
            }
            Drain { since: Instant::now(), moved: Instant::now(), free_bytes: 0 }
        });
        let buffered_bytes = self.shared.measure_space();
        let free_bytes = self.shared.space.free_bytes();
        let moved = if free_bytes == drain.free_bytes { drain.moved } else { Instant::now() };
        let database = &self.shared.database;
        let is_compacting = database.active_compactions() > 0 || self.shared.space.is_reclaiming();
        let is_flushed = buffered_bytes <= DRAINED_BYTES && !is_compacting;
        let unchanged = if database.journal_count() < 2 { FILES_WITHIN } else { JOURNALS_WITHIN };
        let has_room = self.shared.space.has_room(buffered_bytes);
        // There is nothing to wait for.
        let is_stuck = !is_compacting && !self.shared.space.fits_flush(buffered_bytes);
        let is_over = is_stuck || is_flushed && (has_room || moved.elapsed() >= unchanged);
        if is_over || drain.since.elapsed() >= LATE_WITHIN {
            self.drain = None;
            let took_ms = drain.since.elapsed().as_millis();
            tracing::debug!(
                took_ms,
                free_bytes,
                buffered_bytes,
                "memtables were flushed for space"
            );
            self.shared.space.drained(buffered_bytes);
            return;
        }
        if drain.since.elapsed() >= DRAINS_WITHIN {
            self.shared.space.late();
        }
        self.drain = Some(Drain { free_bytes, moved, ..drain });
    }

    /// Ends the snapshots that writes wait for.
    fn end_snapshots(&self) {
        let ended = self.shared.views.end_older_than(SNAPSHOT_TIME);
        if ended > 0 {
            tracing::debug!(ended, "snapshots were ended, since writes waited for memory");
            self.shared.release_files(SNAPSHOTS_WITHIN);
        }
    }

    /// Keeps memory within its bounds: releases what was flushed, and flushes what is big.
    fn relieve(&self) {
        if self.shared.stopped().is_some() {
            return;
        }
        if !self.shared.release_files(SNAPSHOTS_WITHIN) && backpressure::is_pressed(&self.shared) {
            self.end_snapshots();
        }
        let buffered_bytes = self.shared.measure_buffered();
        if !self.shared.space.fits_flush(buffered_bytes) {
            return;
        }
        let trees = &self.shared.trees;
        let active = |tree: &Tree| tree.handle.tree.active_memtable().size();
        let full = trees.iter().filter(|tree| active(tree) >= self.shared.memtable_bytes);
        full.for_each(rotate);
        // Many small ones together are too much as well.
        let is_crowded = buffered_bytes > self.shared.write_buffer_bytes / 2;
        let sealed = || trees.iter().any(|tree| tree.handle.sealed_memtable_count() > 0);
        if is_crowded
            && !sealed()
            && let Some(biggest) = trees.iter().max_by_key(|tree| active(tree))
        {
            rotate(biggest);
        }
        if is_crowded && self.shared.database.active_compactions() > 0 {
            self.flush_sealed();
        }
    }

    /// Flushes here, as the worker of the database first ends its compaction, which can take seconds.
    fn flush_sealed(&self) {
        for tree in &self.shared.trees {
            if tree.handle.sealed_memtable_count() == 0 {
                continue;
            }
            // As the worker does: a file must not have what the journal could lose.
            let flushed = self.shared.database.persist(PersistMode::SyncAll).and_then(|()| {
                let lock = tree.handle.tree.get_flush_lock();
                let watermark = self.shared.database.visible_seqno();
                let kept = self.shared.reads.pass(SNAPSHOTS_WITHIN);
                tree.handle.tree.flush(&lock, if kept { watermark } else { 0 })?;
                Ok(())
            });
            if let Err(error) = flushed {
                self.shared.stop(failure::of_call(
                    "flush of a memtable",
                    &error,
                    &self.shared.path,
                ));
            }
        }
    }

    fn persist(&self) {
        if self.shared.stopped().is_some() {
            return;
        }
        // Syncs nothing under the other policies, but still reports when a flush or a compaction
        // failed.
        let mode = match self.shared.durability {
            SyncPolicy::Interval(_) => PersistMode::SyncData,
            SyncPolicy::Always | SyncPolicy::Os => PersistMode::Buffer,
        };
        if let Err(reason) = self.shared.reach(CommitPoint::BeforeFlush) {
            self.shared.stop(reason);
            return;
        }
        let started = Instant::now();
        let persisted = self.shared.database.persist(mode);
        if matches!(mode, PersistMode::SyncData) {
            (self.shared.on_sync)(started.elapsed());
        }
        if let Err(error) = persisted {
            let path = &self.shared.path;
            self.shared.stop(match error {
                fjall::Error::Poisoned => failure::of_background(path),
                error => failure::of_call("sync of a journal", &error, path),
            });
        }
    }
}

/// Seals the memtable of a keyspace, which a worker of the database then flushes.
fn rotate(tree: &Tree) {
    if let Err(error) = tree.handle.rotate_memtable() {
        not_now(&error, "a memtable cannot be sealed now");
    }
}
