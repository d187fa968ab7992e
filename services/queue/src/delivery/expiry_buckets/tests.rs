//! Tests of expiry buckets.

use super::*;

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn slot(ticks: u64) -> Slot {
    Slot { visible_at: at(ticks), sequence: 0 }
}

fn entry(ticks: u64, expires_at: u64) -> IndexEntry {
    IndexEntry { slot: slot(ticks), expires_at: Some(at(expires_at)) }
}

/// Buckets from 0, 10 and 20 on, which expire from 100, 50 and 70 on.
fn buckets() -> ExpiryBuckets {
    let mut buckets = ExpiryBuckets::default();
    assert_eq!(buckets.due(at(0)), [(Slot::FIRST, None)], "no bucket was scanned");
    buckets.begin_scan(Slot::FIRST);
    buckets.cut(Slot::FIRST, slot(10), at(100));
    buckets.cut(slot(10), slot(20), at(50));
    buckets.end_scan(slot(20), at(70));
    buckets
}

#[test]
fn only_expired_buckets_are_due() {
    let mut buckets = buckets();

    assert_eq!(buckets.due(at(49)), []);
    assert_eq!(buckets.due(at(50)), [(slot(10), Some(slot(20)))]);
    let second = (slot(10), Some(slot(20)));
    let all = [second, (slot(20), None), (Slot::FIRST, Some(slot(10)))];
    assert_eq!(buckets.due(at(100)), all);

    buckets.begin_scan(slot(10));
    buckets.end_scan(slot(10), at(60));
    assert_eq!(buckets.due(at(59)), []);
    buckets.begin_scan(slot(20));
    buckets.end_scan(slot(20), Ticks::MAX);
    assert_eq!(buckets.due(at(99)), [second]);
}

#[test]
fn a_write_lowers_the_expiration_of_its_bucket() {
    let mut buckets = buckets();

    buckets.record(&entry(15, 30));
    buckets.record(&entry(12, 40));
    buckets.record(&entry(900, 45));
    buckets.record(&IndexEntry { slot: slot(1), expires_at: None });

    assert_eq!(buckets.due(at(29)), []);
    assert_eq!(buckets.due(at(30)), [(slot(10), Some(slot(20)))]);
    assert_eq!(buckets.due(at(45)), [(slot(10), Some(slot(20))), (slot(20), None)]);
}

#[test]
fn keeps_an_expiration_that_is_lowered_during_a_scan() {
    let mut buckets = buckets();
    buckets.begin_scan(slot(20));
    buckets.record(&entry(35, 60));
    buckets.cut(slot(20), slot(30), at(80));
    buckets.record(&entry(36, 65));
    buckets.end_scan(slot(30), Ticks::MAX);

    let both = [(slot(20), Some(slot(30))), (slot(30), None)];
    assert_eq!(buckets.due(at(60))[1..], both, "it may lie on either side of the cut");
    buckets.begin_scan(slot(30));
    buckets.end_scan(slot(30), at(65));
    assert_eq!(buckets.due(at(64)).len(), 2);
}

#[test]
fn merges_an_empty_bucket_with_the_one_before() {
    let mut buckets = buckets();
    buckets.begin_scan(slot(20));
    buckets.record(&entry(25, 90));

    buckets.join(slot(20));
    buckets.begin_scan(Slot::FIRST);
    buckets.join(Slot::FIRST);

    assert_eq!(buckets.due(at(50)), [(slot(10), None)]);
    buckets.begin_scan(slot(10));
    assert_eq!(buckets.due(at(1000)), [], "{buckets:?}");
    buckets.record(&entry(25, 90));
    assert_eq!(buckets.due(at(90)), [(slot(10), None)]);
}

#[test]
fn a_cancelled_scan_resumes_where_it_stopped() {
    let mut buckets = buckets();
    buckets.begin_scan(slot(20));
    buckets.cut(slot(20), slot(30), at(80));

    buckets.abandon_scan(slot(30));

    assert_eq!(buckets.due(at(0)), [(slot(30), None)]);
}

#[test]
fn removes_buckets_before_the_cursor() {
    let mut buckets = buckets();

    buckets.begin_at(slot(15));
    let rest = [(Slot::FIRST, Some(slot(20))), (slot(20), None)];
    assert_eq!(buckets.due(at(100)), rest, "the queue has come half-way into the second");
    buckets.begin_at(slot(40));
    assert_eq!(buckets.due(at(100)), [(Slot::FIRST, None)]);
    buckets.record(&entry(1, 10));
    assert_eq!(buckets.due(at(10)), [(Slot::FIRST, None)]);
}

#[test]
fn the_number_of_buckets_is_bounded() {
    let mut buckets = ExpiryBuckets::default();
    buckets.begin_scan(Slot::FIRST);
    let mut first = Slot::FIRST;
    for end in 1..=200_000 {
        buckets.cut(first, slot(end), at(end));
        first = slot(end);
        if end % 100 == 0 {
            buckets.end_scan(first, Ticks::MAX);
            assert!(buckets.buckets.len() <= BUCKETS_MAX);
        }
    }

    let mut due = buckets.due(at(150_000));
    due.sort();
    let (first, last) = (due.first().expect("due"), due.last().expect("due"));
    assert_eq!(first.0, Slot::FIRST);
    assert!(last.1 >= Some(slot(150_000)) && last.0 <= slot(150_000), "{last:?}");
    assert!(due.iter().zip(due.iter().skip(1)).all(|(a, b)| a.1 == Some(b.0)), "without a gap");
}
