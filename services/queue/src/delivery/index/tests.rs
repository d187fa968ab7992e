//! Tests of the index of slots.

use proptest::prelude::*;

use super::*;

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn slot(ticks: u64, sequence: u64) -> Slot {
    Slot { visible_at: at(ticks), sequence }
}

/// An index that has read an empty store.
fn complete() -> Index {
    let mut index = Index::new(Cursor::START);
    index.begin_load();
    index.end_load(&[], false);
    index
}

#[test]
fn slots_are_claimed_in_order_and_only_when_due() {
    let mut index = complete();
    for (ticks, sequence) in [(5, 1), (3, 2), (3, 1), (9, 3)] {
        index.insert(slot(ticks, sequence));
    }

    assert_eq!(index.claim(2, at(5)), [slot(3, 1), slot(3, 2)]);
    assert_eq!(index.claim(9, at(5)), [slot(5, 1)]);
    assert_eq!(index.claim(9, at(5)), []);
    assert_eq!(index.next_event(), Some(at(9)));

    index.give_back(&[slot(3, 2)]);
    assert_eq!(index.claim(9, at(9)), [slot(3, 2), slot(9, 3)]);
}

#[test]
fn keeps_slots_that_are_inserted_during_a_load() {
    let mut index = Index::new(Cursor::START);
    index.insert(slot(1, 1));
    assert_eq!(index.look(None, 9, at(9)), [], "the store is not read yet");

    assert_eq!(index.begin_load(), Some(Slot::FIRST));
    index.insert(slot(4, 4));
    index.insert(slot(8, 8));
    index.end_load(&[slot(1, 1), slot(5, 5)], true);

    assert_eq!(index.look(None, 9, at(9)), [slot(1, 1), slot(4, 4), slot(5, 5)]);
    assert_eq!(index.begin_load(), Some(slot(5, 6)));
    index.end_load(&[slot(8, 8)], false);
    assert_eq!(index.look(Some(slot(4, 4)), 9, at(9)), [slot(5, 5), slot(8, 8)]);
    assert_eq!(index.begin_load(), None);
}

#[test]
fn a_failed_load_does_not_move_the_frontier() {
    let mut index = Index::new(Cursor::START);
    index.begin_load();
    index.insert(slot(4, 4));

    index.abort_load();

    assert!(!index.has_due(at(9)));
    assert!(index.ends_before(at(9)));
}

#[test]
fn a_full_index_moves_the_frontier_back() {
    let mut index = complete();
    let count = u64::try_from(SLOTS_MAX).expect("fits") + 1;
    for sequence in 0..count {
        index.insert(slot(1, sequence));
    }

    assert_eq!(index.free.len(), SLOTS_KEPT);
    let kept = u64::try_from(SLOTS_KEPT).expect("fits");
    assert_eq!(index.begin_load(), Some(slot(1, kept)));
}

#[test]
fn the_cursor_stays_before_stored_messages_and_writes_in_flight() {
    let mut index = complete();
    assert_eq!(index.cursor(at(50)).slot, slot(50, 0));

    let write = index.begin_write(slot(40, 7));
    assert_eq!(index.cursor(at(50)).slot, slot(40, 7));
    index.insert(slot(45, 7));
    index.end_write(write);
    assert_eq!(index.cursor(at(50)).slot, slot(45, 7));
    index.claim(1, at(50));
    assert_eq!(index.cursor(at(50)).slot, slot(45, 7), "claimed, not removed");
    index.drop_claimed(&[slot(45, 7)]);
    assert_eq!(index.cursor(at(50)).slot, slot(50, 0));
    index.insert(slot(90, 8));
    assert_eq!(index.cursor(at(50)).slot, slot(50, 0), "a later one hides nothing");
}

#[test]
fn an_index_without_a_load_keeps_its_cursor() {
    let cursor = Cursor { slot: slot(30, 3), sequence: 2 };
    assert_eq!(Index::new(cursor).cursor(at(50)), cursor);
}

#[derive(Debug, Clone)]
enum Step {
    Write(u64),
    Take(usize),
    Delete,
    BeginLoad,
    EndLoad(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..30_u64).prop_map(Step::Write),
        2 => (1..4_usize).prop_map(Step::Take),
        1 => Just(Step::Delete),
        2 => Just(Step::BeginLoad),
        3 => (0..5_usize).prop_map(Step::EndLoad),
    ]
}

proptest! {
    /// Whatever the order of writes and reads, the index has every slot that is stored before the frontier.
    #[test]
    fn no_stored_message_before_the_frontier_is_unknown(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let (mut index, mut stored) = (Index::new(Cursor::START), BTreeSet::new());
        let mut claimed = Vec::new();
        let mut reading: Option<(Slot, BTreeSet<Slot>)> = None;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Write(ticks) => {
                    let new = slot(ticks, u64::try_from(number).expect("fits"));
                    stored.insert(new);
                    index.insert(new);
                }
                Step::Take(max) => claimed.extend(index.claim(max, at(15))),
                Step::Delete => {
                    for slot in claimed.drain(..) {
                        stored.remove(&slot);
                        index.drop_claimed(&[slot]);
                    }
                }
                Step::BeginLoad if reading.is_none() => {
                    let start = index.begin_load();
                    reading = start.map(|start| (start, stored.clone()));
                }
                Step::BeginLoad => {}
                Step::EndLoad(rows) => {
                    if let Some((start, seen)) = reading.take() {
                        let all: Vec<_> = seen.range(start..).copied().collect();
                        let page: Vec<_> = all.iter().take(rows).copied().collect();
                        let more = page.len() < all.len();
                        index.end_load(&page, more);
                    }
                }
            }
            for slot in &stored {
                let is_indexed = index.free.contains(slot) || index.claimed.contains(slot);
                let behind = index.frontier.is_some_and(|frontier| *slot >= frontier);
                prop_assert!(is_indexed || behind, "{slot:?} after step {number}");
            }
        }
    }
}
