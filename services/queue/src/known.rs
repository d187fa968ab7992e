//! The records of queues in use, in memory: every operation on messages needs that of its queue.
//!
//! What is kept is what a look into the store would give. A record is forgotten before a change of it is committed, and
//! nothing is kept while a change is under way or by whoever looked before one ended: so nobody is given a record that
//! is older than the last answered change. That a queue is absent is never kept, so creating one needs
//! no word here. This process is the only one that changes them: the store is locked by it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use trestle_service::name::{AccountName, QueueName};

use crate::record::QueueRecord;

/// Most records in memory; with the most metadata that a queue can have, 8 MiB.
const RECORDS_MAX: usize = 1024;

/// See the module.
#[derive(Default)]
pub(crate) struct Known(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    records: HashMap<AccountName, HashMap<QueueName, Arc<QueueRecord>>>,
    count: usize,
    /// Changes that are under way.
    changing: usize,
    /// Changes that have ended.
    changed: u64,
}

/// The moment of a look into the store.
pub(crate) struct Look {
    changed: u64,
}

/// A change under way; over when dropped.
pub(crate) struct Changing(Arc<Known>);

impl Known {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of a queue, if it is known; otherwise what to say when it is kept, once the store has told.
    pub(crate) fn get(
        &self,
        account: &AccountName,
        name: &QueueName,
    ) -> Result<Arc<QueueRecord>, Look> {
        let inner = self.lock();
        let record = inner.records.get(account).and_then(|queues| queues.get(name));
        record.map(Arc::clone).ok_or(Look { changed: inner.changed })
    }

    /// Keeps what the store told after the look began, unless it may have changed since.
    pub(crate) fn keep(
        &self,
        look: &Look,
        account: &AccountName,
        name: &QueueName,
        record: &Arc<QueueRecord>,
    ) {
        let mut inner = self.lock();
        if inner.changing > 0 || inner.changed != look.changed {
            return;
        }
        if inner.count >= RECORDS_MAX {
            inner.records.clear();
            inner.count = 0;
        }
        let queues = inner.records.entry(account.clone()).or_default();
        if queues.insert(name.clone(), Arc::clone(record)).is_none() {
            inner.count += 1;
        }
    }

    /// Forgets a record that is about to change. To be held until the change is committed, also when nobody waits for
    /// it any more.
    pub(crate) fn changing(self: &Arc<Self>, account: &AccountName, name: &QueueName) -> Changing {
        let mut inner = self.lock();
        inner.changing += 1;
        let queues = inner.records.get_mut(account);
        if queues.is_some_and(|queues| queues.remove(name).is_some()) {
            inner.count -= 1;
        }
        Changing(Arc::clone(self))
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.changing -= 1;
        inner.changed += 1;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trestle_service::{clock::Ticks, fault::Violations};

    use super::*;
    use crate::{keys::QueueId, record::QueueSettings};

    fn name(text: &str) -> QueueName {
        let mut violations = Violations::default();
        QueueName::parse(text.to_owned(), "queue", &mut violations).expect("a name")
    }

    fn record(id: u64) -> Arc<QueueRecord> {
        let created_at = Ticks::new(1).expect("in range");
        let (settings, policies) = (QueueSettings::default(), Bytes::new());
        Arc::new(QueueRecord { id: QueueId(id), created_at, settings, policies })
    }

    /// Whether what the store told is kept, when something happens between the look and the keeping.
    fn is_kept(known: &Arc<Known>, queue: &str, between: impl FnOnce()) -> bool {
        let (account, name) = (AccountName::development(), name(queue));
        let look = known.get(&account, &name).expect_err("not known yet");
        between();
        known.keep(&look, &account, &name, &record(1));
        known.get(&account, &name).is_ok()
    }

    #[test]
    fn a_record_is_kept_until_it_changes() {
        let known = Arc::new(Known::default());
        let account = AccountName::development();

        assert!(is_kept(&known, "first", || {}));
        assert!(is_kept(&known, "second", || {}));
        drop(known.changing(&account, &name("first")));

        assert!(known.get(&account, &name("first")).is_err());
        let second = known.get(&account, &name("second"));
        assert_eq!(second.ok().map(|record| record.id), Some(QueueId(1)));
    }

    #[test]
    fn what_may_have_changed_since_the_look_is_not_kept() {
        let known = Arc::new(Known::default());
        let account = AccountName::development();
        let mut under_way = None;

        let begins = || under_way = Some(known.changing(&account, &name("jobs")));
        assert!(!is_kept(&known, "jobs", begins), "a change has begun");
        assert!(!is_kept(&known, "jobs", || {}), "it is still under way");
        assert!(!is_kept(&known, "jobs", || drop(under_way.take())), "it has ended since");

        assert!(is_kept(&known, "jobs", || {}));
    }

    #[test]
    fn there_are_never_more_records_than_allowed() {
        let known = Arc::new(Known::default());
        for number in 0..=RECORDS_MAX {
            assert!(is_kept(&known, &format!("queue-{number}"), || {}));
        }

        let count: usize = known.lock().records.values().map(HashMap::len).sum();
        assert_eq!((count, known.lock().count), (1, 1));
    }
}
