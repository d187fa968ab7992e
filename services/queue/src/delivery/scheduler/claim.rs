//! Claiming slots, and waiting for them.

use std::sync::Arc;

use tokio::{sync::oneshot, time::Instant};
use trestle_model::time::Ticks;

use super::{Scheduler, SchedulerState, Waiter};
use crate::{
    delivery::{
        expiry_buckets::IndexEntry,
        fence::{AttemptError, FenceCause},
    },
    slot::Slot,
};

/// Slots that one consumer holds exclusively. Dropping the claim releases the slots that are not acknowledged.
pub(crate) struct Claim {
    scheduler: Arc<Scheduler>,
    slots: Vec<Slot>,
}

/// The outcome of a request for messages.
pub(crate) enum ClaimOutcome {
    /// Slots were claimed.
    Claimed(Claim),
    /// No message became due before the deadline.
    Empty,
    /// The scheduler was closed.
    Closed(FenceCause),
}

/// A waiting consumer; removed from the queue of waiters when dropped.
struct WaiterGuard {
    scheduler: Arc<Scheduler>,
    number: u64,
    receiver: oneshot::Receiver<Claim>,
}

enum Step {
    Done(ClaimOutcome),
    Wait(WaiterGuard),
    Load,
}

impl Scheduler {
    /// Claims up to `max` messages that are due; waits until `deadline` for the first.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        max: usize,
        deadline: Instant,
    ) -> Result<ClaimOutcome, AttemptError> {
        loop {
            match self.step(max, deadline) {
                Step::Done(outcome) => return Ok(outcome),
                Step::Load => self.load().await?,
                Step::Wait(mut waiter) => {
                    let received = tokio::time::timeout_at(deadline, &mut waiter.receiver).await;
                    match received {
                        Ok(Ok(claim)) => return Ok(ClaimOutcome::Claimed(claim)),
                        // The sender was dropped without a claim.
                        Ok(Err(_)) => {
                            let cause = self.closed().unwrap_or(FenceCause::QueueReplaced);
                            return Ok(ClaimOutcome::Closed(cause));
                        }
                        Err(_elapsed) => return Ok(ClaimOutcome::Empty),
                    }
                }
            }
        }
    }

    fn step(self: &Arc<Self>, max: usize, deadline: Instant) -> Step {
        let now = self.now();
        let mut inner = self.lock();
        inner.used_at = Instant::now();
        if let Some(cause) = inner.closed {
            return Step::Done(ClaimOutcome::Closed(cause));
        }
        self.dispatch(&mut inner, now);
        let slots = inner.index.claim(max, now);
        if !slots.is_empty() {
            return Step::Done(ClaimOutcome::Claimed(Claim { scheduler: Arc::clone(self), slots }));
        }
        if inner.index.ends_before(now) {
            return Step::Load;
        }
        if deadline <= Instant::now() {
            return Step::Done(ClaimOutcome::Empty);
        }
        inner.next_waiter += 1;
        let number = inner.next_waiter;
        let (sender, receiver) = oneshot::channel();
        inner.waiters.insert(number, Waiter { max, sender });
        self.set_timer(&mut inner, now);
        Step::Wait(WaiterGuard { scheduler: Arc::clone(self), number, receiver })
    }

    /// Assigns slots that are due to the waiting consumers.
    pub(super) fn dispatch(self: &Arc<Self>, inner: &mut SchedulerState, now: Ticks) {
        while inner.index.has_due(now) {
            let Some((_, waiter)) = inner.waiters.pop_first() else { break };
            let slots = inner.index.claim(waiter.max, now);
            let claim = Claim { scheduler: Arc::clone(self), slots };
            if let Err(mut rejected) = waiter.sender.send(claim) {
                // Removed first: dropping them in the claim would acquire the lock again.
                let slots = std::mem::take(&mut rejected.slots);
                inner.index.give_back(&slots);
            }
        }
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        self.scheduler.lock().waiters.remove(&self.number);
    }
}

impl Claim {
    /// The claimed slots, in order.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The scheduler of the queue.
    pub(crate) fn scheduler(&self) -> &Arc<Scheduler> {
        &self.scheduler
    }

    /// A commit emptied these slots and filled others.
    pub(crate) fn ack(&mut self, emptied: &[Slot], filled: &[IndexEntry]) {
        self.scheduler.record_expirations(filled);
        self.slots.retain(|slot| !emptied.contains(slot));
        let now = self.scheduler.now();
        let mut inner = self.scheduler.lock();
        for entry in filled {
            inner.index.insert(entry.slot);
        }
        inner.index.drop_claimed(emptied);
        self.scheduler.dispatch(&mut inner, now);
        self.scheduler.set_timer(&mut inner, now);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        let now = self.scheduler.now();
        let mut inner = self.scheduler.lock();
        inner.index.give_back(&self.slots);
        self.scheduler.dispatch(&mut inner, now);
    }
}
