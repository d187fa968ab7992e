//! Tests of the decisions of the sweeper.

use uuid::Uuid;

use super::*;

const ID: QueueId = QueueId(5);

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn slot(sequence: u64) -> Slot {
    Slot { visible_at: at(10), sequence }
}

fn entry(slot: Slot, expires_at: Option<Ticks>) -> Entry {
    let state = MessageState {
        id: Uuid::nil(),
        inserted_at: at(1),
        expires_at,
        generation: 0,
        dequeue_count: 0,
        group: None,
    };
    Entry { key: keys::state(ID, slot), value: state.encode() }
}

fn dead(resume: Bytes) -> DeletedRange {
    DeletedRange { deleted_at: at(1), resume }
}

#[test]
fn a_step_removes_what_it_found_and_notes_where_to_go_on() {
    let start = keys::part_span(ID, QueuePart::States).start;
    let entry = entry(slot(1), None);
    let row = entry.key.clone();
    let scan = Scan { entries: vec![entry], more: true };

    let writes = decide_sweep(ID, QueuePart::States, &dead(start), &scan, false);

    let key = keys::deleted(ID, QueuePart::States);
    let progress = dead(after_key(&row).into()).encode();
    assert_eq!(writes, [Write::Delete { key: row }, Write::Put { key, value: progress }]);
}

#[test]
fn an_empty_range_is_forgotten_only_after_the_grace() {
    let swept = dead(keys::state(ID, slot(1)));
    let nothing = Scan { entries: Vec::new(), more: false };

    assert_eq!(decide_sweep(ID, QueuePart::States, &swept, &nothing, false), []);
    let key = keys::deleted(ID, QueuePart::States);
    let forget = [Write::Delete { key }];
    assert_eq!(decide_sweep(ID, QueuePart::States, &swept, &nothing, true), forget);
}

#[test]
fn what_is_over_is_told_from_what_will_be() {
    let entries = vec![
        entry(slot(1), Some(at(20))),
        entry(slot(2), Some(at(50))),
        entry(slot(3), None),
        entry(slot(4), Some(at(40))),
        Entry { value: Bytes::from_static(b"?"), ..entry(slot(5), None) },
    ];

    let sorted = sort_out(&entries, at(20)).expect("readable");

    let expected = Sorted { expired: vec![slot(1)], next: Some(at(40)), unreadable: 1 };
    assert_eq!(sorted, expected);
}

#[test]
fn a_mark_goes_and_takes_along_only_what_is_over() {
    let memory = |until| {
        crate::deduplication::DeduplicationRecord { until: at(until), sent: Vec::new() }.encode()
    };
    let key = |text: &str| keys::deduplication(ID, keys::IdKind::Request, text);
    let memories: Vec<_> = ["a", "b", "c", "d"].map(key).into();
    let marks: Vec<_> =
        memories.iter().map(|key| keys::deduplication_expiry(at(10), key)).collect();
    let damaged = Bytes::from_static(b"?");
    let current = [Some(memory(10)), Some(memory(99)), None, Some(damaged)];

    let (writes, unreadable) = decide_forget(at(20), &marks, &memories, &current);

    let delete = |key: &Bytes| Write::Delete { key: key.clone() };
    let rest = marks[1..].iter().map(delete);
    let expected: Vec<_> =
        [delete(&marks[0]), delete(&memories[0])].into_iter().chain(rest).collect();
    assert_eq!(writes, expected, "b was remembered anew, and nobody knows of d");
    assert_eq!(unreadable, 1);
}

mod damage;
mod expiry;
