//! The domains that are in use, and the changes that wait for them, in their order. What may go on once a domain is
//! free is found without a look at everything that waits.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use trestle_kv::Lock;

/// See the module. A change has a place: in each of its domains it goes on after those of lower places.
#[derive(Debug, Default)]
pub(crate) struct DomainQueues {
    /// By number.
    domains: HashMap<i64, DomainQueue>,
    /// The places of changes that may not have to wait any more.
    due: BTreeSet<i64>,
}

#[derive(Debug, Default)]
struct DomainQueue {
    /// How many groups hold it.
    held_shared: usize,
    held_exclusive: usize,
    /// The changes that wait with it among their domains.
    shared: BTreeSet<i64>,
    exclusive: BTreeSet<i64>,
    /// Those of them that are looked at again once this domain changes; the others wait for another one of theirs.
    blocked: BTreeMap<i64, Lock>,
}

impl DomainQueues {
    /// The first domain that a change has to wait for.
    pub(crate) fn blocker(&self, place: i64, domains: &[(i64, Lock)]) -> Option<(i64, Lock)> {
        let admits = |number, lock| {
            self.domains.get(number).is_none_or(|queue: &DomainQueue| queue.admits(place, lock))
        };
        domains.iter().find(|(number, lock)| !admits(number, *lock)).copied()
    }

    /// A change waits, for one of its domains if there is a `blocker`.
    pub(crate) fn enter(
        &mut self,
        place: i64,
        domains: &[(i64, Lock)],
        blocker: Option<(i64, Lock)>,
    ) {
        for (number, lock) in domains {
            let queue = self.domains.entry(*number).or_default();
            queue.waiting(*lock).insert(place);
        }
        match blocker {
            Some((number, lock)) => {
                self.domains.entry(number).or_default().blocked.insert(place, lock);
            }
            None => {
                self.due.insert(place);
            }
        }
    }

    /// A change waits no more.
    pub(crate) fn leave(&mut self, place: i64, domains: &[(i64, Lock)]) {
        for (number, lock) in domains {
            if let Some(queue) = self.domains.get_mut(number)
                && queue.waiting(*lock).remove(&place)
            {
                self.wake(*number);
            }
        }
    }

    /// The place of the first change that is to be looked at again.
    pub(crate) fn pop_due(&mut self) -> Option<i64> {
        self.due.pop_first()
    }

    /// A group holds these domains.
    pub(crate) fn hold(&mut self, domains: &[(i64, Lock)]) {
        for (number, lock) in domains {
            *self.domains.entry(*number).or_default().held(*lock) += 1;
        }
    }

    /// A group holds them no more.
    pub(crate) fn release(&mut self, domains: &[(i64, Lock)]) {
        for (number, lock) in domains {
            if let Some(queue) = self.domains.get_mut(number) {
                let held = queue.held(*lock);
                *held = held.saturating_sub(1);
                self.wake(*number);
            }
        }
    }

    /// Looks again at those who wait for a domain: the first one, and with one that shares it the next ones that do.
    /// What is after them waits until they have left.
    fn wake(&mut self, number: i64) {
        let Some(queue) = self.domains.get_mut(&number) else { return };
        let mut before = None;
        while let Some(first) = queue.blocked.first_entry()
            && (before.is_none() || (before, *first.get()) == (Some(Lock::Shared), Lock::Shared))
        {
            let (place, lock) = first.remove_entry();
            self.due.insert(place);
            before = Some(lock);
        }
        if queue.is_unused() {
            self.domains.remove(&number);
        }
    }
}

impl DomainQueue {
    fn admits(&self, place: i64, lock: Lock) -> bool {
        let is_next = |waiting: &BTreeSet<i64>| waiting.first().is_none_or(|first| *first >= place);
        let has_no_exclusive = self.held_exclusive == 0 && is_next(&self.exclusive);
        match lock {
            Lock::Shared => has_no_exclusive,
            Lock::Exclusive => has_no_exclusive && self.held_shared == 0 && is_next(&self.shared),
        }
    }

    fn waiting(&mut self, lock: Lock) -> &mut BTreeSet<i64> {
        match lock {
            Lock::Shared => &mut self.shared,
            Lock::Exclusive => &mut self.exclusive,
        }
    }

    fn held(&mut self, lock: Lock) -> &mut usize {
        match lock {
            Lock::Shared => &mut self.held_shared,
            Lock::Exclusive => &mut self.held_exclusive,
        }
    }

    fn is_unused(&self) -> bool {
        self.held_shared + self.held_exclusive == 0
            && self.shared.is_empty()
            && self.exclusive.is_empty()
    }
}

#[cfg(test)]
mod tests;
