//! Tests of the decision of an update.

use trestle_kv::Write;
use uuid::Uuid;

use super::*;
use crate::head::{OwnerId, QueueHead};

const ID: QueueId = QueueId(3);

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

#[test]
fn an_update_gives_a_new_receipt_and_keeps_the_count_of_deliveries() {
    let state = MessageState {
        id: Uuid::from_u128(1),
        inserted_at: at(1),
        expires_at: Some(at(100)),
        generation: 7,
        nonce: 70,
        dequeue_count: 2,
        group: None,
    };
    let slot = Slot { visible_at: at(30), sequence: 5 };
    let receipt = Receipt { slot, generation: 7, nonce: 70, is_in_group: false };
    let claimed = Claimed { message_id: state.id.to_string(), receipt };
    let head = QueueHead::empty(Some(OwnerId(1)), 1).with_added(9);
    let (mut spec, fenced) = crate::fixture::fence(ID, &head).begin();
    let (stored, body) = (spec.read(keys::state(ID, slot)), spec.read(keys::body(ID, 5)));
    let update = Update { claimed, visibility_timeout: Duration::ZERO, payload: None };
    let plan =
        UpdatePlan { id: ID, now: at(30), head: fenced, state: stored, body, nonce: 80, update };
    let values = [Some(head.encode()), Some(state.encode()), None];

    let (writes, (receipt, entry)) =
        plan.decide(&Reads::new(&spec.reads, &values)).expect("a valid receipt");

    assert_eq!(receipt, Receipt { slot, generation: 8, nonce: 80, is_in_group: false });
    assert_eq!(entry, IndexEntry { slot, expires_at: Some(at(100)) });
    let new = MessageState { generation: 8, nonce: 80, ..state };
    let put = Write::Put { key: keys::state(ID, slot), value: new.encode() };
    assert_eq!(writes.as_slice().last(), Some(&put), "after the delete of the same key");
}
