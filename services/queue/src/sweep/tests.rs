//! Tests of the decisions of the sweeper.

use std::time::Duration;

use trestle_kv::{ChangeSpec, Entry, Reads, Scan, Write, after_key};
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::{
    deduplication::{ScheduledRemoval, decide_removal},
    deleted::decide_sweep,
    expired::{Examined, sort_out},
    *,
};
use crate::{
    deduplication::DeduplicationRecord,
    deleted_range::{DeletedRange, QueuePart},
    keys::{self, QueueId},
    slot::Slot,
    stored::MessageState,
};

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
        nonce: 1,
        dequeue_count: 0,
        group: None,
    };
    Entry { key: keys::state(ID, slot), value: state.encode() }
}

fn range(resume: Bytes) -> DeletedRange {
    DeletedRange { deleted_at: at(1), resume }
}

#[test]
fn a_step_removes_scanned_rows_and_stores_where_to_continue() {
    let start = keys::part_span(ID, QueuePart::States).start;
    let entry = entry(slot(1), None);
    let row = entry.key.clone();
    let scan = Scan { entries: vec![entry], more: true };

    let writes = decide_sweep((ID, QueuePart::States), &range(start), &scan, false);

    let key = keys::deleted(ID, QueuePart::States);
    let value = range(after_key(&row).into()).encode();
    assert_eq!(writes.as_slice(), [Write::Delete { key: row }, Write::Put { key, value }]);
}

#[test]
fn drops_an_empty_range_only_after_the_grace_period() {
    let swept = range(keys::state(ID, slot(1)));
    let nothing = Scan { entries: Vec::new(), more: false };
    let writes = |is_over| decide_sweep((ID, QueuePart::States), &swept, &nothing, is_over);

    assert_eq!(writes(false).as_slice(), []);
    let key = keys::deleted(ID, QueuePart::States);
    assert_eq!(writes(true).as_slice(), [Write::Delete { key }]);
}

#[test]
fn expired_messages_are_separated_from_the_others() {
    let entries = vec![
        entry(slot(1), Some(at(20))),
        entry(slot(2), Some(at(50))),
        entry(slot(3), None),
        entry(slot(4), Some(at(40))),
        Entry { value: Bytes::from_static(b"?"), ..entry(slot(5), None) },
    ];

    let examined = sort_out(&entries, at(20)).expect("readable");

    let expected = Examined { expired: vec![slot(1)], next: Some(at(40)), unreadable: 1 };
    assert_eq!(examined, expected);
}

#[test]
fn a_scheduled_removal_removes_only_an_expired_record() {
    let record = |until| DeduplicationRecord { until: at(until), sent: Vec::new() }.encode();
    let key = |text: &str| keys::deduplication(ID, keys::IdKind::Request, text);
    let record_keys: Vec<_> = ["a", "b", "c", "d"].map(key).into();
    let mut spec = ChangeSpec::new(keys::queue_domain(ID));
    let scheduled = record_keys.iter().map(|key| ScheduledRemoval {
        expiry_key: keys::deduplication_expiry(at(10), key),
        record: spec.read(key.clone()),
    });
    let scheduled: Vec<_> = scheduled.collect();
    let damaged = Bytes::from_static(b"?");
    let values = [Some(record(10)), Some(record(99)), None, Some(damaged)];

    let reads = Reads::new(&spec.reads, &values);
    let (writes, unreadable) = decide_removal(at(20), &scheduled, &reads);

    let delete = |key: &Bytes| Write::Delete { key: key.clone() };
    let rest = scheduled[1..].iter().map(|removal| delete(&removal.expiry_key));
    let first = [delete(&scheduled[0].expiry_key), delete(&record_keys[0])];
    let expected: Vec<_> = first.into_iter().chain(rest).collect();
    assert_eq!(writes.as_slice(), expected, "b was renewed, and d cannot be read");
    assert_eq!(unreadable, 1);
}

mod damage;
mod expiry;
