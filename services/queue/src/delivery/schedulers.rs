//! The queues that the process knows something of.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::HashMap;
use trestle_kv::Engine;
use trestle_service::clock::Ticks;

use crate::{
    delivery::Scheduler,
    delivery::SharedExpiryBuckets,
    delivery::monotonic_clock::MonotonicClock,
    error::QueueError,
    keys::{self, Cursor, QueueId},
};

/// How long a queue that nobody asks for is kept in memory.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// One scheduler for each queue in use.
pub(crate) struct Schedulers {
    engine: Arc<dyn Engine>,
    clock: Arc<MonotonicClock>,
    schedulers: Mutex<HashMap<QueueId, Arc<Scheduler>>>,
    /// When messages expire; also of queues that are not in use.
    expiries: Mutex<HashMap<QueueId, Arc<SharedExpiryBuckets>>>,
}

impl Schedulers {
    /// Knows no queue.
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Arc<MonotonicClock>) -> Self {
        Self { engine, clock, schedulers: Mutex::default(), expiries: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueId, Arc<Scheduler>>> {
        self.schedulers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The scheduler of a queue.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn open(&self, id: QueueId) -> Result<Arc<Scheduler>, QueueError> {
        if let Some(scheduler) = self.find(id) {
            return Ok(scheduler);
        }
        let snapshot = self.engine.snapshot().await?;
        let stored = snapshot.get(&keys::cursor(id)).await?;
        let cursor = stored.map(|value| Cursor::decode(&value)).transpose()?;
        let cursor = cursor.unwrap_or(Cursor::START);
        // Before anything is written into the queue: nothing may come to lie before the cursor.
        self.clock.raise(cursor.slot.visible_at);
        // What was visible before a restart stays visible, also where the clock of the machine went back meanwhile.
        if let Some(noted) = snapshot.get(&keys::time()).await? {
            let noted = keys::decode_number(&noted, "the time that was noted")?;
            self.clock.raise(Ticks::new(noted).unwrap_or(Ticks::MAX));
        }
        let (engine, clock) = (Arc::clone(&self.engine), Arc::clone(&self.clock));
        let expiries = self.expiries(id);
        let new = || Arc::new(Scheduler::new(id, engine, clock, expiries, cursor));
        let scheduler = Arc::clone(self.lock().entry(id).or_insert_with(new));
        // Whoever deletes or clears a queue closes its scheduler afterwards. If this one was not there yet when he did, the
        // queue is gone by now, and nobody else would tell those who come to wait here.
        let snapshot = self.engine.snapshot().await?;
        if snapshot.get(&keys::count(id)).await?.is_none() {
            self.close(id);
        }
        Ok(scheduler)
    }

    /// The scheduler of a queue, if it is in use.
    pub(crate) fn find(&self, id: QueueId) -> Option<Arc<Scheduler>> {
        self.lock().get(&id).map(Arc::clone)
    }

    /// What is known of when messages of a queue expire.
    pub(crate) fn expiries(&self, id: QueueId) -> Arc<SharedExpiryBuckets> {
        let mut expiries = self.expiries.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(expiries.entry(id).or_default())
    }

    /// Forgets when messages of a queue expire that is no more.
    pub(crate) fn forget_expiry_buckets(&self, id: QueueId) {
        self.expiries.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// The queue is no more.
    pub(crate) fn close(&self, id: QueueId) {
        let scheduler = self.lock().remove(&id);
        if let Some(scheduler) = scheduler {
            scheduler.close();
        }
    }

    /// Every queue in use.
    pub(crate) fn all(&self) -> Vec<(QueueId, Arc<Scheduler>)> {
        self.lock().iter().map(|(id, scheduler)| (*id, Arc::clone(scheduler))).collect()
    }

    /// Forgets a queue that nobody has asked for lately, if nobody else holds it.
    pub(crate) fn forget_if_idle(&self, id: QueueId) {
        let mut schedulers = self.lock();
        let is_idle = |scheduler: &Arc<Scheduler>| {
            Arc::strong_count(scheduler) == 1 && scheduler.is_idle(IDLE_MAX)
        };
        if schedulers.get(&id).is_some_and(is_idle) {
            schedulers.remove(&id);
        }
    }
}
