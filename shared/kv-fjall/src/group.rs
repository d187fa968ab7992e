//! One group: changes that are decided one after the other and written and synced together.
//!
//! Each change sees the writes of those before it in the group, which are not written yet, and so
//! its decision holds only if theirs become durable. The pending writes are kept as one value per
//! key: a batch of the database gives all its items one sequence number, so two writes of a key
//! in it would have no order, and merging them also makes a hot key cheap.

use std::sync::Arc;

use bytes::Bytes;
use foldhash::{HashMap, HashMapExt as _};
use tokio::sync::oneshot;

use super::backpressure::KeyspaceSet;
use super::guard::Room;
use super::obsoletes::obsoletes;
use super::read_cache::{CachedReads, RecentWrites};
use super::shared::EngineState;
use trestle_kv::decide::{ChangeRules, DecidedChange, decide};
use trestle_kv::version::Versions;
use trestle_kv::{Change, CommitError, Version, Write, Writes};
use trestle_model::time::Ticks;

/// Most changes of a group.
pub(super) const CHANGES_MAX: usize = 1_024;

/// A group is closed by the change that takes its pending writes to this many bytes.
const BYTES_MAX: usize = 1024 * 1024;

/// Receives the outcome of a change.
pub(super) type ChangeAnswer = oneshot::Sender<Result<Version, CommitError>>;

/// A change that waits for the committer.
pub(super) struct PendingChange {
    pub(super) change: Change,
    pub(super) cached: CachedReads,
    /// The time when it was handed over, read there: the one commit thread has enough to do.
    pub(super) now: Ticks,
    pub(super) answer: ChangeAnswer,
}

/// A change that waits for the group to be durable.
struct Waiting {
    answer: ChangeAnswer,
    version: Version,
    wrote: bool,
}

#[derive(Default)]
pub(super) struct Group {
    pending: HashMap<Bytes, Option<Bytes>>,
    waiting: Vec<Waiting>,
    bytes: usize,
    /// Entries of the database that the writes make obsolete, or add without ever being read.
    obsoletes: u64,
    /// Keyspaces that take no writes now.
    pressed: KeyspaceSet,
}

/// What became of a change that was to join a group.
pub(super) enum Admission {
    /// It joined, or was answered.
    Decided,
    /// It writes keyspaces some of which take no writes now, and is to be tried again later.
    Delayed(PendingChange, KeyspaceSet),
}

/// How the write of a group ended.
pub(super) enum GroupOutcome {
    Durable,
    /// Rejected before anything was written, for good.
    Rejected(Arc<str>),
    /// Failed on the way.
    Unknown(Arc<str>),
}

impl Group {
    /// An empty group with room for about so many writes, none of them to `pressed`.
    pub(super) fn new(writes: usize, pressed: KeyspaceSet) -> Self {
        Self { pending: HashMap::with_capacity(writes), pressed, ..Self::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= CHANGES_MAX || self.bytes >= BYTES_MAX
    }

    /// Whether there is something to write.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether no caller waits for it.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Changes in the group that write something.
    pub(super) fn writers(&self) -> usize {
        self.waiting.iter().filter(|waiting| waiting.wrote).count()
    }

    /// What was written, before merging.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many entries the writes make obsolete.
    pub(super) fn obsoletes(&self) -> u64 {
        self.obsoletes
    }

    /// How many keys are written.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// What is written: keys, and values unless they are removed.
    pub(super) fn writes(&self) -> impl Iterator<Item = (&Bytes, &Option<Bytes>)> {
        self.pending.iter()
    }

    /// The writes, and how many bytes they were before merging.
    pub(super) fn drain_writes(&mut self) -> impl Iterator<Item = (Bytes, Option<Bytes>)> + '_ {
        self.pending.drain()
    }

    /// Decides a change. It joins the group, or is answered at once if it has nothing to wait for.
    pub(super) fn admit(
        &mut self,
        mut pending: PendingChange,
        shared: &EngineState,
        recent: &mut RecentWrites,
        versions: &mut Versions,
    ) -> Admission {
        let outcome = self.evaluate(&mut pending, shared, recent, versions);
        match outcome {
            Ok(Evaluated::Decided { wrote: false, read_pending: false, version }) => {
                answer(pending.answer, Ok(version));
            }
            Ok(Evaluated::Decided { wrote, version, .. }) => {
                self.waiting.push(Waiting { answer: pending.answer, version, wrote });
            }
            Ok(Evaluated::Pressed(writes)) => return Admission::Delayed(pending, writes),
            Err(error) => answer(pending.answer, Err(error)),
        }
        Admission::Decided
    }

    fn evaluate(
        &mut self,
        pending: &mut PendingChange,
        shared: &EngineState,
        recent: &mut RecentWrites,
        versions: &mut Versions,
    ) -> Result<Evaluated, CommitError> {
        let PendingChange { change, cached, now, .. } = pending;
        let mut read_pending = false;
        let keys = change.spec.reads.keys();
        let mut current = Vec::with_capacity(keys.len());
        for (index, key) in keys.iter().enumerate() {
            current.push(match self.pending.get(key) {
                Some(value) => {
                    read_pending = true;
                    value.clone()
                }
                None => recent.newest(cached, (index, key), shared)?,
            });
        }
        let rules = ChangeRules { keyspaces: &shared.keyspaces, limits: &shared.limits };
        let decided = decide(change, &current, &rules, versions, *now)?;
        let DecidedChange { version, writes } = decided;
        let wrote = !writes.is_empty();
        if wrote {
            let keyspaces = keyspaces_of(writes.as_slice(), shared);
            if keyspaces.intersects(self.pressed) {
                return Ok(Evaluated::Pressed(keyspaces));
            }
            let in_group = u64::try_from(self.bytes).unwrap_or(u64::MAX);
            let gives_back = change.spec.gives_back_space;
            if shared.admit(writes.as_slice(), gives_back, in_group)? == Room::WaitsForFlush {
                return Ok(Evaluated::Pressed(keyspaces));
            }
            self.obsoletes += obsoletes(writes.as_slice(), change.spec.reads.keys(), &current);
            self.merge(writes);
        }
        Ok(Evaluated::Decided { version, wrote, read_pending })
    }

    fn merge(&mut self, writes: Writes) {
        for write in writes {
            let (key, value) = match write {
                Write::Put { key, value } => (key, Some(value)),
                Write::Delete { key } => (key, None),
            };
            let value_bytes = value.as_ref().map_or(0, Bytes::len);
            self.bytes = self.bytes.saturating_add(key.len()).saturating_add(value_bytes);
            self.pending.insert(key, value);
        }
    }

    /// Answers everyone who waits.
    pub(super) fn finish(self, outcome: &GroupOutcome) {
        for Waiting { answer: waiter, version, wrote } in self.waiting {
            let result = match outcome {
                GroupOutcome::Durable => Ok(version),
                GroupOutcome::Unknown(reason) if wrote => {
                    Err(CommitError::Unknown { reason: Arc::clone(reason) })
                }
                GroupOutcome::Unknown(reason) | GroupOutcome::Rejected(reason) => {
                    Err(CommitError::Stopped { reason: Arc::clone(reason) })
                }
            };
            answer(waiter, result);
        }
    }
}

enum Evaluated {
    Decided { version: Version, wrote: bool, read_pending: bool },
    Pressed(KeyspaceSet),
}

fn keyspaces_of(writes: &[Write], shared: &EngineState) -> KeyspaceSet {
    let indices = writes.iter().filter_map(|write| shared.keyspaces.index_of(write.key()));
    indices.fold(KeyspaceSet::default(), KeyspaceSet::with)
}

/// The caller may have dropped its future; its change is committed.
pub(super) fn answer(waiter: ChangeAnswer, result: Result<Version, CommitError>) {
    let _ = waiter.send(result);
}

#[cfg(test)]
mod tests;
