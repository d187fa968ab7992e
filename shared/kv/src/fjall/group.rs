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

use super::read_cache::{CachedReads, RecentWrites};
use super::shared::EngineState;
use crate::decide::{ChangeRules, DecidedChange, decide};
use crate::time::Ticks;
use crate::version::Versions;
use crate::{Change, CommitError, Version, Write, Writes};

/// Most changes of a group.
const CHANGES_MAX: usize = 1_024;

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
}

/// How the write of a group ended.
pub(super) enum GroupOutcome {
    Durable,
    /// Refused before anything was written, for good.
    Refused(Arc<str>),
    /// Failed on the way.
    Unknown(Arc<str>),
}

impl Group {
    /// An empty group with room for about so many writes.
    pub(super) fn with_capacity(writes: usize) -> Self {
        Self { pending: HashMap::with_capacity(writes), ..Self::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= CHANGES_MAX || self.bytes >= BYTES_MAX
    }

    /// Whether there is something to write.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Changes in the group that write something.
    pub(super) fn writers(&self) -> usize {
        self.waiting.iter().filter(|waiting| waiting.wrote).count()
    }

    /// How many entries the writes make obsolete.
    pub(super) fn obsoletes(&self) -> u64 {
        self.obsoletes
    }

    /// How many keys are written.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// The keys that are written.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.pending.keys()
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
        recent: &RecentWrites,
        versions: &mut Versions,
    ) {
        let outcome = self.evaluate(&mut pending, shared, recent, versions);
        match outcome {
            Ok(Evaluated { wrote: false, read_pending: false, version }) => {
                answer(pending.answer, Ok(version));
            }
            Ok(Evaluated { wrote, version, .. }) => {
                self.waiting.push(Waiting { answer: pending.answer, version, wrote });
            }
            Err(error) => answer(pending.answer, Err(error)),
        }
    }

    fn evaluate(
        &mut self,
        pending: &mut PendingChange,
        shared: &EngineState,
        recent: &RecentWrites,
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
                None => match recent.still_newest(cached, index, key) {
                    Some(value) => value.clone(),
                    None => shared.newest(key)?,
                },
            });
        }
        let rules = ChangeRules { keyspaces: &shared.keyspaces, limits: &shared.limits };
        let decided = decide(change, &current, &rules, versions, *now)?;
        let DecidedChange { version, writes } = decided;
        let wrote = !writes.is_empty();
        if wrote {
            shared.space.admit(writes.as_slice())?;
            self.obsoletes += obsoletes(writes.as_slice(), change.spec.reads.keys(), &current);
            self.merge(writes);
        }
        Ok(Evaluated { version, wrote, read_pending })
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
                GroupOutcome::Unknown(reason) | GroupOutcome::Refused(reason) => {
                    Err(CommitError::Stopped { reason: Arc::clone(reason) })
                }
            };
            answer(waiter, result);
        }
    }
}

/// How many entries the writes make obsolete, or add without their ever being read. A delete leaves a tombstone beside
/// what it deletes. A put obsoletes what was stored; it does not, if the change read that nothing was.
fn obsoletes(writes: &[Write], keys: &[Bytes], current: &[Option<Bytes>]) -> u64 {
    // Writes are mostly in the order of the reads, so each is looked for behind the one before it.
    let mut place = 0;
    let mut is_new = |key: &Bytes| {
        let (before, behind) = keys.split_at(place.min(keys.len()));
        let found = behind.iter().position(|read| read == key).map(|index| place + index);
        let found = found.or_else(|| before.iter().position(|read| read == key));
        found.is_some_and(|index| {
            place = index + 1;
            current.get(index).is_some_and(Option::is_none)
        })
    };
    let count = |write: &Write| match write {
        Write::Delete { .. } => 2,
        Write::Put { key, .. } => u64::from(!is_new(key)),
    };
    writes.iter().map(count).sum()
}

struct Evaluated {
    version: Version,
    wrote: bool,
    read_pending: bool,
}

/// The caller may have dropped its future; its change stands.
pub(super) fn answer(waiter: ChangeAnswer, result: Result<Version, CommitError>) {
    let _ = waiter.send(result);
}

#[cfg(test)]
mod tests;
