//! Which changes are committed together, by whom: changes wait in turns by owner, a domain is in one group at a time,
//! and changes of one domain keep their order.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::HashMap;
use tokio::sync::{Notify, oneshot};
use trestle_kv::{
    Change, ChangeSpec, CommitError, DomainRef, Lock, Version,
    turns::{Owner, TurnQueue},
};
use xxhash_rust::xxh3::Xxh3Default;

use crate::domain_queues::DomainQueues;

/// Changes that may wait, and what is known of their bytes; more are rejected.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How large a group may be. A change that is larger by itself is a group of its own.
const GROUP_MAX: GroupSize =
    GroupSize { changes: 64, domains: 512, reads: 1_024, bytes: 1024 * 1024 };
/// What an owner gets in a turn, in changes.
const TURN_CHANGES: u32 = 16;

/// A change on its way, with its domains by number. One that is dropped is answered all the same.
pub(crate) struct WaitingChange {
    pub(crate) change: Change,
    /// Sorted, each once.
    pub(crate) domains: Vec<(i64, Lock)>,
    /// Whether something of it was sent to be committed, so that it may be stored.
    pub(crate) is_sent: bool,
    size: GroupSize,
    /// None only once it is answered.
    answer: Option<oneshot::Sender<Result<Version, CommitError>>>,
}

impl WaitingChange {
    /// A change that was checked, and where its answer arrives.
    pub(crate) fn new(change: Change) -> (Self, oneshot::Receiver<Result<Version, CommitError>>) {
        let (answer, answered) = oneshot::channel();
        let spec = &change.spec;
        let also = spec.also.iter().map(|(domain, lock)| (number(domain.borrowed()), *lock));
        let own = (number(spec.domain.borrowed()), Lock::Exclusive);
        let mut domains: Vec<_> = std::iter::once(own).chain(also).collect();
        strongest(&mut domains);
        let size = GroupSize::of(&change, domains.len());
        (Self { change, domains, is_sent: false, size, answer: Some(answer) }, answered)
    }

    /// Answers it. One whose caller is gone is not.
    pub(crate) fn answer(mut self, outcome: Result<Version, CommitError>) {
        self.send(outcome);
    }

    fn send(&mut self, outcome: Result<Version, CommitError>) {
        if let Some(answer) = self.answer.take() {
            let _ = answer.send(outcome);
        }
    }
}

impl Drop for WaitingChange {
    fn drop(&mut self) {
        let reason = "the change was not answered".into();
        self.send(Err(match self.is_sent {
            true => CommitError::Unknown { reason },
            false => CommitError::Unavailable { reason },
        }));
    }
}

/// What is known of changes before they are decided: neither the values that they read, nor what they will write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct GroupSize {
    changes: usize,
    /// Each is a lock of the database, of which it has a limited number.
    domains: usize,
    /// Rows to read, each with a value of any length.
    reads: usize,
    /// Keys of these rows, and names of domains.
    bytes: usize,
}

impl GroupSize {
    /// The smallest change.
    const LEAST: Self = Self { changes: 1, domains: 1, reads: 0, bytes: 0 };

    fn of(change: &Change, domains: usize) -> Self {
        let ChangeSpec { domain, also, reads, .. } = &change.spec;
        let named = std::iter::once(domain).chain(also.iter().map(|(domain, _)| domain));
        let named: usize = named.map(|domain| domain.borrowed().part.len()).sum();
        let keys: usize = reads.keys().iter().map(Bytes::len).sum();
        Self { changes: 1, domains, reads: reads.keys().len(), bytes: named + keys }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            changes: self.changes + other.changes,
            domains: self.domains + other.domains,
            reads: self.reads + other.reads,
            bytes: self.bytes + other.bytes,
        }
    }

    fn is_within(self, max: Self) -> bool {
        self.changes <= max.changes
            && self.domains <= max.domains
            && self.reads <= max.reads
            && self.bytes <= max.bytes
    }
}

/// The domains of changes: sorted, each once, with the stronger lock.
pub(crate) fn domains_of(changes: &[WaitingChange]) -> Vec<(i64, Lock)> {
    let mut domains = changes.iter().flat_map(|change| change.domains.iter().copied()).collect();
    strongest(&mut domains);
    domains
}

/// Sorts domains and keeps each once, with the stronger lock.
fn strongest(domains: &mut Vec<(i64, Lock)>) {
    domains.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    domains.dedup_by(|later, kept| later.0 == kept.0);
}

/// The number by which the database locks a domain. Two domains may have one, and then wait for each other.
fn number(domain: DomainRef<'_>) -> i64 {
    let mut hash = Xxh3Default::new();
    hash.update(&[domain.group]);
    hash.update(domain.part);
    hash.digest().cast_signed()
}

/// The changes that wait. Shared by the workers of an engine.
#[derive(Default)]
pub(crate) struct ChangeScheduler {
    state: Mutex<WaitingChanges>,
    changed: Notify,
}

/// Changes that are committed together. Their domains are held until this is dropped.
pub(crate) struct TakenGroup<'a> {
    pub(crate) changes: Vec<WaitingChange>,
    domains: Vec<(i64, Lock)>,
    scheduler: &'a ChangeScheduler,
}

struct WaitingChanges {
    turns: TurnQueue<WaitingChange>,
    /// Those that were looked at, by their places in the queues of their domains.
    parked: HashMap<i64, WaitingChange>,
    queues: DomainQueues,
    /// The place of what was put back last, in front of everything, and that of the next change.
    first: i64,
    next: i64,
    /// Of all that wait.
    count: usize,
    bytes: usize,
    is_closed: bool,
}

impl Default for WaitingChanges {
    fn default() -> Self {
        Self {
            turns: TurnQueue::new(TURN_CHANGES),
            parked: HashMap::default(),
            queues: DomainQueues::default(),
            first: 0,
            next: 0,
            count: 0,
            bytes: 0,
            is_closed: false,
        }
    }
}

/// A group that is put together.
#[derive(Default)]
struct NextGroup {
    changes: Vec<WaitingChange>,
    size: GroupSize,
    /// Whether a change that could be in it is too large for what is left.
    is_full: bool,
}

impl NextGroup {
    /// Whether a change is small enough for what is left.
    fn admits(&mut self, change: &WaitingChange) -> bool {
        let size = self.size.plus(change.size);
        self.is_full = !size.plus(GroupSize::LEAST).is_within(GROUP_MAX);
        self.changes.is_empty() || size.is_within(GROUP_MAX)
    }
}

impl ChangeScheduler {
    /// Adds a change of the owner of this task.
    pub(crate) fn push(&self, change: WaitingChange) -> Result<(), CommitError> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Err(CommitError::Stopped { reason: "the engine is closed".into() });
        }
        let bytes = waiting.bytes.saturating_add(change.size.bytes);
        if waiting.count >= WAITING_MAX || waiting.count > 0 && bytes > WAITING_BYTES_MAX {
            return Err(CommitError::Busy { reason: "too many changes wait to be written".into() });
        }
        waiting.count += 1;
        waiting.bytes = bytes;
        waiting.turns.push(Owner::current(), change);
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// The next group; none once the engine is closed and nothing waits.
    pub(crate) async fn next(&self) -> Option<TakenGroup<'_>> {
        loop {
            let changed = self.changed.notified();
            {
                let mut waiting = self.lock();
                let changes = waiting.take();
                if !changes.is_empty() {
                    let domains = waiting.hold(&changes);
                    let is_more = waiting.count > 0;
                    drop(waiting);
                    if is_more {
                        self.changed.notify_one();
                    }
                    return Some(TakenGroup { changes, domains, scheduler: self });
                }
                if waiting.is_closed && waiting.count == 0 {
                    // The next worker ends too.
                    self.changed.notify_one();
                    return None;
                }
            }
            changed.await;
        }
    }

    /// How many changes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().count
    }

    /// Takes no more changes.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, WaitingChanges> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TakenGroup<'_> {
    /// Puts changes of the group back: the first to be taken again.
    pub(crate) fn put_back(self, changes: Vec<WaitingChange>) {
        let mut waiting = self.scheduler.lock();
        waiting.count += changes.len();
        for change in changes.into_iter().rev() {
            waiting.bytes += change.size.bytes;
            waiting.first -= 1;
            let place = waiting.first;
            waiting.queues.enter(place, &change.domains, None);
            waiting.parked.insert(place, change);
        }
    }
}

impl Drop for TakenGroup<'_> {
    fn drop(&mut self) {
        let mut waiting = self.scheduler.lock();
        waiting.queues.release(&self.domains);
        drop(waiting);
        self.scheduler.changed.notify_one();
    }
}

impl WaitingChanges {
    fn take(&mut self) -> Vec<WaitingChange> {
        let mut group = NextGroup::default();
        while !group.is_full
            && let Some(place) = self.queues.pop_due()
        {
            if let Some(change) = self.parked.remove(&place) {
                self.sort(place, change, &mut group);
            }
        }
        while !group.is_full
            && let Some((owner, change)) = self.turns.pop(|_| true)
        {
            self.turns.charge(owner, 1);
            self.next += 1;
            self.sort(self.next, change, &mut group);
        }
        self.count -= group.size.changes;
        self.bytes -= group.size.bytes;
        group.changes
    }

    /// Adds a change to the group, or parks it.
    fn sort(&mut self, place: i64, change: WaitingChange, group: &mut NextGroup) {
        let blocker = self.queues.blocker(place, &change.domains);
        if blocker.is_none() && group.admits(&change) {
            self.queues.leave(place, &change.domains);
            group.size = group.size.plus(change.size);
            group.changes.push(change);
        } else {
            self.queues.enter(place, &change.domains, blocker);
            self.parked.insert(place, change);
        }
    }

    /// Holds the domains of a group.
    fn hold(&mut self, group: &[WaitingChange]) -> Vec<(i64, Lock)> {
        let domains = domains_of(group);
        self.queues.hold(&domains);
        domains
    }
}

#[cfg(test)]
mod tests;
