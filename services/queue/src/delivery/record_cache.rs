//! The records of queues in use, in memory: every operation on messages needs the record of its queue.
//!
//! A record is dropped before this process commits a change of it, and none is cached while a change is in flight or
//! when it was read before a change ended: so no operation gets a record that is older than the last acknowledged
//! change of this process. Changes of other processes raise the record version in the head of the queue, with which
//! every operation on messages compares the version of the record that it was prepared with; it is dropped where they
//! differ. The absence of a queue is never cached, so a create drops nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use trestle_model::name::{AccountName, QueueName};

use crate::{keys::QueueId, record::QueueRecord};

/// Most records in memory; with the most metadata that a queue can have, 8 MiB.
const RECORDS_MAX: usize = 1024;

/// See the module.
#[derive(Default)]
pub(crate) struct RecordCache(Mutex<RecordCacheState>);

#[derive(Default)]
struct RecordCacheState {
    records: HashMap<AccountName, HashMap<QueueName, Arc<QueueRecord>>>,
    count: usize,
    /// Changes in flight.
    changing: usize,
    /// Changes that have ended.
    changed: u64,
}

/// A cache miss: the store must be read.
pub(crate) struct CacheMiss {
    changed: u64,
}

/// A change in flight; it ends when dropped.
pub(crate) struct ChangeGuard(Arc<RecordCache>);

impl RecordCache {
    fn lock(&self) -> MutexGuard<'_, RecordCacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of a queue, if it is cached; otherwise the miss that [`Self::keep`] requires after the read.
    pub(crate) fn get(
        &self,
        account: &AccountName,
        name: &QueueName,
    ) -> Result<Arc<QueueRecord>, CacheMiss> {
        let inner = self.lock();
        let record = inner.records.get(account).and_then(|queues| queues.get(name));
        record.map(Arc::clone).ok_or(CacheMiss { changed: inner.changed })
    }

    /// Caches the record that was read from the store after the miss, unless it may have changed since.
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

    /// Drops a record that is about to change. Hold the returned guard until the change is committed, also when the
    /// caller is cancelled.
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

impl RecordCache {
    /// Drops the record of a queue by its id.
    pub(crate) fn drop_id(&self, id: QueueId) {
        let mut inner = self.lock();
        let mut dropped = 0;
        for queues in inner.records.values_mut() {
            let before = queues.len();
            queues.retain(|_, record| record.id != id);
            dropped += before - queues.len();
        }
        inner.count -= dropped;
        // A read in flight may return the same record.
        inner.changed += 1;
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
