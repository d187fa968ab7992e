//! Which changes are committed together, by whom: changes wait in turns by owner, a domain is in one group at a time,
//! and changes of one domain keep their order.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use foldhash::HashMap;
use tokio::sync::{Notify, oneshot};
use trestle_kv::{
    Change, CommitError, DomainRef, Lock, Version,
    turns::{Owner, TurnQueue},
};
use xxhash_rust::xxh3::Xxh3Default;

/// Changes that may wait; more are rejected.
const WAITING_MAX: usize = 4_096;
/// Most changes of a group.
pub(crate) const GROUP_MAX: usize = 64;
/// Most changes that wait for a domain while later ones are looked at.
const PARKED_MAX: usize = 1_024;
/// What an owner gets in a turn, in changes.
const TURN_CHANGES: u32 = 16;

/// A change on its way, with its domains by number.
pub(crate) struct WaitingChange {
    pub(crate) change: Change,
    /// Sorted, each once.
    pub(crate) domains: Vec<(i64, Lock)>,
    pub(crate) answer: oneshot::Sender<Result<Version, CommitError>>,
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
        (Self { change, domains, answer }, answered)
    }

    /// Answers it. One whose caller is gone is not.
    pub(crate) fn answer(self, outcome: Result<Version, CommitError>) {
        let _ = self.answer.send(outcome);
    }
}

/// Sorts domains and keeps each once, with the stronger lock.
pub(crate) fn strongest(domains: &mut Vec<(i64, Lock)>) {
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

struct WaitingChanges {
    turns: TurnQueue<WaitingChange>,
    /// Those that were looked at and wait for a domain, in their order.
    parked: VecDeque<WaitingChange>,
    held: HeldDomains,
    count: usize,
    is_closed: bool,
}

impl Default for WaitingChanges {
    fn default() -> Self {
        let (turns, parked) = (TurnQueue::new(TURN_CHANGES), VecDeque::new());
        Self { turns, parked, held: HeldDomains::default(), count: 0, is_closed: false }
    }
}

/// Domains that are in use, by number.
#[derive(Default)]
struct HeldDomains(HashMap<i64, DomainUse>);

#[derive(Default)]
struct DomainUse {
    shared: usize,
    exclusive: usize,
}

impl ChangeScheduler {
    /// Adds a change of the owner of this task.
    pub(crate) fn push(&self, change: WaitingChange) -> Result<(), CommitError> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Err(CommitError::Stopped { reason: "the engine is closed".into() });
        }
        if waiting.count >= WAITING_MAX {
            return Err(CommitError::Busy { reason: "too many changes wait to be written".into() });
        }
        waiting.count += 1;
        waiting.turns.push(Owner::current(), change);
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// The next group, whose domains are held until [`ChangeScheduler::release`]; none once the engine is closed and
    /// nothing waits.
    pub(crate) async fn next(&self) -> Option<Vec<WaitingChange>> {
        loop {
            let changed = self.changed.notified();
            {
                let mut waiting = self.lock();
                let group = waiting.take();
                if !group.is_empty() {
                    let is_more = waiting.count > 0;
                    drop(waiting);
                    if is_more {
                        self.changed.notify_one();
                    }
                    return Some(group);
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

    /// Puts changes of a group back: the first to be taken again. Their domains are held until they are released.
    pub(crate) fn put_back(&self, changes: Vec<WaitingChange>) {
        let mut waiting = self.lock();
        waiting.count += changes.len();
        for change in changes.into_iter().rev() {
            waiting.parked.push_front(change);
        }
    }

    /// Returns the domains of a group.
    pub(crate) fn release(&self, domains: &[(i64, Lock)]) {
        let mut waiting = self.lock();
        for (number, lock) in domains {
            waiting.held.remove(*number, *lock);
        }
        drop(waiting);
        self.changed.notify_one();
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

impl WaitingChanges {
    fn take(&mut self) -> Vec<WaitingChange> {
        let mut group = Vec::new();
        // What is parked before a change is ahead of it in its domains.
        let mut ahead = HeldDomains::default();
        let parked = std::mem::take(&mut self.parked);
        for change in parked {
            self.sort(change, &mut group, &mut ahead);
        }
        while group.len() < GROUP_MAX
            && self.parked.len() < PARKED_MAX
            && let Some((owner, change)) = self.turns.pop(|_| true)
        {
            self.turns.charge(owner, 1);
            self.sort(change, &mut group, &mut ahead);
        }
        for (number, lock) in group.iter().flat_map(|change| &change.domains) {
            self.held.add(*number, *lock);
        }
        self.count -= group.len();
        group
    }

    /// Adds a change to the group, or parks it.
    fn sort(
        &mut self,
        change: WaitingChange,
        group: &mut Vec<WaitingChange>,
        ahead: &mut HeldDomains,
    ) {
        let is_free = |(number, lock): &(i64, Lock)| {
            self.held.admits(*number, *lock) && ahead.admits(*number, *lock)
        };
        if group.len() < GROUP_MAX && change.domains.iter().all(is_free) {
            group.push(change);
            return;
        }
        for (number, lock) in &change.domains {
            ahead.add(*number, *lock);
        }
        self.parked.push_back(change);
    }
}

impl HeldDomains {
    fn admits(&self, number: i64, lock: Lock) -> bool {
        self.0.get(&number).is_none_or(|held| match lock {
            Lock::Shared => held.exclusive == 0,
            Lock::Exclusive => held.exclusive == 0 && held.shared == 0,
        })
    }

    fn add(&mut self, number: i64, lock: Lock) {
        let held = self.0.entry(number).or_default();
        match lock {
            Lock::Shared => held.shared += 1,
            Lock::Exclusive => held.exclusive += 1,
        }
    }

    fn remove(&mut self, number: i64, lock: Lock) {
        let Some(held) = self.0.get_mut(&number) else { return };
        let count = match lock {
            Lock::Shared => &mut held.shared,
            Lock::Exclusive => &mut held.exclusive,
        };
        *count = count.saturating_sub(1);
        if held.shared == 0 && held.exclusive == 0 {
            self.0.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests;
