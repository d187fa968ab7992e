//! Tests of ordering groups.

use trestle_kv::Write;
use uuid::Uuid;

use super::*;
use crate::stored::MessageState;

const ID: QueueId = QueueId(3);
const GROUP: GroupId = GroupId(9);

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn next_in_group(visible_at: u64) -> NextInGroup {
    let state = MessageState {
        id: Uuid::from_u128(1),
        inserted_at: at(1),
        expires_at: Some(at(100)),
        generation: 0,
        nonce: 1,
        dequeue_count: 0,
        group: Some(GROUP),
    };
    NextInGroup { slot: Slot { visible_at: at(visible_at), sequence: 8 }, state }
}

#[test]
fn the_next_message_becomes_visible_now_or_after_its_delay() {
    for (due, visible) in [(20, 50), (70, 70)] {
        let (waiting, mut writes) = (next_in_group(due), Writes::new());

        let promoted = promote_next(ID, (5, GROUP), Some(&waiting.encode()), at(50), &mut writes);

        let slot = Slot { visible_at: at(visible), sequence: 8 };
        let expected = IndexEntry { slot, expires_at: Some(at(100)) };
        assert_eq!(promoted.expect("readable"), Some(expected));
        let put = Write::Put { key: keys::state(ID, slot), value: waiting.state.encode() };
        assert_eq!(writes.as_slice(), [Write::Delete { key: keys::next_in_group(ID, 5) }, put]);
    }
}

#[test]
fn deletes_a_group_without_messages() {
    let mut writes = Writes::new();
    assert_eq!(promote_next(ID, (5, GROUP), None, at(50), &mut writes).expect("decided"), None);
    assert_eq!(writes.as_slice(), [Write::Delete { key: keys::group(ID, GROUP) }]);
}

#[test]
fn next_in_group_rows_survive_encoding_and_malformed_ones_are_rejected() {
    let value = next_in_group(7).encode();
    assert_eq!(NextInGroup::decode(&value).ok(), Some(next_in_group(7)));
    for end in 0..value.len() {
        assert!(NextInGroup::decode(&value[..end]).is_err(), "{end}");
    }
    assert!(NextInGroup::decode(&[&value[..], b"x"].concat()).is_err());
}
