//! Reading slots from the store into the index.

use std::sync::Arc;

use tokio::time::Instant;
use trestle_kv::ScanLimit;
use trestle_model::time::Ticks;

use super::Scheduler;
use crate::{
    delivery::{fence::AttemptError, index::Index},
    keys,
    slot::Slot,
};

/// How much of the store is read at once: some milliseconds.
pub(crate) const LOAD: ScanLimit = ScanLimit { rows: 4096, bytes: 1024 * 1024 };
/// Most loads of one [`Scheduler::look`].
const LOADS_MAX: usize = 32;

impl Scheduler {
    /// Continues reading the store, if it may have a message that is due.
    ///
    /// # Errors
    /// A failed read.
    pub(super) async fn load(self: &Arc<Self>) -> Result<(), AttemptError> {
        let is_needed = |index: &Index, now| index.ends_before(now) && !index.has_due(now);
        self.load_if(is_needed).await
    }

    async fn load_if(
        self: &Arc<Self>,
        is_needed: impl Fn(&Index, Ticks) -> bool,
    ) -> Result<(), AttemptError> {
        let _loading = self.loading.lock().await;
        let now = self.now();
        let start = {
            let mut inner = self.lock();
            if inner.closed.is_some() || !is_needed(&inner.index, now) {
                return Ok(());
            }
            inner.index.begin_load()
        };
        let Some(start) = start else { return Ok(()) };
        // A load that is cancelled leaves an index that can be read again.
        let _abort = AbortLoad(self);
        let snapshot = self.engine.snapshot().await?;
        let head = snapshot.get(&keys::head(self.id)).await?;
        if let Err(error) = self.fence(None).check(head.as_deref()) {
            let AttemptError::Fenced(fenced) = error else { return Err(error) };
            self.close(fenced.cause);
            return Ok(());
        }
        let scan = snapshot.scan(&keys::states_from(self.id, start), LOAD).await?;
        let slots = scan.entries.iter().map(|entry| keys::slot_of(&entry.key));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let mut inner = self.lock();
        inner.index.end_load(&slots, scan.more);
        let now = self.now();
        self.dispatch(&mut inner, now);
        self.set_timer(&mut inner, now);
        Ok(())
    }

    /// Up to `max` slots that are due, after `after`; continues reading the store if the index has none.
    ///
    /// # Errors
    /// [`AttemptError::Fenced`] where the scheduler is closed, or a failed read.
    pub(crate) async fn look(
        self: &Arc<Self>,
        after: Option<Slot>,
        max: usize,
    ) -> Result<Vec<Slot>, AttemptError> {
        let look = |index: &Index, now| index.look(after, max, now);
        let is_needed = |index: &Index, now| index.ends_before(now) && look(index, now).is_empty();
        // Bounded: messages behind very many claimed slots are not searched for.
        for _ in 0..LOADS_MAX {
            let now = self.now();
            {
                let mut inner = self.lock();
                inner.used_at = Instant::now();
                if let Some(cause) = inner.closed {
                    return Err(self.fence(None).reject(cause).into());
                }
                if !is_needed(&inner.index, now) {
                    return Ok(look(&inner.index, now));
                }
            }
            self.load_if(is_needed).await?;
        }
        Ok(Vec::new())
    }
}

/// Ends the load of the index when it is dropped before its end.
struct AbortLoad<'a>(&'a Arc<Scheduler>);

impl Drop for AbortLoad<'_> {
    fn drop(&mut self) {
        self.0.lock().index.abort_load();
    }
}
