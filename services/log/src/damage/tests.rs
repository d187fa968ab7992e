use std::{sync::Arc, time::Duration};

use object_store::{ObjectStoreExt as _, path::Path};
use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use super::*;
use crate::{
    fixture::{LogFixture, SECOND, record, texts},
    unreadable::LEFT_OUT,
};

/// A stream with small segments, of which enough are there for merges without one.
async fn small_segments(fixture: &LogFixture, count: u64) -> Arc<OpenStream> {
    let stream = fixture.plain_stream().await;
    for number in 0..count {
        let records = [0, 1].map(|at| record((number * 2 + at) * SECOND, &number.to_string()));
        fixture.append(&stream, &records).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    stream
}

async fn listed(fixture: &LogFixture, stream: &OpenStream) -> Vec<SegmentRecord> {
    fixture.logs.segments(stream, 0..u64::MAX, 1000, "").await.unwrap().segments
}

/// Changes a byte of the object of a segment.
async fn damage(fixture: &LogFixture, segment: &SegmentRecord) {
    let (store, path) = (&fixture.logs.area.store, Path::from(segment.path.as_str()));
    let mut bytes = store.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
    bytes[100] ^= 1;
    store.put(&path, bytes.into()).await.unwrap();
}

#[tokio::test]
async fn one_damaged_segment_is_set_aside_and_the_others_are_merged() {
    let fixture = LogFixture::new();
    let stream = small_segments(&fixture, 12).await;
    let damaged = listed(&fixture, &stream).await[3].clone();
    damage(&fixture, &damaged).await;

    // As a process that has read nothing of it.
    let fixture = fixture.reopened();
    fixture.sweep().await;

    let after = listed(&fixture, &stream).await;
    assert_eq!(after.len(), 2, "eleven became one");
    let aside = after.iter().find(|it| it.id == damaged.id).unwrap();
    assert!(aside.damage.contains("a checksum does not match"), "{}", aside.damage);
    assert_eq!(fixture.head(stream.record.id).await.unwrap().damaged_segments, 1);
    assert_eq!(fixture.logs.totals().await.unwrap().damaged_segments, 1);
    assert!(fixture.read_all(&stream).await.is_err(), "nothing is left out silently");
}

#[tokio::test]
async fn a_damaged_segment_is_dropped_and_a_whole_one_is_not() {
    let fixture = LogFixture::new();
    let stream = small_segments(&fixture, 3).await;
    let segments = listed(&fixture, &stream).await;
    let (whole, damaged) = (&segments[0], &segments[1]);
    damage(&fixture, damaged).await;

    let verified = fixture.logs.verify_one(&stream, whole.id).await.unwrap();
    assert_eq!((verified.readable, verified.error.is_none()), (2, true));
    let verified = fixture.logs.verify_one(&stream, damaged.id).await.unwrap();
    assert!(matches!(verified.error, Some(LogError::Corrupt(_))), "{verified:?}");
    assert_eq!(verified.readable, 0);
    let kept = fixture.logs.drop_segment(&stream, whole.id).await.unwrap_err();
    assert!(kept.to_string().contains("must be a damaged segment"), "{kept}");
    let absent = fixture.logs.drop_segment(&stream, SegmentId(7)).await.unwrap_err();
    assert!(absent.to_string().contains("must be a segment of the stream"), "{absent}");

    fixture.logs.drop_segment(&stream, damaged.id).await.unwrap();

    assert_eq!(listed(&fixture, &stream).await.len(), 2);
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.segments, head.segment_records, head.damaged_segments), (2, 4, 0));
    let read = fixture.read_all(&stream).await.unwrap();
    assert_eq!(texts(&read), ["0", "0", "2", "2"]);
}

#[tokio::test]
async fn a_segment_whose_object_is_absent_is_set_aside_too() {
    let fixture = LogFixture::new();
    let stream = small_segments(&fixture, 10).await;
    let absent = listed(&fixture, &stream).await[0].clone();
    fixture.logs.area.store.delete(&Path::from(absent.path.as_str())).await.unwrap();

    let fixture = fixture.reopened();
    fixture.sweep().await;

    let after = listed(&fixture, &stream).await;
    assert_eq!(after.len(), 2);
    assert!(after.iter().any(|it| it.damage.contains("does not exist")), "{after:?}");
}

#[tokio::test]
async fn a_segment_that_the_store_cannot_read_now_is_left_out_for_an_hour() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = small_segments(&fixture, 3).await;
    let segments = listed(&fixture, &stream).await;
    let readable = || -> Vec<_> {
        fixture.logs.readable(segments.clone()).into_iter().map(|it| it.id).collect()
    };
    store.plan([ObjectFault::Failed]);

    let failure = LogError::Objects;
    let is_aside = fixture.logs.set_damaged_aside(&stream, &segments, failure).await.unwrap();

    assert!(is_aside);
    assert_eq!(readable(), [segments[1].id, segments[2].id]);
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!(head.damaged_segments, 0, "it is not damaged");
    fixture.advance(LEFT_OUT - Duration::from_secs(1));
    assert_eq!(readable().len(), 2);
    fixture.advance(Duration::from_secs(1));
    assert_eq!(readable().len(), 3);
}

#[tokio::test]
async fn a_failure_that_is_not_of_a_segment_leaves_none_out() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = small_segments(&fixture, 2).await;
    let segments = listed(&fixture, &stream).await;
    damage(&fixture, &segments[0]).await;
    for (failure, faults) in
        [(LogError::ShuttingDown, vec![]), (LogError::Objects, vec![ObjectFault::Failed; 100])]
    {
        store.plan(faults);
        let aside = fixture.logs.set_damaged_aside(&stream, &segments, failure.clone()).await;
        assert_eq!(aside.unwrap_err().to_string(), failure.to_string());
        assert_eq!(fixture.logs.readable(segments.clone()).len(), 2, "{failure}");
    }
    store.plan([]);
    let failure = LogError::corrupt("a merge");
    let whole = fixture.logs.set_damaged_aside(&stream, &segments[1..], failure).await;
    assert!(whole.unwrap_err().to_string().contains("a merge"), "every segment can be read");
}

#[tokio::test]
async fn a_damaged_segment_is_counted_once_and_dropped_once() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = small_segments(&fixture, 2).await;
    let segment = listed(&fixture, &stream).await[0].clone();
    // The record of the segment declares one more than the object has.
    let changed = SegmentRecord { records: 3, ..segment.clone() };
    for _ in 0..2 {
        let verified = fixture.logs.verify_segment(&stream, changed.clone()).await.unwrap();
        assert!(matches!(verified.error, Some(LogError::Corrupt(_))), "{verified:?}");
        assert_eq!(verified.readable, 2);
        assert_eq!(fixture.head(stream.record.id).await.unwrap().damaged_segments, 1);
    }
    damage(&fixture, &segment).await;
    store.plan([ObjectFault::Failed]);
    let unread = fixture.logs.drop_segment(&stream, segment.id).await.unwrap_err();
    assert!(matches!(unread, LogError::Objects), "{unread}");
    assert_eq!(listed(&fixture, &stream).await.len(), 2, "it may be whole");

    fixture.logs.drop_segment(&stream, segment.id).await.unwrap();

    let again = fixture.logs.drop_segment(&stream, segment.id).await.unwrap_err();
    assert!(again.to_string().contains("must be a segment of the stream"), "{again}");
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.segments, head.segment_records, head.damaged_segments), (1, 2, 0));
}
