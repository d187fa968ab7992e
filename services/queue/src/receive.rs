//! Receiving: slots are claimed in memory, then their messages are made invisible in one change, which reads what is
//! actually stored there.
//!
//! Messages that expired, or that were delivered too often, are removed on the way. Where that fails, as while disk
//! space is short, they are held for a while, so that consumers receive what is behind them.

mod decide;

use std::{error::Error, sync::Arc, time::Duration};

use tokio::time::Instant;
use trestle_kv::transact;
use trestle_model::name::QueueName;
use trestle_rpc::layer::deadline::CallDeadline;

use self::decide::{ClaimedSlot, Found, ReceivePlan};
use crate::{
    authorize::QueueAccess,
    delivery::{AttemptError, Claim, ClaimOutcome},
    detached::detached,
    error::QueueError,
    messages::{Delivered, MessageOperations},
    queues::FoundQueue,
    release::ReceivedBatch,
    slot::Slot,
    transfer::MessageTransfer,
};

/// Most claims of one call when all the claimed messages prove to be removed.
const CLAIMS_MAX: usize = 10_000;

/// Most claims of one call whose messages are held.
const HOLDS_MAX: usize = 32;

/// How long messages that cannot be removed are not claimed again.
const HELD_FOR: Duration = Duration::from_secs(5);

/// Most messages that are removed together when some prove to be expired.
const EXPIRED_MAX: usize = 500;

/// A receive request of a consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receive {
    /// At most this many messages.
    pub(crate) max: usize,
    /// Their visibility timeout.
    pub(crate) visibility_timeout: Duration,
    /// How long to wait for the first.
    pub(crate) wait: Duration,
    /// When the call ends, if its client set a limit.
    pub(crate) deadline: Option<CallDeadline>,
}

/// What became of a claim.
enum TakeOutcome {
    /// These messages are delivered; none where those that were claimed are removed.
    Delivered(ReceivedBatch),
    /// None is, and some are held.
    Held,
}

/// The messages of claimed slots, and the slots of those that are not delivered.
#[derive(Default)]
struct Sorted {
    delivered: Vec<Delivered>,
    expired: Vec<Slot>,
    exhausted: Vec<Slot>,
}

impl MessageOperations {
    /// Receives messages that are visible; none where no message becomes visible within the wait, or when the process
    /// is shutting down. A call receives nothing once its deadline is so near that the response may come too late.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::NotOwner`], the end of the call, or a failed commit.
    pub(crate) async fn receive(
        &self,
        access: &QueueAccess,
        name: &QueueName,
        request: Receive,
    ) -> Result<ReceivedBatch, QueueError> {
        let wait_end = Instant::now() + request.wait;
        let Some(deadline) = request.deadline else {
            return self.receive_until(wait_end, access, name, request).await;
        };
        let last = deadline.last_response();
        if Instant::now() < last {
            let wait_end = wait_end.min(last);
            let received = self.receive_until(wait_end, access, name, request).await?;
            if Instant::now() < last {
                return Ok(received);
            }
        }
        Err(deadline.expired().await.into())
    }

    /// Receives messages; waits until `deadline` for the first.
    async fn receive_until(
        &self,
        deadline: Instant,
        access: &QueueAccess,
        name: &QueueName,
        request: Receive,
    ) -> Result<ReceivedBatch, QueueError> {
        let mut holds = 0;
        for _ in 0..CLAIMS_MAX {
            let queue = self.queues.open(access, name).await?;
            let claim = match self.claim(&queue, request.max, deadline).await {
                Ok(Some(claim)) => claim,
                Ok(None) => break,
                Err(error) => {
                    self.may_retry(error, name)?;
                    continue;
                }
            };
            // Access may have been revoked while the call waited. Then the claimed slots are released.
            let queue = match access.is_by_policy() {
                true => self.queues.open(access, name).await?,
                false => queue,
            };
            if queue.record.id != claim.scheduler().id() {
                continue;
            }
            let received = self.clone().take(queue, claim, request.visibility_timeout);
            match detached(received).await {
                Ok(TakeOutcome::Delivered(received)) if received.delivered.is_empty() => {}
                Ok(TakeOutcome::Delivered(received)) => return Ok(received),
                // At a shutdown nothing is held.
                Ok(TakeOutcome::Held) if holds == HOLDS_MAX || self.shutdown.is_cancelled() => {
                    break;
                }
                Ok(TakeOutcome::Held) => holds += 1,
                Err(error) => self.may_retry(error, name)?,
            }
        }
        Ok(ReceivedBatch::default())
    }

    /// Claims slots of a queue; none where none becomes due within the wait.
    async fn claim(
        &self,
        queue: &FoundQueue,
        max: usize,
        deadline: Instant,
    ) -> Result<Option<Claim>, AttemptError> {
        let scheduler = self.schedulers.open(queue).await?;
        let outcome = tokio::select! {
            // Slots that are due are claimed first, also by the last call.
            biased;
            outcome = scheduler.claim(max, deadline) => outcome?,
            () = self.shutdown.cancelled() => ClaimOutcome::Empty,
        };
        match outcome {
            ClaimOutcome::Claimed(claim) => Ok(Some(claim)),
            ClaimOutcome::Empty if self.shutdown.is_cancelled() => Ok(None),
            ClaimOutcome::Empty => self.schedulers.check_empty(&scheduler).await.map(|()| None),
            ClaimOutcome::Closed(cause) => Err(scheduler.fence(None).reject(cause).into()),
        }
    }

    /// Makes the claimed messages invisible, as far as they are stored.
    async fn take(
        self,
        queue: FoundQueue,
        mut claim: Claim,
        visibility_timeout: Duration,
    ) -> Result<TakeOutcome, AttemptError> {
        let dead_letters = self.dead_letters_of(&queue).await?;
        let dequeue_count_max = dead_letters.as_ref().map(|(_, max)| *max);
        let found = self.decide(&queue, &claim, (visibility_timeout, dequeue_count_max)).await?;
        let Sorted { delivered, expired, exhausted } = sort_out(claim.slots(), found);
        let is_left = |slot: &&Slot| expired.contains(slot) || exhausted.contains(slot);
        let emptied: Vec<_> = claim.slots().iter().filter(|slot| !is_left(slot)).copied().collect();
        let filled: Vec<_> = delivered.iter().map(Delivered::entry).collect();
        claim.ack(&emptied, &filled);
        // From here on, whatever ends this call releases the messages.
        let received = ReceivedBatch::new(&self, claim.scheduler(), delivered);
        self.checkpoint_if_due(claim.scheduler());
        let mut are_removed = true;
        if !expired.is_empty() {
            are_removed &= self.remove_expired_from(&queue, &mut claim, expired).await;
        }
        if let Some((dead_letter_queue, _)) = dead_letters.filter(|_| !exhausted.is_empty()) {
            are_removed &=
                self.dead_letter_exhausted(queue, dead_letter_queue, &mut claim, exhausted).await;
        }
        if !are_removed {
            self.hold(claim);
        }
        match received.delivered.is_empty() && !are_removed {
            true => Ok(TakeOutcome::Held),
            false => Ok(TakeOutcome::Delivered(received)),
        }
    }

    /// Keeps the slots of a claim from other consumers for a while.
    fn hold(&self, claim: Claim) {
        let shutdown = self.shutdown.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(HELD_FOR) => {}
                () = shutdown.cancelled() => {}
            }
            drop(claim);
        });
    }

    async fn decide(
        &self,
        queue: &FoundQueue,
        claim: &Claim,
        (visibility_timeout, dequeue_count_max): (Duration, Option<u32>),
    ) -> Result<Vec<Found>, AttemptError> {
        let (id, now) = (queue.record.id, claim.scheduler().now());
        let (mut spec, head) = claim.scheduler().fence(queue.record.version).begin();
        // A state row for another one, of a few messages: none can be deleted without a receive.
        spec.gives_back_space();
        let slots = claim.slots().iter().map(|slot| ClaimedSlot::read(id, *slot, &mut spec));
        let plan = ReceivePlan {
            id,
            now,
            head,
            visible_at: now.after(visibility_timeout),
            dequeue_count_max,
            slots: slots.collect(),
            nonces: claim.slots().iter().map(|_| self.new_nonce()).collect(),
        };
        transact(&*self.engine, spec, move |reads, _version| plan.decide(reads)).await?
    }

    /// Removes expired messages, and those behind them that may have expired. On failure they remain.
    async fn remove_expired_from(
        &self,
        queue: &FoundQueue,
        claim: &mut Claim,
        expired: Vec<Slot>,
    ) -> bool {
        let scheduler = Arc::clone(claim.scheduler());
        // Many messages expire together: one commit for every few of them would delay the consumer.
        let behind = scheduler.look(expired.last().copied(), EXPIRED_MAX).await.unwrap_or_default();
        let slots = expired.into_iter().chain(behind).collect();
        match self.remove_expired(queue, slots).await {
            Ok(removed) => claim.ack(&removed, &[]),
            Err(error) => return self.log_kept("expired messages cannot be removed", &error),
        }
        true
    }

    /// Dead-letters messages that were delivered too often. On failure they remain.
    async fn dead_letter_exhausted(
        &self,
        from: FoundQueue,
        to: FoundQueue,
        claim: &mut Claim,
        slots: Vec<Slot>,
    ) -> bool {
        match self.transfer(MessageTransfer { from, to, slots, is_dead_letter: true }).await {
            Ok(moved) => claim.ack(&moved, &[]),
            // The next attempt uses the queue as it is now.
            Err(AttemptError::Fenced(fenced)) => self.drop_outdated(&fenced),
            Err(error) => return self.log_kept("messages cannot be dead-lettered", &error),
        }
        true
    }

    /// Reports messages that are not removed. Returns that they are not.
    fn log_kept(&self, problem: &'static str, error: &dyn Error) -> bool {
        self.log_failure(problem, error);
        false
    }

    /// The dead-letter queue of a queue, if it exists, and the deliveries before a message is moved there.
    async fn dead_letters_of(
        &self,
        queue: &FoundQueue,
    ) -> Result<Option<(FoundQueue, u32)>, QueueError> {
        let Some(policy) = &queue.record.settings.dead_letter else {
            return Ok(None);
        };
        let found = self.queues.find(&queue.account, &policy.queue).await?;
        Ok(found.map(|found| (found, policy.dequeue_count_max)))
    }
}

fn sort_out(slots: &[Slot], found: Vec<Found>) -> Sorted {
    let mut sorted = Sorted::default();
    for (slot, found) in slots.iter().copied().zip(found) {
        match found {
            Found::Delivered(message) => sorted.delivered.push(*message),
            Found::Expired => sorted.expired.push(slot),
            Found::Exhausted => sorted.exhausted.push(slot),
            Found::Nothing => {}
            Found::Unreadable => {
                tracing::error!(sequence = slot.sequence, "a message cannot be read");
            }
        }
    }
    sorted
}

#[cfg(test)]
mod tests;
