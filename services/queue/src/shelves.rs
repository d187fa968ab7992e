//! The queues that the process knows something of.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::HashMap;
use trestle_kv::Engine;
use trestle_service::clock::Ticks;

use crate::{
    error::QueueError,
    expiries,
    keys::{self, Cursor, QueueId},
    shelf::Shelf,
    steady::SteadyClock,
};

/// How long a queue that nobody asks for is kept in memory.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// One shelf for each queue in use.
pub(crate) struct Shelves {
    engine: Arc<dyn Engine>,
    clock: Arc<SteadyClock>,
    shelves: Mutex<HashMap<QueueId, Arc<Shelf>>>,
    /// When messages expire; also of queues that are not in use.
    expiries: Mutex<HashMap<QueueId, Arc<expiries::Shared>>>,
}

impl Shelves {
    /// Knows no queue.
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Arc<SteadyClock>) -> Self {
        Self { engine, clock, shelves: Mutex::default(), expiries: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueId, Arc<Shelf>>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shelf of a queue.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn open(&self, id: QueueId) -> Result<Arc<Shelf>, QueueError> {
        if let Some(shelf) = self.find(id) {
            return Ok(shelf);
        }
        let snapshot = self.engine.snapshot().await?;
        let stored = snapshot.get(&keys::cursor(id)).await?;
        let cursor = stored.map(|value| Cursor::decode(&value)).transpose()?;
        let cursor = cursor.unwrap_or(Cursor::START);
        // Before anything is written into the queue: nothing may come to lie before the cursor.
        self.clock.raise(cursor.place.visible_at);
        // What was visible before a restart stays visible, also where the clock of the machine went back meanwhile.
        if let Some(noted) = snapshot.get(&keys::time()).await? {
            let noted = keys::decode_number(&noted, "the time that was noted")?;
            self.clock.raise(Ticks::new(noted).unwrap_or(Ticks::MAX));
        }
        let (engine, clock) = (Arc::clone(&self.engine), Arc::clone(&self.clock));
        let expiries = self.expiries(id);
        let new = || Arc::new(Shelf::new(id, engine, clock, expiries, cursor));
        let shelf = Arc::clone(self.lock().entry(id).or_insert_with(new));
        // Whoever deletes or clears a queue closes its shelf afterwards. If this one was not there yet when he did, the
        // queue is gone by now, and nobody else would tell those who come to wait here.
        let snapshot = self.engine.snapshot().await?;
        if snapshot.get(&keys::count(id)).await?.is_none() {
            self.close(id);
        }
        Ok(shelf)
    }

    /// The shelf of a queue, if it is in use.
    pub(crate) fn find(&self, id: QueueId) -> Option<Arc<Shelf>> {
        self.lock().get(&id).map(Arc::clone)
    }

    /// What is known of when messages of a queue expire.
    pub(crate) fn expiries(&self, id: QueueId) -> Arc<expiries::Shared> {
        let mut expiries = self.expiries.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(expiries.entry(id).or_default())
    }

    /// Forgets when messages of a queue expire that is no more.
    pub(crate) fn forget_expiries(&self, id: QueueId) {
        self.expiries.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// The queue is no more.
    pub(crate) fn close(&self, id: QueueId) {
        let shelf = self.lock().remove(&id);
        if let Some(shelf) = shelf {
            shelf.close();
        }
    }

    /// Every queue in use.
    pub(crate) fn all(&self) -> Vec<(QueueId, Arc<Shelf>)> {
        self.lock().iter().map(|(id, shelf)| (*id, Arc::clone(shelf))).collect()
    }

    /// Forgets a queue that nobody has asked for lately, if nobody else holds it.
    pub(crate) fn forget_if_idle(&self, id: QueueId) {
        let mut shelves = self.lock();
        let is_idle = |shelf: &Arc<Shelf>| Arc::strong_count(shelf) == 1 && shelf.is_idle(IDLE_MAX);
        if shelves.get(&id).is_some_and(is_idle) {
            shelves.remove(&id);
        }
    }
}
