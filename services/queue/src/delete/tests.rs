//! Tests of the decision of a delete.

use bytes::Bytes;
use uuid::Uuid;

use super::*;
use crate::{
    head::{OwnerId, QueueHead},
    receipt::Receipt,
    slot::Slot,
    stored::MessageState,
};

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
        nonce: 70,
        dequeue_count: 2,
        group: None,
    }
}

fn claimed(id: u128, generation: u32) -> Claimed {
    let slot = Slot { visible_at: at(30), sequence: 5 };
    let message_id = Uuid::from_u128(id).to_string();
    Claimed { message_id, receipt: Receipt { slot, generation, nonce: 70, is_in_group: false } }
}

/// The decision where every slot holds the message.
fn decided(
    claimed: &[Claimed],
    now: u64,
    head: Option<QueueHead>,
) -> Result<(usize, Vec<bool>), AttemptError> {
    let owned = QueueHead::empty(Some(OwnerId(1)), 1);
    let fence = crate::fixture::fence(ID, &owned);
    let (mut spec, fenced) = fence.begin();
    let messages = claimed.iter().map(|claimed| DeletedMessage::read(ID, claimed, &mut spec));
    let messages = messages.collect();
    let plan = DeletePlan { id: ID, now: at(now), head: fenced, messages };
    let values: Vec<Option<Bytes>> = [head.map(|head| head.encode())]
        .into_iter()
        .chain(spec.reads.keys().iter().skip(1).map(|_| Some(state().encode())))
        .collect();
    let (writes, (deleted, _)) = plan.decide(&Reads::new(&spec.reads, &values))?;
    Ok((writes.len(), deleted))
}

fn deleted(claimed: &[Claimed], now: u64) -> (usize, Vec<bool>) {
    let head = QueueHead::empty(Some(OwnerId(1)), 1).with_added(9);
    decided(claimed, now, Some(head)).expect("the queue is owned")
}

#[test]
fn only_the_valid_receipt_of_a_message_deletes_it_and_only_once() {
    assert_eq!(deleted(&[claimed(1, 7)], 20), (3, vec![true]), "invisible");
    assert_eq!(deleted(&[claimed(1, 7)], 50), (3, vec![true]), "visible again");
    assert_eq!(deleted(&[claimed(1, 7)], 100), (0, vec![false]), "expired");
    assert_eq!(deleted(&[claimed(1, 6)], 20), (0, vec![false]), "superseded");
    assert_eq!(deleted(&[claimed(2, 7)], 20), (0, vec![false]), "of another message");
    let twice = [claimed(1, 7), claimed(1, 7)];
    assert_eq!(deleted(&twice, 20), (3, vec![true, false]));
}

#[test]
fn rejects_a_delete_by_a_former_owner_of_the_queue() {
    let head = QueueHead::empty(Some(OwnerId(1)), 1).with_added(9);
    let acquired = head.acquired_by(OwnerId(2)).expect("a token is left");
    for head in [None, Some(acquired)] {
        let rejected = decided(&[claimed(1, 7)], 20, head);
        assert!(matches!(rejected, Err(AttemptError::Fenced(_))), "{rejected:?}");
    }
}
