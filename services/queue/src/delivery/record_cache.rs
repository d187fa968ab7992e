//! The records of queues in use, in memory: every operation on messages needs that of its queue.
//!
//! What is kept is what a miss into the store would give. A record is forgotten before a change of it is committed, and
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
pub(crate) struct RecordCache(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    records: HashMap<AccountName, HashMap<QueueName, Arc<QueueRecord>>>,
    count: usize,
    /// Changes that are under way.
    changing: usize,
    /// Changes that have ended.
    changed: u64,
}

/// The moment of a miss into the store.
pub(crate) struct CacheMiss {
    changed: u64,
}

/// A change under way; over when dropped.
pub(crate) struct ChangeGuard(Arc<RecordCache>);

impl RecordCache {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of a queue, if it is known; otherwise what to say when it is kept, once the store has told.
    pub(crate) fn get(
        &self,
        account: &AccountName,
        name: &QueueName,
    ) -> Result<Arc<QueueRecord>, CacheMiss> {
        let inner = self.lock();
        let record = inner.records.get(account).and_then(|queues| queues.get(name));
        record.map(Arc::clone).ok_or(CacheMiss { changed: inner.changed })
    }

    /// Keeps what the store told after the miss began, unless it may have changed since.
    pub(crate) fn keep(
        &self,
        miss: &CacheMiss,
        account: &AccountName,
        name: &QueueName,
        record: &Arc<QueueRecord>,
    ) {
        let mut inner = self.lock();
        if inner.changing > 0 || inner.changed != miss.changed {
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
    pub(crate) fn changing(
        self: &Arc<Self>,
        account: &AccountName,
        name: &QueueName,
    ) -> ChangeGuard {
        let mut inner = self.lock();
        inner.changing += 1;
        let queues = inner.records.get_mut(account);
        if queues.is_some_and(|queues| queues.remove(name).is_some()) {
            inner.count -= 1;
        }
        ChangeGuard(Arc::clone(self))
    }
}

impl Drop for ChangeGuard {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.changing -= 1;
        inner.changed += 1;
    }
}

#[cfg(test)]
mod tests;
