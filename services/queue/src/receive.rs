//! Receiving and peeking.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;
use trestle_kv::{Write, transact};
use trestle_service::{clock::Ticks, name::QueueName};

use crate::{
    authorize::Access,
    delivery::IndexEntry,
    delivery::{Claim, ClaimOutcome},
    detached::detached,
    error::QueueError,
    groups,
    keys::{self, QueueId, Slot},
    messages::{Delivered, Messages, find},
    queues::Queue,
    stored::{Body, MessageState},
    transfer::Transfer,
};

/// How often one call asks for messages when all that it got were gone.
const CLAIMS_MAX: usize = 10_000;

/// Most messages that are removed together when some turn out to be over.
const EXPIRED_MAX: usize = 500;
/// Most slots that one peek looks at, whatever it finds there.
const PEEKED_MAX: usize = 10_000;

/// What a consumer asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receive {
    /// At most this many messages.
    pub(crate) max: usize,
    /// How long they are hidden from others.
    pub(crate) visibility_timeout: Duration,
    /// How long to wait for the first.
    pub(crate) wait: Duration,
}

/// What the store says about a claimed slot.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// Delivered.
    Delivered(Box<Delivered>),
    /// Nothing: deleted, or received by another.
    Nothing,
    /// A message that is over.
    Expired,
    /// A message that was delivered as often as its queue allows.
    Exhausted,
    /// A record that cannot be read; nobody can be given it.
    Unreadable,
}

/// Which slots are empty, and which messages came to be first of their groups.
type Removed = (Vec<Slot>, Vec<IndexEntry>);

/// A receive, ready to be decided.
struct ReceivePlan {
    id: QueueId,
    now: Ticks,
    visible_at: Ticks,
    /// Deliveries before a message goes elsewhere.
    dequeue_count_max: Option<u32>,
    slots: Vec<Slot>,
}

impl Messages {
    /// Receives messages that are visible; none where there are none in time, or when the process is about to end.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn receive(
        &self,
        access: &Access,
        name: &QueueName,
        request: Receive,
    ) -> Result<Vec<Delivered>, QueueError> {
        let deadline = Instant::now() + request.wait;
        for _ in 0..CLAIMS_MAX {
            let queue = self.queues.open(access, name).await?;
            let scheduler = self.schedulers.open(queue.record.id).await?;
            let turn = tokio::select! {
                // What is there is taken first, also by the last call.
                biased;
                turn = scheduler.claim(request.max, deadline) => turn?,
                () = self.shutdown.cancelled() => ClaimOutcome::Empty,
            };
            let claim = match turn {
                ClaimOutcome::Claimed(claim) => claim,
                ClaimOutcome::Empty => break,
                ClaimOutcome::Closed => continue,
            };
            // It may have been taken back while the call waited. What is claimed is free again then.
            let queue = match access.is_by_policy() {
                true => self.queues.open(access, name).await?,
                false => queue,
            };
            if queue.record.id != claim.scheduler().id() {
                continue;
            }
            let taken =
                detached(self.clone().take(queue, claim, request.visibility_timeout)).await?;
            if !taken.is_empty() {
                return Ok(taken);
            }
        }
        Ok(Vec::new())
    }

    /// Hides what was claimed, as far as the store agrees.
    async fn take(
        self,
        queue: Queue,
        mut claim: Claim,
        visibility_timeout: Duration,
    ) -> Result<Vec<Delivered>, QueueError> {
        let id = queue.record.id;
        let dead_letter_queue = self.dead_letters_of(&queue).await?;
        let now = self.clock.now();
        let plan = ReceivePlan {
            id,
            now,
            visible_at: now.after(visibility_timeout),
            dequeue_count_max: dead_letter_queue.as_ref().map(|(_, max)| *max),
            slots: claim.slots().to_vec(),
        };
        let keys = |slot: &Slot| [keys::state(id, *slot), keys::body(id, slot.sequence)];
        let reads = claim.slots().iter().flat_map(keys).collect();
        let found = transact(&*self.engine, reads, move |current| {
            Ok::<_, std::convert::Infallible>(plan.decide(current))
        });
        let Ok(found) = found.await?;

        let mut delivered = Vec::new();
        let (mut expired, mut exhausted) = (Vec::new(), Vec::new());
        for (slot, found) in claim.slots().iter().copied().zip(found) {
            match found {
                Found::Delivered(message) => delivered.push(*message),
                Found::Expired => expired.push(slot),
                Found::Exhausted => exhausted.push(slot),
                Found::Nothing => {}
                Found::Unreadable => {
                    tracing::error!(sequence = slot.sequence, "a message cannot be read");
                }
            }
        }
        let is_left = |slot: &&Slot| expired.contains(slot) || exhausted.contains(slot);
        let emptied: Vec<_> = claim.slots().iter().filter(|p| !is_left(p)).copied().collect();
        let filled: Vec<_> = delivered.iter().map(Delivered::entry).collect();
        claim.settle(&emptied, &filled);
        self.checkpoint_if_due(claim.scheduler());
        if !expired.is_empty() {
            self.remove_expired_from(id, &mut claim, expired).await;
        }
        if let Some((dead_letter_queue, _)) = dead_letter_queue.filter(|_| !exhausted.is_empty()) {
            self.dead_letter_exhausted(queue, dead_letter_queue, &mut claim, exhausted).await;
        }
        Ok(delivered)
    }

    /// Removes what is over, and what may be over behind it. A failure only leaves it for the next consumer.
    async fn remove_expired_from(&self, id: QueueId, claim: &mut Claim, expired: Vec<Slot>) {
        let scheduler = Arc::clone(claim.scheduler());
        // Many messages expire together: one commit for each handful would hold up the consumer.
        let behind = scheduler.look(expired.last().copied(), EXPIRED_MAX).await.unwrap_or_default();
        let slots = expired.into_iter().chain(behind).collect();
        match self.remove_expired(id, slots).await {
            Ok(removed) => claim.settle(&removed, &[]),
            Err(error) => tracing::warn!(%error, "expired messages cannot be removed"),
        }
    }

    /// Moves what was delivered too often. A failure only leaves it for the next consumer.
    async fn dead_letter_exhausted(
        &self,
        from: Queue,
        to: Queue,
        claim: &mut Claim,
        slots: Vec<Slot>,
    ) {
        match self.transfer(Transfer { from, to, slots, is_dead_letter: true }).await {
            Ok(moved) => claim.settle(&moved, &[]),
            Err(error) => tracing::warn!(?error, "dead letters cannot be moved"),
        }
    }

    /// Where the messages of a queue go that were received too often, if that queue is there.
    async fn dead_letters_of(&self, queue: &Queue) -> Result<Option<(Queue, u32)>, QueueError> {
        let Some(policy) = &queue.record.settings.dead_letter else {
            return Ok(None);
        };
        let dead_letter_queue = self.queues.find(&queue.account, &policy.queue).await?;
        Ok(dead_letter_queue.map(|dead_letter_queue| (dead_letter_queue, policy.dequeue_count_max)))
    }

    /// Messages that are visible, without receiving them.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed read.
    pub(crate) async fn peek(
        &self,
        access: &Access,
        name: &QueueName,
        max: usize,
    ) -> Result<Vec<(MessageState, Body)>, QueueError> {
        let queue = self.queues.open(access, name).await?;
        let id = queue.record.id;
        let scheduler = self.schedulers.open(id).await?;
        let (mut messages, mut after, mut looked_at) = (Vec::new(), None, 0);
        while messages.len() < max && looked_at < PEEKED_MAX {
            let slots = scheduler.look(after, max - messages.len()).await?;
            looked_at += slots.len();
            let Some(last) = slots.last() else { break };
            after = Some(*last);
            let now = self.clock.now();
            let snapshot = self.engine.snapshot().await?;
            for slot in slots {
                messages.extend(find(&*snapshot, id, slot, now).await?);
            }
        }
        Ok(messages)
    }

    /// Removes messages that are over; which of the slots are empty now.
    ///
    /// # Errors
    /// A failed commit.
    pub(crate) async fn remove_expired(
        &self,
        id: QueueId,
        slots: Vec<Slot>,
    ) -> Result<Vec<Slot>, QueueError> {
        detached(self.clone().carry_away(id, slots)).await
    }

    async fn carry_away(self, id: QueueId, slots: Vec<Slot>) -> Result<Vec<Slot>, QueueError> {
        let scheduler = self.schedulers.open(id).await?;
        // What lies behind them in their groups becomes visible.
        let (_writing, now, ()) = scheduler.write(|| (0, ()));
        let mut reads = vec![keys::count(id)];
        let keys = |slot: &Slot| [keys::state(id, *slot), keys::next_in_group(id, slot.sequence)];
        reads.extend(slots.iter().flat_map(keys));
        let removed =
            transact(&*self.engine, reads, move |current| decide_removal(id, now, &slots, current));
        let (empty, promoted) = removed.await??;
        scheduler.change(&empty, &promoted);
        self.checkpoint_if_due(&scheduler);
        Ok(empty)
    }
}

impl ReceivePlan {
    /// What to write, and what was found at each slot. `current` is the state and the body of each.
    fn decide(&self, current: &[Option<Bytes>]) -> (Vec<Write>, Vec<Found>) {
        let mut writes = Vec::with_capacity(self.slots.len() * 2);
        let found = self.slots.iter().zip(current.chunks(2)).map(|(slot, values)| {
            let (state, body) = match values {
                [Some(state), Some(body)] => (state, body),
                [Some(_), None] => return Found::Unreadable,
                _ => return Found::Nothing,
            };
            let Ok((state, body)) =
                MessageState::decode(state).and_then(|state| Ok((state, Body::decode(body)?)))
            else {
                return Found::Unreadable;
            };
            if state.is_expired(self.now) {
                return Found::Expired;
            }
            if self.dequeue_count_max.is_some_and(|max| state.dequeue_count >= max) {
                return Found::Exhausted;
            }
            let state = MessageState {
                generation: state.generation.wrapping_add(1),
                dequeue_count: state.dequeue_count.saturating_add(1),
                ..state
            };
            let hidden = Slot { visible_at: self.visible_at, sequence: slot.sequence };
            writes.push(Write::Delete { key: keys::state(self.id, *slot) });
            writes.push(Write::Put { key: keys::state(self.id, hidden), value: state.encode() });
            Found::Delivered(Box::new(Delivered { slot: hidden, state, body }))
        });
        let found = found.collect();
        (writes, found)
    }
}

/// The writes that remove those of the slots that hold something expired or nothing, these slots, and what came to be
/// first of its group. `current` is the count, then each state and what waits behind it.
fn decide_removal(
    id: QueueId,
    now: Ticks,
    slots: &[Slot],
    current: &[Option<Bytes>],
) -> Result<(Vec<Write>, Removed), QueueError> {
    let mut promoted = Vec::new();
    let Some((Some(count), rows)) = current.split_first() else {
        // The queue is no more; its sweeper removes everything.
        return Ok((Vec::new(), (slots.to_vec(), promoted)));
    };
    let count = keys::decode_number(count, "count of a queue")?;
    let (mut writes, mut removed, mut empty) = (Vec::new(), 0, Vec::new());
    for (slot, row) in slots.iter().zip(rows.chunks(2)) {
        let [Some(state), next_in_group] = row else {
            empty.push(*slot);
            continue;
        };
        let state = MessageState::decode(state)?;
        if state.is_expired(now) {
            writes.push(Write::Delete { key: keys::state(id, *slot) });
            writes.push(Write::Delete { key: keys::body(id, slot.sequence) });
            if let Some(group) = state.group {
                let (gone, next_in_group) = ((slot.sequence, group), next_in_group.as_ref());
                promoted.extend(groups::promote_next(id, gone, next_in_group, now, &mut writes)?);
            }
            empty.push(*slot);
            removed += 1;
        }
    }
    if removed > 0 {
        let value = keys::encode_number(count.saturating_sub(removed));
        writes.push(Write::Put { key: keys::count(id), value });
    }
    Ok((writes, (empty, promoted)))
}

#[cfg(test)]
mod tests;
