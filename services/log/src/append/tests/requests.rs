//! Repeated and concurrent appends.

use futures::future::join_all;

use super::*;

fn with_id(id: &str) -> impl Fn(NewBatch) -> NewBatch + use<> {
    let id = id.to_owned();
    move |batch| NewBatch { request_id: Some(id.clone()), ..batch }
}

#[tokio::test]
async fn concurrent_appends_have_sequences_without_gaps_or_overlaps() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let (fixture, stream) = (&fixture, &stream);
    let append = |count: u64| async move {
        let records: Vec<_> = (0..count).map(|_| record(count, "x")).collect();
        fixture.append(stream, &records).await.unwrap()
    };

    let outcomes = join_all((1..=20).map(append)).await;

    let mut ranges: Vec<_> =
        outcomes.iter().map(|it| (it.first_sequence, u64::from(it.count))).collect();
    ranges.sort_unstable();
    let mut next = 0;
    for (first, count) in ranges {
        assert_eq!(first, next);
        next += count;
    }
    let records = fixture.read_all(stream).await.unwrap();
    assert_eq!(records.len() as u64, next);
    // The records of an append follow each other.
    for outcome in outcomes {
        let of_append = records.iter().filter(|record| {
            record.time_unix_nano == crate::fixture::START + u64::from(outcome.count)
        });
        let sequences: Vec<_> = of_append.map(|record| record.sequence).collect();
        let first = outcome.first_sequence;
        assert_eq!(sequences, (first..first + u64::from(outcome.count)).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn of_concurrent_appends_with_one_request_id_one_is_stored() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let (fixture, stream) = (&fixture, &stream);
    let append = |_| async move {
        fixture.append_as(stream, &[record(1, "a"), record(2, "b")], with_id("one")).await.unwrap()
    };

    let outcomes = join_all((0..10).map(append)).await;

    assert_eq!(outcomes.iter().filter(|outcome| !outcome.is_repeated).count(), 1);
    assert!(outcomes.iter().all(|outcome| (outcome.first_sequence, outcome.count) == (0, 2)));
    assert_eq!(texts(&fixture.read_all(stream).await.unwrap()), ["a", "b"]);
}

#[tokio::test]
async fn a_request_id_is_that_of_one_stream_and_survives_a_seal_and_a_restart() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let (account, other) = (crate::fixture::account(), crate::fixture::name("other"));
    let other = fixture.logs.open_or_create(&account, &other).await.unwrap();

    fixture.append_as(&stream, &[record(1, "a")], with_id("one")).await.unwrap();
    let in_other = fixture.append_as(&other, &[record(1, "a")], with_id("one")).await.unwrap();
    assert!(!in_other.is_repeated);
    let another = fixture.append_as(&stream, &[record(2, "b")], with_id("two")).await.unwrap();
    assert!(!another.is_repeated);

    fixture.logs.flush(&stream).await.unwrap();
    let restarted = fixture.reopened();
    restarted.advance(REQUEST_MEMORY - Duration::from_secs(1));
    restarted.sweep().await;
    let again = restarted.append_as(&stream, &[record(1, "a")], with_id("one")).await.unwrap();
    assert!(again.is_repeated && again.first_sequence == 0);
    assert_eq!(texts(&restarted.read_all(&stream).await.unwrap()), ["a", "b"]);
}

#[tokio::test]
async fn a_repeated_append_succeeds_though_its_condition_no_longer_holds() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let first = |batch| NewBatch { expected_next_sequence: Some(0), ..with_id("one")(batch) };

    fixture.append_as(&stream, &[record(1, "a")], first).await.unwrap();
    let again = fixture.append_as(&stream, &[record(1, "a")], first).await.unwrap();

    assert_eq!((again.first_sequence, again.is_repeated), (0, true));
}

#[tokio::test]
async fn a_rejected_append_does_not_use_up_its_request_id() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let late = |batch| NewBatch { expected_next_sequence: Some(7), ..with_id("one")(batch) };

    assert!(fixture.append_as(&stream, &[record(1, "a")], late).await.is_err());
    let again = fixture.append_as(&stream, &[record(1, "a")], with_id("one")).await.unwrap();

    assert!(!again.is_repeated);
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["a"]);
}

#[tokio::test]
async fn ids_that_are_used_again_after_their_time_are_kept_by_the_sweep() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    fixture.append_as(&stream, &[record(1, "a")], with_id("one")).await.unwrap();
    fixture.advance(REQUEST_MEMORY + Duration::from_secs(1));
    fixture.append_as(&stream, &[record(2, "b")], with_id("one")).await.unwrap();

    // The first use is past its time, the second is not.
    fixture.advance(Duration::from_secs(1));
    fixture.sweep().await;

    assert_eq!(fixture.count(keys::StreamRow::RequestTime, stream.record.id).await, 1);
    let again = fixture.append_as(&stream, &[record(2, "b")], with_id("one")).await.unwrap();
    assert_eq!((again.first_sequence, again.is_repeated), (1, true));
}
