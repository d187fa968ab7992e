//! The one thread that writes.
//!
//! It takes what is queued, decides it as one group, writes the group as one batch of the
//! database with one sync, and answers. While it syncs, the next group gathers in the queue: load
//! makes groups big, and no timer makes anybody wait. A lock for each row, held across the sync,
//! would allow a hot row one update a sync; here a group takes hundreds.
//!
//! Order in a group write, and why: journal, sync, memtable, answer. What is
//! not durable is neither read nor acknowledged. After a failure the journal's end is not known, so nothing
//! is written ever again; a restart reads the journal up to the last whole batch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use fjall::PersistMode;
use tokio::sync::mpsc;

use super::group::{Group, GroupOutcome, PendingChange, answer};
use super::guard::{WriteStall, wait_for_compaction};
use super::options::SyncPolicy;
use super::point::CommitPoint;
use super::read_cache::RecentWrites;
use super::shared::{EngineState, Tree, error_text};
use super::stats::GroupWrite;
use super::version_floor::FlooredVersions;
use crate::CommitError;

/// Changes that may wait for the committer; more are turned away.
pub(super) const QUEUE_MAX: usize = 4_096;

/// The key of the heartbeat in every keyspace. Kind 0 belongs to no keyspace, so no read or scan
/// of a service is ever routed to it.
pub(super) const HEARTBEAT_KEY: [u8; 1] = [0];

pub(super) struct Committer {
    shared: Arc<EngineState>,
    /// Waits until a group may be written, or returns why not.
    gate: fn(&[Tree]) -> WriteStall,
    heartbeats: u64,
    /// Number of the last group.
    group: u64,
    /// How many keys it wrote: the next one will hardly be much bigger.
    written: usize,
    recent: RecentWrites,
    versions: FlooredVersions,
}

impl Committer {
    pub(super) fn new(shared: Arc<EngineState>) -> Self {
        Self {
            versions: FlooredVersions::after(shared.version_floor),
            shared,
            gate: wait_for_compaction,
            heartbeats: 0,
            group: 0,
            written: 0,
            recent: RecentWrites::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_gate(shared: Arc<EngineState>, gate: fn(&[Tree]) -> WriteStall) -> Self {
        Self { gate, ..Self::new(shared) }
    }

    /// Runs until every sender of the queue was dropped.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<PendingChange>) {
        let _stop = StopOnPanic(Arc::clone(&self.shared));
        while let Some(change) = queue.blocking_recv() {
            self.take_group(change, &mut queue);
        }
        self.settle_versions();
    }

    fn take_group(&mut self, first: PendingChange, queue: &mut mpsc::Receiver<PendingChange>) {
        if let Err(error) = self.shared.check_running() {
            answer(first.answer, Err(error));
            return;
        }
        let gate = (self.gate)(&self.shared.trees);
        if !gate.waited.is_zero() {
            self.shared.counters.stalled(gate.waited);
        }
        if let Err(error) = gate.outcome {
            self.shed(first, &error, queue);
            return;
        }
        let mut group = Group::with_capacity(self.written);
        group.admit(first, &self.shared, &self.recent, &mut self.versions.versions);
        while !group.is_full() {
            let Ok(change) = queue.try_recv() else { break };
            group.admit(change, &self.shared, &self.recent, &mut self.versions.versions);
        }
        self.group += 1;
        self.written = group.len();
        self.recent.note(self.group, group.keys());
        let outcome = self.write(&mut group);
        let outcome = match (&outcome, self.shared.reach(CommitPoint::AfterSync)) {
            (GroupOutcome::Durable, Err(reason)) => GroupOutcome::Unknown(reason),
            _ => outcome,
        };
        if matches!(outcome, GroupOutcome::Durable) {
            self.shared.show_group(self.group);
        }
        if let GroupOutcome::Refused(reason) | GroupOutcome::Unknown(reason) = &outcome {
            self.shared.stop(Arc::clone(reason));
        }
        if self.shared.reach(CommitPoint::BeforeAnswer).is_ok() {
            group.finish(&outcome);
        }
    }

    /// Turns away the first and everyone who queued up behind it meanwhile.
    fn shed(
        &self,
        first: PendingChange,
        error: &CommitError,
        queue: &mut mpsc::Receiver<PendingChange>,
    ) {
        let mut next = Some(first);
        let mut left = queue.len();
        while let Some(change) = next {
            self.shared.counters.shed();
            answer(change.answer, Err(error.clone()));
            next = if left > 0 { queue.try_recv().ok() } else { None };
            left = left.saturating_sub(1);
        }
    }

    fn write(&mut self, group: &mut Group) -> GroupOutcome {
        if group.is_empty() {
            return GroupOutcome::Durable;
        }
        if let Err(reason) = self.shared.reach(CommitPoint::BeforeJournal) {
            return GroupOutcome::Unknown(reason);
        }
        let (writers, obsoletes) = (group.writers(), group.obsoletes());
        let mode = self.persist_mode();
        let mut batch = self.shared.database.batch().durability(Some(mode));
        let mut bytes = 0_usize;
        for (key, value) in group.drain_writes() {
            let Some(tree) = self.shared.tree(&key) else {
                continue;
            };
            bytes += key.len() + value.as_ref().map_or(0, bytes::Bytes::len);
            match value {
                Some(value) => batch.insert(&tree.handle, key, value),
                None => batch.remove(&tree.handle, key),
            }
        }
        self.add_heartbeat(&mut batch);
        self.versions.raise(&mut batch, &self.shared.trees);
        let clock = Clock::start();
        // Ahead of the write: a scan must not meet what was not counted.
        let counted = self.shared.tombstones.add(obsoletes);
        let written = catch_unwind(AssertUnwindSafe(|| batch.commit()));
        drop(counted);
        let to_u64 = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let Elapsed { took, waited } = clock.stop();
        let write = GroupWrite { changes: to_u64(writers), took };
        self.shared.counters.group(write, to_u64(bytes));
        (self.shared.on_group)(write);
        if matches!(mode, PersistMode::SyncData) {
            (self.shared.on_sync)(waited);
        }
        match written {
            Ok(Ok(())) => GroupOutcome::Durable,
            // Checked before the journal is touched: a flush or a compaction failed earlier.
            Ok(Err(fjall::Error::Poisoned)) => {
                GroupOutcome::Refused("a flush or a compaction failed before".into())
            }
            Ok(Err(error)) => {
                GroupOutcome::Unknown(format!("a write failed: {}", error_text(&error)).into())
            }
            Err(_) => GroupOutcome::Unknown("the write of a group panicked".into()),
        }
    }

    fn persist_mode(&self) -> PersistMode {
        match self.shared.durability {
            SyncPolicy::Always => PersistMode::SyncData,
            SyncPolicy::Interval(_) | SyncPolicy::Os => PersistMode::Buffer,
        }
    }

    /// Stores the newest version, so that after a clean close the next one need not be far from it.
    fn settle_versions(&mut self) {
        let mut batch = self.shared.database.batch().durability(Some(self.persist_mode()));
        if self.shared.stopped().is_some() || !self.versions.settle(&mut batch, &self.shared.trees)
        {
            return;
        }
        if let Err(error) = batch.commit() {
            // The floor that is stored is greater, which is as safe.
            self.shared.stop(format!("a write failed: {}", error_text(&error)).into());
        }
    }

    /// Adds a heartbeat row for every keyspace, if one is due, to a group that is written anyway.
    ///
    /// The journal can be cut only behind the oldest keyspace that has something unflushed, and a
    /// memtable whose writes cancelled each other flushes to nothing and moves no mark. The
    /// heartbeat gives every keyspace something newer to flush. An idle engine writes none: its
    /// journal does not grow.
    fn add_heartbeat(&mut self, batch: &mut fjall::OwnedWriteBatch) {
        if !self.shared.heartbeat_due.swap(false, Relaxed) {
            return;
        }
        self.heartbeats += 1;
        for tree in &self.shared.trees {
            batch.insert(&tree.handle, HEARTBEAT_KEY, self.heartbeats.to_be_bytes());
        }
    }
}

/// Measures a write of this thread.
///
/// The database writes, syncs and applies a batch in one call and reports nothing of its parts. The
/// sync is where the thread waits; everything else is work. So the time without processor is the
/// time of the sync, and of waiting for a processor where others have them all.
struct Clock {
    started: Instant,
    worked: Duration,
}

/// What a [`Clock`] measured.
struct Elapsed {
    took: Duration,
    /// Of it, without processor.
    waited: Duration,
}

impl Clock {
    fn start() -> Self {
        Self { started: Instant::now(), worked: thread_time() }
    }

    fn stop(self) -> Elapsed {
        let took = self.started.elapsed();
        let worked = thread_time().saturating_sub(self.worked);
        Elapsed { took, waited: took.saturating_sub(worked) }
    }
}

/// The processor time of this thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A commit thread that ended must not look like an idle one.
struct StopOnPanic(Arc<EngineState>);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop("the commit thread panicked".into());
        }
    }
}
