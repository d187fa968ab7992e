//! Tests of the decision to remove expired messages.

use trestle_kv::Write;
use uuid::Uuid;

use super::*;
use crate::head::{OwnerId, QueueHead};

const ID: QueueId = QueueId(3);

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn slot(sequence: u64) -> Slot {
    Slot { visible_at: at(10), sequence }
}

fn state(expires_at: u64) -> MessageState {
    MessageState {
        id: Uuid::from_u128(1),
        inserted_at: at(1),
        expires_at: Some(at(expires_at)),
        generation: 7,
        nonce: 70,
        dequeue_count: 0,
        group: None,
    }
}

#[test]
fn removes_only_expired_messages_and_subtracts_them_from_the_count() {
    let head = QueueHead::empty(Some(OwnerId(1)), 1).with_added(5);
    let (mut spec, fenced) = crate::fixture::fence(ID, &head).begin();
    let slots = [1, 2, 3].map(|number| ExpiredSlot::read(ID, slot(number), &mut spec));
    let plan = ExpirePlan { id: ID, now: at(20), head: fenced, slots: slots.into() };
    let state = |expires_at| Some(state(expires_at).encode());
    let values = [Some(head.encode()), state(20), None, state(21), None, None, None];

    let (writes, (empty, _)) =
        plan.decide(&Reads::new(&spec.reads, &values)).expect("the queue is owned");

    assert_eq!(empty, [slot(1), slot(3)]);
    assert_eq!(
        writes.as_slice(),
        [
            Write::Delete { key: keys::state(ID, slot(1)) },
            Write::Delete { key: keys::body(ID, 1) },
            Write::Put { key: keys::head(ID), value: head.with_removed(1).encode() },
        ]
    );
}
