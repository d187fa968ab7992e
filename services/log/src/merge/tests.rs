use trestle_model::time::Ticks;

use super::*;
use crate::{
    fixture::{LogFixture, SECOND, START, record},
    stream::SegmentId,
};

/// A segment of a day, a level and a size.
fn segment(id: u64, day: u64, level: u32, bytes: u64) -> SegmentRecord {
    SegmentRecord {
        id: SegmentId(id),
        path: id.to_string(),
        bytes,
        records: 1,
        min_time: day * DAY_NANOS + id,
        max_time: day * DAY_NANOS + id,
        min_sequence: id,
        max_sequence: id,
        level,
        created_at: Ticks::MIN,
        checksums: bytes::Bytes::new(),
        damage: String::new(),
    }
}

fn chosen(segments: Vec<SegmentRecord>) -> Vec<u64> {
    choose(segments).unwrap_or_default().iter().map(|segment| segment.id.0).collect()
}

#[test]
fn small_segments_of_one_day_and_level_are_merged_once_there_are_enough() {
    let many = |count: u64, day, level| -> Vec<_> {
        (0..count).map(|id| segment(day * 100 + id, day, level, 1000)).collect()
    };
    assert_eq!(chosen(many(7, 1, 0)), [0; 0]);
    assert_eq!(chosen(many(8, 1, 0)), (100..108).collect::<Vec<_>>());
    assert_eq!(chosen(many(20, 1, 0)).len(), INPUTS_MAX);
    // Not across days or levels.
    assert_eq!(chosen([many(7, 1, 0), many(7, 2, 0)].concat()), [0; 0]);
    assert_eq!(chosen([many(7, 1, 0), many(7, 1, 1)].concat()), [0; 0]);
    // Two that fill a segment are enough; full ones are left alone.
    let half = |id| segment(id, 1, 0, SMALL_BYTES / 2);
    assert_eq!(chosen(vec![half(1), half(2)]), [1, 2]);
    assert_eq!(chosen((0..20).map(|id| segment(id, 1, 0, SMALL_BYTES)).collect()), [0; 0]);
    let large = |id| segment(id, 1, 0, SMALL_BYTES - 1);
    let ids = chosen((0..20).map(large).collect());
    assert!(ids.len() as u64 * (SMALL_BYTES - 1) <= INPUT_BYTES_MAX && ids.len() >= 2, "{ids:?}");
}

#[tokio::test]
async fn merged_segments_have_the_same_records_and_replace_their_inputs_at_once() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    for round in 0..9_u64 {
        let records: Vec<_> = (0..50)
            .map(|number| record((number * 9 + round) * SECOND / 10, &format!("{round}-{number}")))
            .collect();
        fixture.append(&stream, &records).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    let before = fixture.read_all(&stream).await.unwrap();
    assert_eq!(before.len(), 450);
    let snapshot = fixture.head(stream.record.id).await.unwrap().snapshot;
    let (_, mut running) = fixture.logs.read(&stream, crate::fixture::plan()).await.unwrap();

    assert!(fixture.logs.merge_small(&stream).await.unwrap());

    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.segments, head.segment_records, head.snapshot), (1, 450, snapshot + 1));
    let page = fixture.logs.segments(&stream, 0..u64::MAX, 10, "").await.unwrap();
    assert_eq!(page.segments[0].level, 1);
    assert_eq!((page.segments[0].min_time, page.segments[0].min_sequence), (START, 0));
    assert_eq!(fixture.read_all(&stream).await.unwrap(), before);
    assert!(!fixture.logs.merge_small(&stream).await.unwrap());

    // A read that began before goes on with the inputs, which are deleted when it has ended.
    fixture.sweep().await;
    let mut count = 0;
    while let Some(rows) = running.next(100, usize::MAX).await.unwrap() {
        count += rows.len();
    }
    assert_eq!(count, 450);
    assert_eq!(fixture.objects().await.len(), 10);
    fixture.advance(trestle_model::read_grace::READ_GRACE + std::time::Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.objects().await.len(), 1);
    assert_eq!(fixture.read_all(&stream).await.unwrap(), before);
}
