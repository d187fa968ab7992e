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
    let slot = Slot { visible_at: at(30), sequence: 5 };
    let message_id = Uuid::from_u128(id).to_string();
    Claimed { message_id, receipt: Receipt { slot, generation, is_in_group: false } }
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
    assert!(matches!(gone, Err(AttemptError::QueueReplaced)));
}

#[test]
fn an_update_gives_a_new_receipt_and_keeps_the_count_of_deliveries() {
    let update =
        Update { claimed: claimed(1, 7), visibility_timeout: Duration::ZERO, payload: None };
    let current = [Some(keys::encode_number(9)), Some(state().encode()), None];

    let (writes, (receipt, entry)) = decide_update(ID, at(30), &update, &current).expect("held");

    let slot = Slot { visible_at: at(30), sequence: 5 };
    assert_eq!(receipt, Receipt { slot, generation: 8, is_in_group: false });
    assert_eq!(entry, IndexEntry { slot, expires_at: Some(at(100)) });
    let new = MessageState { generation: 8, ..state() };
    let put = Write::Put { key: keys::state(ID, slot), value: new.encode() };
    assert_eq!(writes.last(), Some(&put), "after the delete of the very same key");
}
