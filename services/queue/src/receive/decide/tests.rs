//! Tests of the decision of a receive.

use bytes::Bytes;
use trestle_kv::Write;
use uuid::Uuid;

use super::*;
use crate::{
    head::{OwnerId, QueueHead},
    stored::Payload,
};

const ID: QueueId = QueueId(3);

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn state(expires_at: u64, dequeue_count: u32) -> MessageState {
    MessageState {
        id: Uuid::from_u128(1),
        inserted_at: at(1),
        expires_at: Some(at(expires_at)),
        generation: 7,
        nonce: 70,
        dequeue_count,
        group: None,
    }
}

fn body() -> Body {
    let payload = Payload::Text(Bytes::from_static(b"work"));
    Body { inserted_at: at(1), origin: None, group: None, payload }
}

fn found(state: Option<MessageState>, body: Option<Body>) -> (Vec<Write>, Found) {
    let slot = Slot { visible_at: at(10), sequence: 5 };
    let head = QueueHead::empty(Some(OwnerId(1)), 1).with_added(1);
    let (mut spec, fenced) = crate::fixture::fence(ID, &head).begin();
    let plan = ReceivePlan {
        id: ID,
        now: at(20),
        head: fenced,
        visible_at: at(50),
        dequeue_count_max: Some(3),
        slots: vec![ClaimedSlot::read(ID, slot, &mut spec)],
        nonces: vec![80],
    };
    let (state, body) = (state.map(|state| state.encode()), body.map(|body| body.encode()));
    let values = [Some(head.encode()), state, body];
    let (writes, mut found) =
        plan.decide(&Reads::new(&spec.reads, &values)).expect("the queue is owned");
    (writes.as_slice().to_vec(), found.remove(0))
}

#[test]
fn a_delivery_moves_the_state_and_counts() {
    let (writes, found) = found(Some(state(99, 2)), Some(body()));

    let slot = Slot { visible_at: at(50), sequence: 5 };
    let new = MessageState { generation: 8, nonce: 80, dequeue_count: 3, ..state(99, 2) };
    let old = Slot { visible_at: at(10), sequence: 5 };
    let delivered = Delivered { slot, state: new, body: body() };
    assert_eq!(found, Found::Delivered(Box::new(delivered)));
    assert_eq!(
        writes,
        [
            Write::Delete { key: keys::state(ID, old) },
            Write::Put { key: keys::state(ID, slot), value: new.encode() },
        ]
    );
}

#[test]
fn writes_only_delivered_messages() {
    assert_eq!(found(None, None), (Vec::new(), Found::Nothing));
    assert_eq!(found(None, Some(body())), (Vec::new(), Found::Nothing));
    assert_eq!(found(Some(state(20, 0)), Some(body())), (Vec::new(), Found::Expired));
    assert_eq!(found(Some(state(99, 3)), Some(body())), (Vec::new(), Found::Exhausted));
    assert_eq!(found(Some(state(99, 0)), None), (Vec::new(), Found::Unreadable));
}
