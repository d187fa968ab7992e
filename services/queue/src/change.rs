//! Deleting and updating messages by their receipts.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use foldhash::{HashSet, HashSetExt as _};
use trestle_kv::{Write, transact};
use trestle_service::{clock::Ticks, name::QueueName};

use crate::{
    authorize::Access,
    delivery::IndexEntry,
    detached::detached,
    error::QueueError,
    groups,
    keys::{self, QueueId, Slot},
    messages::{AttemptError, Messages, live},
    queues::Queue,
    receipt::{Claimed, Receipt},
    stored::{Body, MessageState, Payload},
};

/// An update of a message, checked.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    /// Which message.
    pub(crate) claimed: Claimed,
    /// How long it is hidden from now on.
    pub(crate) visibility_timeout: Duration,
    /// What it carries from now on, if that changes.
    pub(crate) payload: Option<Payload>,
}

/// Which messages were deleted, and which came to be first of their groups.
type Deleted = (Vec<bool>, Vec<IndexEntry>);

impl Messages {
    /// Deletes messages; for each whether it was there and the receipt its last one.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn delete(
        &self,
        access: &Access,
        name: &QueueName,
        claimed: Vec<Claimed>,
    ) -> Result<Vec<bool>, QueueError> {
        let claimed = Arc::new(claimed);
        self.with_queue(access, name, |queue| {
            detached(self.clone().delete_from(queue, Arc::clone(&claimed)))
        })
        .await
    }

    async fn delete_from(
        self,
        queue: Queue,
        claimed: Arc<Vec<Claimed>>,
    ) -> Result<Vec<bool>, AttemptError> {
        let id = queue.record.id;
        let scheduler = self.schedulers.open(id).await?;
        let slots = claimed.iter().map(|claimed| claimed.receipt.slot);
        let in_group: Vec<_> =
            claimed.iter().map(|c| c.receipt).filter(|receipt| receipt.is_in_group).collect();
        // What lies behind them becomes visible, which is a write that the cursor must not pass.
        let writing = (!in_group.is_empty()).then(|| scheduler.write(|| (0, ())));
        let now = writing.as_ref().map_or_else(|| self.clock.now(), |(_, now, ())| *now);
        let mut reads = vec![keys::count(id)];
        reads.extend(slots.map(|slot| keys::state(id, slot)));
        reads.extend(in_group.iter().map(|receipt| keys::next_in_group(id, receipt.slot.sequence)));
        let decided = Arc::clone(&claimed);
        let (deleted, promoted) = transact(&*self.engine, reads, move |current| {
            decide_delete(id, now, &decided, current)
        })
        .await??;
        let gone = claimed.iter().zip(&deleted).filter(|(_, deleted)| **deleted);
        let slots: Vec<_> = gone.map(|(claimed, _)| claimed.receipt.slot).collect();
        scheduler.change(&slots, &promoted);
        self.checkpoint_if_due(&scheduler);
        Ok(deleted)
    }

    /// Updates a message; its new receipt.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::MessageNotFound`], or a failed commit.
    pub(crate) async fn update(
        &self,
        access: &Access,
        name: &QueueName,
        update: Update,
    ) -> Result<Receipt, QueueError> {
        self.with_queue(access, name, |queue| {
            detached(self.clone().update_in(queue, update.clone()))
        })
        .await
    }

    async fn update_in(self, queue: Queue, update: Update) -> Result<Receipt, AttemptError> {
        let id = queue.record.id;
        let scheduler = self.schedulers.open(id).await?;
        let old = update.claimed.receipt.slot;
        let (_writing, now, ()) = scheduler.write(|| (old.sequence, ()));
        let reads = vec![keys::count(id), keys::state(id, old), keys::body(id, old.sequence)];
        let (receipt, entry) =
            transact(&*self.engine, reads, move |current| decide_update(id, now, &update, current))
                .await??;
        scheduler.change(&[old], &[entry]);
        Ok(receipt)
    }
}

/// The state at the slot of a receipt, if the receipt is its last one.
fn held(
    claimed: &Claimed,
    stored: Option<&Bytes>,
    now: Ticks,
) -> Result<Option<MessageState>, QueueError> {
    let is_held = |state: &MessageState| {
        Receipt::of(claimed.receipt.slot, state) == claimed.receipt && claimed.is_of(state.id)
    };
    Ok(live(stored, now)?.filter(is_held))
}

/// What to write, which messages are deleted, and which came to be first of their groups. `current` is the count, the
/// state of each, then what waits behind each that is of a group.
fn decide_delete(
    id: QueueId,
    now: Ticks,
    claimed: &[Claimed],
    current: &[Option<Bytes>],
) -> Result<(Vec<Write>, Deleted), AttemptError> {
    let Some((Some(count), rows)) = current.split_first() else {
        return Err(AttemptError::QueueReplaced);
    };
    let (states, next_in_groups) = rows.split_at_checked(claimed.len()).unwrap_or((rows, &[]));
    let (mut next_in_groups, mut promoted) = (next_in_groups.iter(), Vec::new());
    let count = keys::decode_number(count, "count of a queue")?;
    let mut writes = Vec::with_capacity(claimed.len() * 2 + 1);
    let (mut seen, mut deleted) = (HashSet::new(), Vec::with_capacity(claimed.len()));
    for (claimed, stored) in claimed.iter().zip(states) {
        let slot = claimed.receipt.slot;
        // The second of two equal receipts finds nothing, as it would in a call of its own.
        let held = held(claimed, stored.as_ref(), now)?.filter(|_| seen.insert(slot));
        let next_in_group = if claimed.receipt.is_in_group { next_in_groups.next() } else { None };
        deleted.push(held.is_some());
        if let Some(state) = held {
            writes.push(Write::Delete { key: keys::state(id, slot) });
            writes.push(Write::Delete { key: keys::body(id, slot.sequence) });
            if let Some(group) = state.group {
                let next_in_group = next_in_group.and_then(Option::as_ref);
                let (gone, writes) = ((slot.sequence, group), &mut writes);
                promoted.extend(groups::promote_next(id, gone, next_in_group, now, writes)?);
            }
        }
    }
    if !seen.is_empty() {
        let gone = u64::try_from(seen.len()).unwrap_or(u64::MAX);
        let value = keys::encode_number(count.saturating_sub(gone));
        writes.push(Write::Put { key: keys::count(id), value });
    }
    Ok((writes, (deleted, promoted)))
}

/// What to write, the new receipt, and where the message stands. `current` is the count, the state and the body.
fn decide_update(
    id: QueueId,
    now: Ticks,
    update: &Update,
    current: &[Option<Bytes>],
) -> Result<(Vec<Write>, (Receipt, IndexEntry)), AttemptError> {
    let [Some(_), stored, body] = current else {
        return Err(AttemptError::QueueReplaced);
    };
    let Some(state) = held(&update.claimed, stored.as_ref(), now)? else {
        let message_id = update.claimed.message_id.clone();
        return Err(AttemptError::Failed(QueueError::MessageNotFound(message_id)));
    };
    let old = update.claimed.receipt.slot;
    let slot = Slot { visible_at: now.after(update.visibility_timeout), ..old };
    let state = MessageState { generation: state.generation.wrapping_add(1), ..state };
    // In this order: both may be the same key.
    let mut writes = vec![
        Write::Delete { key: keys::state(id, old) },
        Write::Put { key: keys::state(id, slot), value: state.encode() },
    ];
    if let Some(payload) = &update.payload {
        let body = body.as_ref().ok_or_else(|| QueueError::corrupt("a message without a body"))?;
        let body = Body { payload: payload.clone(), ..Body::decode(body)? };
        writes.push(Write::Put { key: keys::body(id, old.sequence), value: body.encode() });
    }
    let entry = IndexEntry { slot, expires_at: state.expires_at };
    Ok((writes, (Receipt::of(slot, &state), entry)))
}

#[cfg(test)]
mod tests;
