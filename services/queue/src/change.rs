//! Deleting and updating messages by their receipts.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use foldhash::{HashSet, HashSetExt as _};
use trestle_kv::{Write, transact};
use trestle_service::{clock::Ticks, name::QueueName};

use crate::{
    authorize::Access,
    error::QueueError,
    expiries::Standing,
    finish::finish,
    groups,
    keys::{self, Place, QueueId},
    messages::{Messages, Miss, live},
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
    pub(crate) hidden_for: Duration,
    /// What it carries from now on, if that changes.
    pub(crate) payload: Option<Payload>,
}

/// Which messages were deleted, and which came to be first of their groups.
type Deleted = (Vec<bool>, Vec<Standing>);

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
            finish(self.clone().delete_from(queue, Arc::clone(&claimed)))
        })
        .await
    }

    async fn delete_from(
        self,
        queue: Queue,
        claimed: Arc<Vec<Claimed>>,
    ) -> Result<Vec<bool>, Miss> {
        let id = queue.record.id;
        let shelf = self.shelves.open(id).await?;
        let places = claimed.iter().map(|claimed| claimed.receipt.place);
        let in_group: Vec<_> =
            claimed.iter().map(|c| c.receipt).filter(|receipt| receipt.is_in_group).collect();
        // What lies behind them becomes visible, which is a write that the cursor must not pass.
        let writing = (!in_group.is_empty()).then(|| shelf.write(|| (0, ())));
        let now = writing.as_ref().map_or_else(|| self.clock.now(), |(_, now, ())| *now);
        let mut reads = vec![keys::count(id)];
        reads.extend(places.map(|place| keys::state(id, place)));
        reads.extend(in_group.iter().map(|receipt| keys::follower(id, receipt.place.sequence)));
        let decided = Arc::clone(&claimed);
        let (deleted, promoted) = transact(&*self.engine, reads, move |current| {
            decide_delete(id, now, &decided, current)
        })
        .await??;
        let gone = claimed.iter().zip(&deleted).filter(|(_, deleted)| **deleted);
        let places: Vec<_> = gone.map(|(claimed, _)| claimed.receipt.place).collect();
        shelf.change(&places, &promoted);
        self.note_if_far(&shelf);
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
        self.with_queue(access, name, |queue| finish(self.clone().update_in(queue, update.clone())))
            .await
    }

    async fn update_in(self, queue: Queue, update: Update) -> Result<Receipt, Miss> {
        let id = queue.record.id;
        let shelf = self.shelves.open(id).await?;
        let old = update.claimed.receipt.place;
        let (_writing, now, ()) = shelf.write(|| (old.sequence, ()));
        let reads = vec![keys::count(id), keys::state(id, old), keys::body(id, old.sequence)];
        let (receipt, standing) =
            transact(&*self.engine, reads, move |current| decide_update(id, now, &update, current))
                .await??;
        shelf.change(&[old], &[standing]);
        Ok(receipt)
    }
}

/// The state at the place of a receipt, if the receipt is its last one.
fn held(
    claimed: &Claimed,
    stored: Option<&Bytes>,
    now: Ticks,
) -> Result<Option<MessageState>, QueueError> {
    let is_held = |state: &MessageState| {
        Receipt::of(claimed.receipt.place, state) == claimed.receipt && claimed.is_of(state.id)
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
) -> Result<(Vec<Write>, Deleted), Miss> {
    let Some((Some(count), rows)) = current.split_first() else {
        return Err(Miss::Gone);
    };
    let (states, followers) = rows.split_at_checked(claimed.len()).unwrap_or((rows, &[]));
    let (mut followers, mut promoted) = (followers.iter(), Vec::new());
    let count = keys::decode_number(count, "count of a queue")?;
    let mut writes = Vec::with_capacity(claimed.len() * 2 + 1);
    let (mut seen, mut deleted) = (HashSet::new(), Vec::with_capacity(claimed.len()));
    for (claimed, stored) in claimed.iter().zip(states) {
        let place = claimed.receipt.place;
        // The second of two equal receipts finds nothing, as it would in a call of its own.
        let held = held(claimed, stored.as_ref(), now)?.filter(|_| seen.insert(place));
        let follower = if claimed.receipt.is_in_group { followers.next() } else { None };
        deleted.push(held.is_some());
        if let Some(state) = held {
            writes.push(Write::Delete { key: keys::state(id, place) });
            writes.push(Write::Delete { key: keys::body(id, place.sequence) });
            if let Some(group) = state.group {
                let follower = follower.and_then(Option::as_ref);
                let (gone, writes) = ((place.sequence, group), &mut writes);
                promoted.extend(groups::succeed(id, gone, follower, now, writes)?);
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
) -> Result<(Vec<Write>, (Receipt, Standing)), Miss> {
    let [Some(_), stored, body] = current else {
        return Err(Miss::Gone);
    };
    let Some(state) = held(&update.claimed, stored.as_ref(), now)? else {
        let message_id = update.claimed.message_id.clone();
        return Err(Miss::Failed(QueueError::MessageNotFound(message_id)));
    };
    let old = update.claimed.receipt.place;
    let place = Place { visible_at: now.after(update.hidden_for), ..old };
    let state = MessageState { generation: state.generation.wrapping_add(1), ..state };
    // In this order: both may be the same key.
    let mut writes = vec![
        Write::Delete { key: keys::state(id, old) },
        Write::Put { key: keys::state(id, place), value: state.encode() },
    ];
    if let Some(payload) = &update.payload {
        let body = body.as_ref().ok_or_else(|| QueueError::corrupt("a message without a body"))?;
        let body = Body { payload: payload.clone(), ..Body::decode(body)? };
        writes.push(Write::Put { key: keys::body(id, old.sequence), value: body.encode() });
    }
    let standing = Standing { place, expires_at: state.expires_at };
    Ok((writes, (Receipt::of(place, &state), standing)))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const ID: QueueId = QueueId(3);

    fn at(ticks: u64) -> Ticks {
        Ticks::new(ticks).expect("in range")
    }

    fn state() -> MessageState {
        MessageState {
            id: Uuid::from_u128(1),
            inserted_at: at(1),
            expires_at: Some(at(100)),
            generation: 7,
            dequeue_count: 2,
            group: None,
        }
    }

    fn claimed(id: u128, generation: u32) -> Claimed {
        let place = Place { visible_at: at(30), sequence: 5 };
        let message_id = Uuid::from_u128(id).to_string();
        Claimed { message_id, receipt: Receipt { place, generation, is_in_group: false } }
    }

    fn deleted(claimed: &[Claimed], now: u64) -> (usize, Vec<bool>) {
        let mut current = vec![Some(keys::encode_number(9))];
        current.extend(claimed.iter().map(|_| Some(state().encode())));
        let (writes, (deleted, _)) =
            decide_delete(ID, at(now), claimed, &current).expect("the queue is there");
        (writes.len(), deleted)
    }

    #[test]
    fn only_the_last_receipt_of_the_right_message_deletes_and_only_once() {
        assert_eq!(deleted(&[claimed(1, 7)], 20), (3, vec![true]), "hidden");
        assert_eq!(deleted(&[claimed(1, 7)], 50), (3, vec![true]), "lapsed");
        assert_eq!(deleted(&[claimed(1, 7)], 100), (0, vec![false]), "expired");
        assert_eq!(deleted(&[claimed(1, 6)], 20), (0, vec![false]), "superseded");
        assert_eq!(deleted(&[claimed(2, 7)], 20), (0, vec![false]), "of another message");
        let twice = [claimed(1, 7), claimed(1, 7)];
        assert_eq!(deleted(&twice, 20), (3, vec![true, false]));
        let gone = decide_delete(ID, at(20), &twice, &[None, None, None]);
        assert!(matches!(gone, Err(Miss::Gone)));
    }

    #[test]
    fn an_update_gives_a_new_receipt_and_keeps_the_count_of_deliveries() {
        let update = Update { claimed: claimed(1, 7), hidden_for: Duration::ZERO, payload: None };
        let current = [Some(keys::encode_number(9)), Some(state().encode()), None];

        let (writes, (receipt, standing)) =
            decide_update(ID, at(30), &update, &current).expect("held");

        let place = Place { visible_at: at(30), sequence: 5 };
        assert_eq!(receipt, Receipt { place, generation: 8, is_in_group: false });
        assert_eq!(standing, Standing { place, expires_at: Some(at(100)) });
        let new = MessageState { generation: 8, ..state() };
        let put = Write::Put { key: keys::state(ID, place), value: new.encode() };
        assert_eq!(writes.last(), Some(&put), "after the delete of the very same key");
    }
}
