use std::sync::Arc;

use object_store::{ObjectStoreExt as _, path::Path};

use super::*;
use crate::fixture::{LogFixture, SECOND, record, texts};

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
