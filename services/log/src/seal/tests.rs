mod faults;

use std::time::Duration;

use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use super::*;
use crate::{
    fixture::{LogFixture, SECOND, START, record, texts},
    layout::DAY_NANOS,
    stream::{RollPolicy, StreamSettings},
};

/// A stream that is sealed early.
fn rolling(max_age: u64, max_bytes: u64) -> StreamSettings {
    let roll = RollPolicy { max_age: Duration::from_secs(max_age), max_bytes };
    StreamSettings { roll, ..StreamSettings::default() }
}

#[test]
fn one_seal_takes_as_much_as_fits_into_memory_by_bytes_or_by_records() {
    const MIB: usize = 1024 * 1024;

    assert!(!is_whole(64 * MIB - 1, 999_999));
    assert!(is_whole(64 * MIB, 0));
    assert!(is_whole(0, 1_000_000));
}

#[tokio::test(start_paused = true)]
async fn a_sealer_with_nothing_to_do_waits_and_ends_at_once_when_the_server_stops() {
    let fixture = LogFixture::new();
    let began = tokio::time::Instant::now();

    assert!(fixture.logs.seal_due().await.unwrap());
    assert_eq!(began.elapsed(), IDLE_WAIT);

    fixture.logs.shutdown.cancel();
    assert!(!fixture.logs.seal_due().await.unwrap());
    assert_eq!(began.elapsed(), IDLE_WAIT);
}

#[tokio::test]
async fn sealed_records_are_read_as_before_and_once() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(3, "c"), record(1, "a")]).await.unwrap();
    fixture.append(&stream, &[record(2, "b")]).await.unwrap();
    let before = fixture.read_all(&stream).await.unwrap();

    let sealed = fixture.logs.flush(&stream).await.unwrap();

    assert_eq!((sealed.records, sealed.segments, sealed.snapshot), (3, 1, 1));
    assert_eq!(texts(&before), ["a", "b", "c"]);
    assert_eq!(fixture.read_all(&stream).await.unwrap(), before);
    fixture.append(&stream, &[record(0, "late")]).await.unwrap();
    let records = fixture.read_all(&stream).await.unwrap();
    assert_eq!(texts(&records), ["late", "a", "b", "c"]);
    assert_eq!(records.iter().map(|it| it.sequence).collect::<Vec<_>>(), [3, 1, 2, 0]);

    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.next_sequence, head.sealed_before, head.unsealed_records()), (4, 3, 1));
    assert_eq!((head.segments, head.segment_records), (1, 3));
    fixture.sweep().await;
    assert_eq!(fixture.count(StreamRow::Batch, stream.record.id).await, 1);
    assert_eq!(fixture.count(StreamRow::Announced, stream.record.id).await, 0);
    assert_eq!(fixture.read_all(&stream).await.unwrap(), records);

    let nothing = fixture.logs.flush(&fixture.plain_stream().await).await.unwrap();
    assert_eq!((nothing.records, nothing.segments, nothing.snapshot), (1, 1, 2));
    let nothing = fixture.logs.flush(&stream).await.unwrap();
    assert_eq!((nothing.records, nothing.segments, nothing.snapshot), (0, 0, 2));
}

#[tokio::test]
async fn each_day_of_the_records_is_a_segment_of_its_own() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let day = START / DAY_NANOS * DAY_NANOS;
    let at = |time: u64, text| trestle_proto::log::v1::Record {
        time_unix_nano: time,
        ..record(0, text)
    };
    let records = [
        at(day, "first"),
        at(day - 1, "yesterday"),
        at(day + DAY_NANOS - 1, "last"),
        at(day - 3 * DAY_NANOS, "long ago"),
    ];
    fixture.append(&stream, &records).await.unwrap();

    let sealed = fixture.logs.flush(&stream).await.unwrap();

    assert_eq!((sealed.records, sealed.segments), (4, 3));
    let folder = |path: &String| path.rsplit_once('/').unwrap().0.to_owned();
    let folders: Vec<_> = fixture.objects().await.iter().map(folder).collect();
    let dates = ["2027-01-12", "2027-01-14", "2027-01-15"];
    assert_eq!(folders, dates.map(|date| format!("acme/stream=web/date={date}")));
    let all = fixture.read_all(&stream).await.unwrap();
    assert_eq!(texts(&all), ["long ago", "yesterday", "first", "last"]);
}

#[tokio::test]
async fn streams_are_sealed_by_age_and_by_bytes() {
    let fixture = LogFixture::new();
    let stream = fixture.stream(rolling(60, 1000)).await;
    let unsealed = || async { fixture.head(stream.record.id).await.unwrap().unsealed_records() };

    fixture.append(&stream, &[record(1, "a")]).await.unwrap();
    fixture.logs.seal_due().await.unwrap();
    assert_eq!(unsealed().await, 1);
    fixture.advance(Duration::from_secs(61));
    fixture.logs.seal_due().await.unwrap();
    assert_eq!(unsealed().await, 0);

    fixture.append(&stream, &[record(1, &"x".repeat(1000))]).await.unwrap();
    fixture.logs.seal_due().await.unwrap();
    assert_eq!(unsealed().await, 0);
}

#[tokio::test]
async fn accounts_take_turns_however_many_segments_one_has_to_seal() {
    let fixture = LogFixture::new();
    let open = async |account: &str, name: &str| {
        let account = AccountName::parse(account).unwrap();
        let name = crate::fixture::name(name);
        fixture.logs.streams.create(&account, &name, rolling(60, 1_000_000)).await.unwrap();
        fixture.logs.open(&account, &name).await.unwrap()
    };
    let of_days: Vec<_> = (0..40)
        .map(|day| trestle_proto::log::v1::Record {
            time_unix_nano: START - day * DAY_NANOS,
            ..record(0, "old")
        })
        .collect();
    let mut streams = Vec::new();
    for name in ["a", "b", "c"] {
        let stream = open("acme", name).await;
        fixture.append(&stream, &of_days).await.unwrap();
        fixture.advance(Duration::from_secs(1));
        streams.push(stream);
    }
    let other = open("other", "d").await;
    fixture.append(&other, &[record(0, "new")]).await.unwrap();
    streams.push(other);
    fixture.advance(Duration::from_secs(61));
    let segments = async || {
        let mut segments = Vec::new();
        for stream in &streams {
            segments.push(fixture.head(stream.record.id).await.unwrap().segments);
        }
        segments
    };

    assert!(fixture.logs.seal_due().await.unwrap());
    assert_eq!(segments().await, [40, 40, 0, 1]);
    assert!(fixture.logs.seal_due().await.unwrap());
    assert_eq!(segments().await, [40, 40, 40, 1]);
}

#[tokio::test]
async fn a_process_seals_what_an_earlier_one_left() {
    let fixture = LogFixture::new();
    let stream = fixture.stream(rolling(60, 1_000_000)).await;
    fixture.append(&stream, &[record(1, "a")]).await.unwrap();
    fixture.advance(Duration::from_secs(61));

    let reopened = fixture.reopened();
    reopened.sweep().await;
    reopened.logs.seal_due().await.unwrap();

    assert_eq!(reopened.head(stream.record.id).await.unwrap().segments, 1);
}

#[tokio::test]
async fn a_failing_object_store_delays_seals_and_loses_nothing() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(SECOND, "a")]).await.unwrap();

    for fault in [ObjectFault::Failed, ObjectFault::Full] {
        store.plan([fault]);
        let failed = fixture.logs.flush(&stream).await;
        assert!(matches!(failed, Err(LogError::Objects)), "{failed:?}");
        assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["a"]);
        assert_eq!(fixture.head(stream.record.id).await.unwrap().segments, 0);
    }

    // The answer of a write is lost: the object exists, and no segment has it.
    store.plan([ObjectFault::Unacknowledged]);
    assert!(fixture.logs.flush(&stream).await.is_err());
    assert_eq!(fixture.objects().await.len(), 1);
    fixture.logs.flush(&stream).await.unwrap();
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["a"]);
    assert_eq!(fixture.objects().await.len(), 2);

    fixture.advance(crate::sweep::ANNOUNCED_GRACE + Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.objects().await.len(), 1);
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["a"]);
}
