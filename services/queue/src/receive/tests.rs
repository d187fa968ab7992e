use trestle_service::clock::Ticks;
use uuid::Uuid;

use super::*;
use crate::stored::Payload;

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
    let plan = ReceivePlan {
        id: ID,
        now: at(20),
        visible_at: at(50),
        dequeue_count_max: Some(3),
        slots: vec![slot],
    };
    let current = [state.map(|state| state.encode()), body.map(|body| body.encode())];
    let (writes, mut found) = plan.decide(&current);
    (writes, found.remove(0))
}

#[test]
fn a_delivery_moves_the_state_and_counts() {
    let (writes, found) = found(Some(state(99, 2)), Some(body()));

    let hidden = Slot { visible_at: at(50), sequence: 5 };
    let new = MessageState { generation: 8, dequeue_count: 3, ..state(99, 2) };
    let old = Slot { visible_at: at(10), sequence: 5 };
    let delivered = Delivered { slot: hidden, state: new, body: body() };
    assert_eq!(found, Found::Delivered(Box::new(delivered)));
    assert_eq!(
        writes,
        [
            Write::Delete { key: keys::state(ID, old) },
            Write::Put { key: keys::state(ID, hidden), value: new.encode() },
        ]
    );
}

#[test]
fn what_cannot_be_delivered_is_left_as_it_is() {
    assert_eq!(found(None, None), (Vec::new(), Found::Nothing));
    assert_eq!(found(None, Some(body())), (Vec::new(), Found::Nothing));
    assert_eq!(found(Some(state(20, 0)), Some(body())), (Vec::new(), Found::Expired));
    assert_eq!(found(Some(state(99, 3)), Some(body())), (Vec::new(), Found::Exhausted));
    assert_eq!(found(Some(state(99, 0)), None), (Vec::new(), Found::Unreadable));
}

#[test]
fn only_what_is_expired_is_removed_and_counted_off() {
    let slot = |sequence| Slot { visible_at: at(10), sequence };
    let current = [
        Some(keys::encode_number(5)),
        Some(state(20, 0).encode()),
        None,
        Some(state(21, 0).encode()),
        None,
        None,
        None,
    ];

    let slots = [slot(1), slot(2), slot(3)];
    let (writes, (empty, _)) = decide_removal(ID, at(20), &slots, &current).expect("readable");

    assert_eq!(empty, [slot(1), slot(3)]);
    assert_eq!(
        writes,
        [
            Write::Delete { key: keys::state(ID, slot(1)) },
            Write::Delete { key: keys::body(ID, 1) },
            Write::Put { key: keys::count(ID), value: keys::encode_number(4) },
        ]
    );
}

#[test]
fn nothing_is_removed_from_a_queue_that_is_no_more() {
    let slot = Slot { visible_at: at(10), sequence: 1 };
    let current = [None, Some(state(20, 0).encode()), None];

    let (writes, (empty, _)) = decide_removal(ID, at(20), &[slot], &current).expect("readable");

    assert_eq!((writes, empty), (Vec::new(), vec![slot]));
}
