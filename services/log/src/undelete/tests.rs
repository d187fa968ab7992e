use std::{pin::pin, time::Duration};

use trestle_kv::stepped::SteppedEngine;

use super::*;
use crate::{
    fixture::{LogFixture, SECOND, record, texts},
    layout::DAY_NANOS,
    stream::StreamSettings,
    streams::StreamSettingsChange,
};

const DAY: Duration = Duration::from_nanos(DAY_NANOS);
const DAY_SECONDS: i64 = 86_400;

fn with_retention(retention: Duration) -> StreamSettings {
    StreamSettings { retention: Some(retention), ..StreamSettings::default() }
}

/// A stream with a segment of each record.
async fn sealed(fixture: &LogFixture, retention: Duration, count: u64) -> Arc<OpenStream> {
    let stream = fixture.stream(with_retention(retention)).await;
    for number in 0..count {
        let record = record(number * SECOND, &number.to_string());
        fixture.append(&stream, &[record]).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    stream
}

/// The stream after a change of its retention.
async fn kept_for(
    fixture: &LogFixture,
    stream: &OpenStream,
    retention: Duration,
) -> Arc<OpenStream> {
    let change = StreamSettingsChange { retention: Some(Some(retention)), ..Default::default() };
    let streams = &fixture.logs.streams;
    streams.update(&stream.account, &stream.name, change).await.unwrap();
    fixture.logs.open(&stream.account, &stream.name).await.unwrap()
}

#[tokio::test]
async fn wall_clock_that_steps_ahead_removes_no_segment() {
    let fixture = LogFixture::new();
    let stream = sealed(&fixture, 7 * DAY, 3).await;

    fixture.step(8 * DAY_SECONDS);
    fixture.advance(Duration::from_secs(5));
    fixture.sweep().await;
    fixture.step(-8 * DAY_SECONDS);
    fixture.sweep().await;

    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.segments, head.segment_records), (3, 3));
    assert_eq!(fixture.count(StreamRow::Expired, stream.record.id).await, 0);
}

#[tokio::test]
async fn store_that_was_started_under_a_clock_far_ahead_keeps_its_records() {
    let fixture = LogFixture::new();
    fixture.step(-8 * DAY_SECONDS);
    let time_unix_nano = crate::fixture::START - 8 * DAY_NANOS;
    let stream = fixture.stream(with_retention(7 * DAY)).await;
    let now = trestle_proto::log::v1::Record { time_unix_nano, ..record(0, "now") };
    fixture.append(&stream, &[now]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();

    fixture.sweep().await;

    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["now"]);
}

#[tokio::test]
async fn removed_segments_are_restored_once_they_are_within_the_retention() {
    let fixture = LogFixture::new();
    let count = 3 + EXPIRED_AT_ONCE as u64;
    let stream = sealed(&fixture, DAY, count).await;
    let before = fixture.head(stream.record.id).await.unwrap();
    // A wrong clock, for as long as no operator notices.
    fixture.advance(2 * DAY);
    fixture.sweep().await;
    assert!(fixture.read_all(&stream).await.unwrap().is_empty());
    assert_eq!(fixture.head(stream.record.id).await.unwrap().segments, 0);

    let outcome = fixture.logs.undelete(&stream).await.unwrap();
    assert_eq!(outcome, UndeleteOutcome { expired_segments: count, ..Default::default() });
    let stream = kept_for(&fixture, &stream, 30 * DAY).await;
    fixture.advance(Duration::from_secs(23 * 3600));
    fixture.sweep().await;
    let outcome = fixture.logs.undelete(&stream).await.unwrap();

    let expected = UndeleteOutcome { segments: count, records: count, expired_segments: 0 };
    assert_eq!(outcome, expected);
    assert_eq!(fixture.logs.undelete(&stream).await.unwrap(), UndeleteOutcome::default());
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!(
        (head.segments, head.segment_records, head.segment_bytes),
        (before.segments, before.segment_records, before.segment_bytes)
    );
    fixture.sweep().await;
    assert_eq!(fixture.read_all(&stream).await.unwrap().len() as u64, count);
}

#[tokio::test]
async fn a_day_later_removed_segments_are_deleted() {
    let fixture = LogFixture::new();
    let stream = sealed(&fixture, DAY, 2).await;
    fixture.advance(2 * DAY);
    fixture.sweep().await;
    assert_eq!(fixture.objects().await.len(), 2);

    fixture.advance(DAY + Duration::from_secs(1));
    fixture.sweep().await;

    assert!(fixture.objects().await.is_empty());
    let stream = kept_for(&fixture, &stream, 30 * DAY).await;
    assert_eq!(fixture.logs.undelete(&stream).await.unwrap(), UndeleteOutcome::default());
    for row in [StreamRow::Expired, StreamRow::Retired] {
        assert_eq!(fixture.count(row, stream.record.id).await, 0);
    }
}

#[tokio::test]
async fn segments_that_an_undelete_restored_first_are_not_retired() {
    let fixture = LogFixture::new();
    let stream = sealed(&fixture, DAY, 1).await;
    fixture.advance(2 * DAY);
    fixture.sweep().await;
    let stream = kept_for(&fixture, &stream, 30 * DAY).await;
    fixture.advance(DAY + Duration::from_secs(1));
    let id = stream.record.id;
    let expired = fixture.logs.engine.scan(&keys::rows(StreamRow::Expired, id), STEP).await;
    let expired = ExpiredSegment::of_row(&expired.unwrap().entries[0]).unwrap();
    // The sweeper found the row, and the call restores it before the sweeper decides.
    assert_eq!(fixture.logs.undelete(&stream).await.unwrap().segments, 1);

    fixture.sweeper.retire_part(id, std::slice::from_ref(&expired)).await.unwrap();

    assert_eq!(fixture.count(StreamRow::Retired, id).await, 0);
    // And the other way round: what is retired is not restored.
    let restored = vec![expired];
    let change = ManifestChange { restored, ..ManifestChange::default() };
    assert_eq!(manifest::publish(&*fixture.logs.engine, id, change).await.unwrap(), None);
    assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_objects_of_removed_segments_are_deleted_with_their_stream() {
    let fixture = LogFixture::new();
    let stream = sealed(&fixture, DAY, 2).await;
    fixture.advance(2 * DAY);
    fixture.sweep().await;
    fixture.logs.delete(&stream.account, &stream.name).await.unwrap();

    fixture.advance(Duration::from_secs(3600));
    fixture.sweep().await;

    assert!(fixture.objects().await.is_empty());
    let undeleted = fixture.logs.undelete(&stream).await.unwrap();
    assert_eq!(undeleted, UndeleteOutcome::default());
}

#[tokio::test]
async fn a_damaged_segment_is_still_set_aside_once_it_is_restored() {
    let fixture = LogFixture::new();
    let stream = sealed(&fixture, DAY, 1).await;
    let id = stream.record.id;
    let damaged = async || fixture.head(id).await.unwrap().damaged_segments;
    let listed = fixture.logs.segments(&stream, 0..u64::MAX, 10, "").await.unwrap();
    let engine = &*fixture.logs.engine;
    manifest::set_aside(engine, id, &listed.segments[0], "a frame".to_owned()).await.unwrap();
    assert_eq!(damaged().await, 1);

    fixture.advance(2 * DAY);
    fixture.sweep().await;
    assert_eq!(damaged().await, 0);
    let stream = kept_for(&fixture, &stream, 30 * DAY).await;
    assert_eq!(fixture.logs.undelete(&stream).await.unwrap().segments, 1);

    assert_eq!(damaged().await, 1);
    let listed = fixture.logs.segments(&stream, 0..u64::MAX, 10, "").await.unwrap();
    assert_eq!(listed.segments[0].damage, "a frame");
}

#[tokio::test]
async fn segments_that_expire_again_are_restored_again() {
    let fixture = LogFixture::new();
    let mut stream = sealed(&fixture, DAY, 3).await;
    let before = fixture.head(stream.record.id).await.unwrap();
    for days in [30, 60] {
        fixture.advance(days * DAY);
        fixture.sweep().await;
        assert_eq!(fixture.head(stream.record.id).await.unwrap().segments, 0);
        stream = kept_for(&fixture, &stream, 2 * days * DAY).await;

        let outcome = fixture.logs.undelete(&stream).await.unwrap();

        assert_eq!((outcome.segments, outcome.records, outcome.expired_segments), (3, 3, 0));
        let head = fixture.head(stream.record.id).await.unwrap();
        assert_eq!(head.segment_bytes, before.segment_bytes);
        stream = kept_for(&fixture, &stream, DAY).await;
    }
    stream = kept_for(&fixture, &stream, 365 * DAY).await;
    fixture.advance(2 * DAY);
    fixture.sweep().await;
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["0", "1", "2"]);
}

#[tokio::test]
async fn the_segments_of_a_deleted_stream_are_not_restored() {
    let fixture = LogFixture::new();
    let stream = sealed(&fixture, DAY, 2).await;
    fixture.advance(2 * DAY);
    fixture.sweep().await;
    let stream = kept_for(&fixture, &stream, 30 * DAY).await;
    fixture.logs.delete(&stream.account, &stream.name).await.unwrap();

    // Its rows are still there.
    assert_eq!(fixture.count(StreamRow::Expired, stream.record.id).await, 2);
    let undeleted = fixture.logs.undelete(&stream).await;

    assert!(matches!(undeleted, Err(LogError::StreamNotFound(_))), "{undeleted:?}");
    assert_eq!(fixture.count(StreamRow::Segment, stream.record.id).await, 0);
}

#[tokio::test]
async fn a_merge_or_another_undelete_between_any_two_steps_counts_each_record_once() {
    const ALL: usize = 100_000;
    for (is_merge, operations) in
        [true, false].into_iter().flat_map(|it| (0..8).map(move |at| (it, at)))
    {
        let fixture = LogFixture::new();
        let stream = sealed(&fixture, DAY, 2).await;
        fixture.advance(2 * DAY);
        fixture.sweep().await;
        let stream = kept_for(&fixture, &stream, 30 * DAY).await;
        for number in 0..9 {
            let record = record(2 * DAY_NANOS + number, "new");
            fixture.append(&stream, &[record]).await.unwrap();
            fixture.logs.flush(&stream).await.unwrap();
        }
        let (engine, steps) = SteppedEngine::new(Arc::clone(&fixture.logs.engine));
        let other = fixture.reopened_on(Arc::new(engine));
        let mut undelete = pin!(other.logs.undelete(&stream));
        let done = steps.run(&mut undelete, operations).await;
        let mut restored = 0;
        if is_merge {
            fixture.sweep().await;
        } else {
            restored = fixture.logs.undelete(&stream).await.unwrap().records;
        }
        let outcome = match done {
            Some(outcome) => outcome.unwrap(),
            None => steps.run(&mut undelete, ALL).await.expect("it ends").unwrap(),
        };

        assert_eq!(restored + outcome.records, 2, "after {operations}: {outcome:?}");
        let head = fixture.head(stream.record.id).await.unwrap();
        assert_eq!(head.segment_records, 11, "after {operations}");
        let segments = fixture.count(StreamRow::Segment, stream.record.id).await as u64;
        assert_eq!(head.segments, segments, "after {operations}");
        assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 11, "after {operations}");
    }
}
