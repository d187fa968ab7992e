//! Following streams of large records, with filters, and from places where no record is.

use std::sync::Arc;

use super::*;
use crate::filter::LogFilter;

/// Records of 100 KB whose times fall: by time the first sequence comes last.
fn large(numbers: Range<u64>) -> Vec<Record> {
    let text = |number: u64| format!("{number} {}", "x".repeat(100 * 1024));
    numbers.map(|number| record(10_000 - number, &text(number))).collect()
}

#[tokio::test]
async fn large_records_are_followed_in_order_with_bounded_memory() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    for part in [0..60, 60..120, 120..180, 180..230] {
        fixture.append(&stream, &large(part.clone())).await.unwrap();
        if part.end < 180 {
            fixture.logs.flush(&stream).await.unwrap();
        }
    }
    let mut follower = follow(&fixture, &stream, FollowFrom::Sequence(0)).await;

    // Of 23 MB a window holds no more than the bound, and one response beyond it.
    let (held, end) = follower.window(0..230).await.unwrap();
    let bytes: usize = held.iter().map(|row| row.record.len()).sum();
    assert!(bytes <= WINDOW_BYTES_MAX + 2 * BYTES_MAX, "{bytes}");
    assert!(held.iter().all(|row| row.sequence < end) && end < 230, "{end}");

    let mut sequences = Vec::new();
    while sequences.len() < 230 {
        let records = next(&mut follower).await;
        let bytes: usize = records.iter().map(prost::Message::encoded_len).sum();
        assert!(bytes < BYTES_MAX + 101 * 1024, "{bytes}");
        sequences.extend(records.iter().map(|record| record.sequence));
        assert_eq!(follower.next_sequence(), sequences.len() as u64);
        // About eleven of them fit into a response: what is read beyond it is read again.
        assert!(follower.window <= 4 * WINDOW_MIN, "{}", follower.window);
    }
    assert!(sequences.into_iter().eq(0..230));
}

#[test]
fn a_window_follows_what_fits_into_a_response() {
    assert_eq!(next_window(WINDOW_FIRST, 256, true), 512);
    assert_eq!(next_window(512, 1, true), WINDOW_MIN, "records of 1 MiB");
    assert_eq!(next_window(512, 3, false), 1024, "a filter that drops most");
    assert_eq!(next_window(WINDOW_MAX, 3, false), WINDOW_MAX);
    assert_eq!(next_window(WINDOW_MAX, 1000, true), 2000);
}

#[tokio::test]
async fn a_filtered_follower_continues_behind_what_does_not_match() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let filter = LogFilter::parse("body eq 'yes'").unwrap().unwrap();
    let (from, predicate) = (FollowFrom::Sequence(0), Some(Arc::new(filter) as _));
    let follower = fixture.logs.follow(Arc::clone(&stream), from, predicate, RecordFields::ALL);
    let mut follower = follower.await.unwrap();

    fixture.append(&stream, &[record(1, "no"), record(2, "no")]).await.unwrap();
    assert!(next(&mut follower).await.is_empty());
    assert_eq!(follower.next_sequence(), 2);
    fixture.logs.flush(&stream).await.unwrap();
    fixture.append(&stream, &[record(3, "yes"), record(4, "no")]).await.unwrap();
    assert_eq!(texts(&next(&mut follower).await), ["yes"]);
    assert_eq!(follower.next_sequence(), 4);
}

#[tokio::test]
async fn a_follower_may_begin_behind_the_end_and_before_what_was_deleted() {
    let fixture = LogFixture::new();
    let retention = Some(Duration::from_secs(100));
    let settings = crate::stream::StreamSettings { retention, ..Default::default() };
    let stream = fixture.stream(settings).await;
    let mut ahead = follow(&fixture, &stream, FollowFrom::Sequence(2)).await;
    fixture.append(&stream, &[record(0, "a"), record(0, "b")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.advance(Duration::from_secs(101));
    fixture.sweep().await;
    fixture.append(&stream, &[record(0, "c")]).await.unwrap();

    assert_eq!(texts(&next(&mut ahead).await), ["c"]);
    let mut from_start = follow(&fixture, &stream, FollowFrom::Sequence(0)).await;
    assert_eq!(texts(&next(&mut from_start).await), ["c"], "the others are past the retention");
    let mut more_than_all = follow(&fixture, &stream, FollowFrom::Last(1_000)).await;
    assert_eq!(texts(&next(&mut more_than_all).await), ["c"]);
}

#[tokio::test]
async fn a_follower_sees_appends_of_another_process() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let mut follower = follow(&fixture, &stream, FollowFrom::Last(0)).await;

    let other = fixture.reopened();
    other.append(&stream, &[record(0, "a")]).await.unwrap();

    assert_eq!(texts(&next(&mut follower).await), ["a"]);
}
