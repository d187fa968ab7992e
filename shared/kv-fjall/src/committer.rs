//! The one thread that writes.
//!
//! It takes what is queued, decides it as one group, writes the group as one batch of the
//! database with one sync, and answers. While it syncs, the next group gathers in the queue: load
//! makes groups big, and no change waits for a timer. A lock for each row, held across the sync,
//! would allow a hot row one update a sync; here a group takes hundreds.
//!
//! Order in a group write, and why: journal, sync, memtable, answer. What is
//! not durable is neither read nor acknowledged. After a failure the journal's end is not known, so nothing
//! is written ever again; a restart reads the journal up to the last whole batch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::PersistMode;

use super::backpressure::{self, KeyspaceSet};
use super::commit_queue::CommitQueue;
use super::delayed::{DelayedChange, DelayedChanges};
use super::failure;
use super::group::{self, Admission, Group, GroupOutcome, PendingChange, answer};
use super::group_clock::{Elapsed, GroupClock};
use super::marks;
use super::read_cache::RecentWrites;
use super::shared::EngineState;
use super::version_floor::FlooredVersions;
use trestle_kv::point::CommitPoint;
use trestle_kv::{CommitError, GroupWrite};

/// The key of the heartbeat in every keyspace. Kind 0 belongs to no keyspace, so no read or scan
/// of a service is ever routed to it.
pub(super) const HEARTBEAT_KEY: [u8; 1] = [0];

/// What a commit does, where the database does not say more.
const WRITE: &str = "write of a group";

/// How often delayed changes are tried again while nothing else comes.
const RETRY_EVERY: Duration = Duration::from_millis(5);

pub(super) struct Committer {
    shared: Arc<EngineState>,
    /// The keyspaces that take no writes now.
    gate: fn(&EngineState) -> KeyspaceSet,
    delayed: DelayedChanges,
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
            gate: backpressure::pressed,
            delayed: DelayedChanges::default(),
            heartbeats: 0,
            group: 0,
            written: 0,
            recent: RecentWrites::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_gate(
        shared: Arc<EngineState>,
        gate: fn(&EngineState) -> KeyspaceSet,
        waits_max: Duration,
    ) -> Self {
        let delayed = DelayedChanges::waiting_at_most(waits_max);
        Self { gate, delayed, ..Self::new(shared) }
    }

    /// Runs until every sender of the queue was dropped and nothing waits any more.
    pub(super) fn run(mut self, mut queue: CommitQueue) {
        let _stop = StopOnPanic(Arc::clone(&self.shared));
        // While changes are delayed, their time must not depend on others that come.
        while !self.delayed.is_empty() || queue.wait() {
            self.take_group(&mut queue);
        }
        self.store_versions();
    }

    fn take_group(&mut self, queue: &mut CommitQueue) {
        if let Err(error) = self.shared.check_running() {
            let queued = std::iter::from_fn(|| queue.next().map(|(_, change)| change));
            for change in queued.chain(self.delayed.drain()) {
                answer(change.answer, Err(error.clone()));
            }
            return;
        }
        let mut group = self.gather(queue);
        if group.is_idle() {
            if !self.delayed.is_empty() {
                pause();
            }
            return;
        }
        self.group += 1;
        self.written = group.len();
        self.recent.record(self.group, group.writes(), &self.shared.hot_keys);
        let outcome = self.write(&mut group);
        let outcome = match (&outcome, self.shared.reach(CommitPoint::AfterSync)) {
            (GroupOutcome::Durable, Err(reason)) => GroupOutcome::Unknown(reason),
            _ => outcome,
        };
        if matches!(outcome, GroupOutcome::Durable) {
            self.shared.show_group(self.group);
        }
        if let GroupOutcome::Rejected(reason) | GroupOutcome::Unknown(reason) = &outcome {
            self.shared.stop(Arc::clone(reason));
        }
        if self.shared.reach(CommitPoint::BeforeAnswer).is_ok() {
            group.finish(&outcome);
        }
    }

    /// Decides what waited and what is queued, in turns by owner, as far as it fits in a group.
    fn gather(&mut self, queue: &mut CommitQueue) -> Group {
        let pressed = (self.gate)(&self.shared);
        let mut group = Group::new(self.written, pressed);
        for late in self.delayed.expired() {
            self.shared.counters.shed();
            answer(late.answer, Err(expiry(&self.shared)));
        }
        let mut ready = Vec::new();
        self.delayed.ready(pressed, |delayed| {
            ready.push(delayed);
            ready.len() < group::CHANGES_MAX
        });
        for DelayedChange { change, since, .. } in ready {
            self.admit(change, since, &mut group);
        }
        while !group.is_full() {
            let Some((owner, change)) = queue.next() else { break };
            let before = group.bytes();
            self.admit(change, Instant::now(), &mut group);
            queue.charge(owner, group.bytes().saturating_sub(before));
        }
        if let Some(waited) = self.delayed.stall_ended() {
            self.shared.counters.stalled(waited);
        }
        group
    }

    fn admit(&mut self, change: PendingChange, since: Instant, group: &mut Group) {
        let versions = &mut self.versions.versions;
        let admission = group.admit(change, &self.shared, &mut self.recent, versions);
        if let Admission::Delayed(change, writes) = admission
            && let Some(rejected) = self.delayed.push(DelayedChange { change, writes, since })
        {
            self.shared.counters.shed();
            answer(rejected.answer, Err(busy()));
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
        let mode = self.shared.persist_mode();
        let mut batch = self.shared.database.batch().durability(Some(mode));
        let mut bytes = 0_usize;
        for (key, value) in group.drain_writes() {
            let Some(tree) = self.shared.tree(&key) else {
                continue;
            };
            bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
            match value {
                Some(value) => {
                    let (key, value) = exact(&key, &value);
                    batch.insert(&tree.handle, key, value);
                }
                None => {
                    tree.deletes.fetch_add(1, Relaxed);
                    batch.remove(&tree.handle, Bytes::copy_from_slice(&key));
                }
            }
        }
        self.add_heartbeat(&mut batch);
        self.versions.raise(&mut batch, &self.shared.trees, &self.shared.clock);
        let newest = self.versions.versions.newest();
        if self.shared.marks_groups {
            marks::mark(newest, &mut batch, &self.shared.trees);
        }
        let mut in_order = self.shared.written.lock();
        let clock = GroupClock::start();
        // Ahead of the write: a scan must not meet what was not counted.
        let counted = self.shared.tombstones.add(obsoletes);
        let written = catch_unwind(AssertUnwindSafe(|| batch.commit()));
        drop(counted);
        let outcome = self.outcome(written);
        match &outcome {
            GroupOutcome::Durable => in_order.note(newest),
            // Before a checkpoint or a link of the journals, where the group may be in part.
            GroupOutcome::Rejected(reason) | GroupOutcome::Unknown(reason) => {
                self.shared.stop(Arc::clone(reason));
            }
        }
        drop(in_order);
        let to_u64 = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let Elapsed { took, waited } = clock.stop();
        let write = GroupWrite { changes: to_u64(writers), took };
        self.shared.counters.group(write, to_u64(bytes));
        (self.shared.on_group)(write);
        if matches!(mode, PersistMode::SyncData) {
            (self.shared.on_sync)(waited);
        }
        outcome
    }

    fn outcome(&self, written: std::thread::Result<Result<(), fjall::Error>>) -> GroupOutcome {
        match written {
            Ok(Ok(())) => GroupOutcome::Durable,
            // Checked before the journal is touched: a flush or a compaction failed earlier.
            Ok(Err(fjall::Error::Poisoned)) => {
                GroupOutcome::Rejected(failure::of_background(&self.shared.path))
            }
            Ok(Err(error)) => {
                GroupOutcome::Unknown(failure::of_call(WRITE, &error, &self.shared.path))
            }
            Err(_) => GroupOutcome::Unknown("the write of a group panicked".into()),
        }
    }

    /// Stores the newest version and the time, so that after a clean close the next ones need not be far from them.
    fn store_versions(&mut self) {
        let mut batch = self.shared.database.batch().durability(Some(self.shared.persist_mode()));
        let (trees, clock) = (&self.shared.trees, &self.shared.clock);
        if self.shared.stopped().is_some() || !self.versions.store(&mut batch, trees, clock) {
            return;
        }
        let _in_order = self.shared.written.lock();
        if let Err(error) = batch.commit() {
            // The floor that is stored is greater, which is as safe.
            self.shared.stop(failure::of_call(WRITE, &error, &self.shared.path));
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

/// Why a change that waited too long is rejected.
fn expiry(shared: &EngineState) -> CommitError {
    match shared.space.is_draining() {
        true => shared.space.full(shared.buffered_bytes.load(Relaxed)),
        false => busy(),
    }
}

fn busy() -> CommitError {
    CommitError::Busy { reason: "flushes and compaction lag behind the writes".into() }
}

#[expect(clippy::disallowed_methods, reason = "the commit thread is not an async worker")]
fn pause() {
    std::thread::sleep(RETRY_EVERY);
}

/// Key and value in memory of their own, and of their size. What a service made them of is often bigger, such as the
/// buffer of a whole request, and a memtable keeps them until it is flushed.
pub(super) fn exact(key: &[u8], value: &[u8]) -> (Bytes, Bytes) {
    let mut both = Vec::with_capacity(key.len().saturating_add(value.len()));
    both.extend_from_slice(key);
    both.extend_from_slice(value);
    let mut key_of = Bytes::from(both);
    let value = key_of.split_off(key.len());
    (key_of, value)
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
