use trestle_model::time::Ticks;

use super::*;

fn segment(id: u64, records: u64, bytes: u64) -> SegmentRecord {
    SegmentRecord {
        id: SegmentId(id),
        path: String::new(),
        bytes,
        records,
        min_time: 1,
        max_time: 1,
        min_sequence: 0,
        max_sequence: 0,
        level: 0,
        created_at: Ticks::MIN,
        checksums: Bytes::new(),
        damage: String::new(),
    }
}

const HEAD: Head = Head {
    next_sequence: 10,
    sealed_before: 2,
    unsealed_bytes: 80,
    unsealed_since: 1,
    snapshot: 7,
    segments: 3,
    segment_records: 30,
    segment_bytes: 300,
    damaged_segments: 1,
};

#[test]
fn a_change_counts_what_it_adds_and_removes() {
    let sealed = Some(SealedRange { from: 2, before: 6, bytes: 50 });
    let change = ManifestChange {
        sealed,
        added: vec![segment(1, 4, 40)],
        removed: vec![segment(2, 10, 100), segment(3, 5, 50)],
        ..ManifestChange::default()
    };

    let after = decide(HEAD, &change, 99).unwrap();

    assert_eq!(
        after,
        Head {
            next_sequence: 10,
            sealed_before: 6,
            unsealed_bytes: 30,
            unsealed_since: 99,
            snapshot: 8,
            segments: 2,
            segment_records: 19,
            segment_bytes: 190,
            damaged_segments: 1,
        }
    );
}

#[test]
fn an_expired_segment_does_not_count_until_it_is_restored() {
    let change = ManifestChange { expired: vec![segment(2, 10, 100)], ..Default::default() };
    let after = decide(HEAD, &change, 99).unwrap();
    assert_eq!((after.segments, after.segment_records, after.segment_bytes), (2, 20, 200));

    let restored = vec![ExpiredSegment { at: Ticks::MIN, segment: segment(2, 10, 100) }];
    let change = ManifestChange { restored, ..Default::default() };
    let again = decide(after, &change, 100).unwrap();
    assert_eq!((again.segments, again.segment_records, again.segment_bytes), (3, 30, 300));
    assert_eq!(again.snapshot, HEAD.snapshot + 2);
}

#[test]
fn a_seal_of_other_batches_than_the_first_changes_nothing() {
    for (from, before) in [(1, 6), (3, 6), (2, 11)] {
        let sealed = Some(SealedRange { from, before, bytes: 1 });
        let change = ManifestChange { sealed, ..ManifestChange::default() };
        assert_eq!(decide(HEAD, &change, 99), None, "{from} to {before}");
    }
}
