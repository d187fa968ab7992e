mod ahead;
mod bounds;
mod charged;
mod stores;

use super::*;
use crate::{
    fixture::{LogFixture, SECOND, START, plan, record, texts},
    row::{Property, RowFields},
};

/// Records in two segments whose times overlap, and unsealed ones between them.
async fn mixed() -> (LogFixture, Arc<OpenStream>) {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    for times in [[0, 4, 8], [1, 5, 9]] {
        let records = times.map(|time| record(time * SECOND, &format!("{time}")));
        fixture.append(&stream, &records).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    let records = [2, 3, 6, 7].map(|time| record(time * SECOND, &format!("{time}")));
    fixture.append(&stream, &records).await.unwrap();
    (fixture, stream)
}

fn within(from: u64, to: u64) -> ReadPlan {
    ReadPlan { times: START + from * SECOND..START + to * SECOND, ..plan() }
}

#[tokio::test]
async fn segments_and_unsealed_records_are_merged_in_both_directions() {
    let (fixture, stream) = mixed().await;
    for (from, to) in [(0, 10), (2, 8), (4, 5), (9, 10), (5, 5), (10, 20)] {
        let expected: Vec<_> = (from..to.min(10)).map(|time| time.to_string()).collect();

        let forward = fixture.read(&stream, within(from, to)).await.unwrap();
        let backward = ReadPlan { is_backward: true, ..within(from, to) };
        let backward = fixture.read(&stream, backward).await.unwrap();

        assert_eq!(texts(&forward), expected, "{from} to {to}");
        let reversed: Vec<_> = expected.into_iter().rev().collect();
        assert_eq!(texts(&backward), reversed, "{from} to {to}");
    }
}

#[tokio::test]
async fn a_read_ends_at_its_limit_and_continues_behind_any_record() {
    let (fixture, stream) = mixed().await;
    for is_backward in [false, true] {
        let all = ReadPlan { is_backward, ..plan() };
        let expected = fixture.read(&stream, all.clone()).await.unwrap();
        for count in 1..=expected.len() {
            let limited = ReadPlan { limit: count as u64, ..all.clone() };
            let first = fixture.read(&stream, limited).await.unwrap();
            assert_eq!(first, expected[..count], "{count}");

            let last = first.last().unwrap();
            let behind = Some((last.time_unix_nano, last.sequence));
            let rest = ReadPlan { behind, ..all.clone() };
            assert_eq!(fixture.read(&stream, rest).await.unwrap(), expected[count..], "{count}");
        }
    }
}

#[tokio::test]
async fn records_of_one_time_are_in_the_order_of_their_sequences() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let append = async |texts: [&str; 2]| {
        fixture.append(&stream, &texts.map(|text| record(0, text))).await.unwrap();
    };
    append(["a", "b"]).await;
    fixture.logs.flush(&stream).await.unwrap();
    append(["c", "d"]).await;
    fixture.logs.flush(&stream).await.unwrap();
    append(["e", "f"]).await;

    let all = fixture.read_all(&stream).await.unwrap();
    assert_eq!(texts(&all), ["a", "b", "c", "d", "e", "f"]);
    let behind = ReadPlan { behind: Some((START, 2)), ..plan() };
    assert_eq!(texts(&fixture.read(&stream, behind).await.unwrap()), ["d", "e", "f"]);
    let sequences = ReadPlan { sequences: 1..5, ..plan() };
    assert_eq!(texts(&fixture.read(&stream, sequences).await.unwrap()), ["b", "c", "d", "e"]);
}

/// Matches records with a text.
struct HasText(&'static str);

impl RowPredicate for HasText {
    fn properties(&self) -> Vec<Property> {
        vec![Property::Body]
    }

    fn matches(&self, row: &dyn RowFields) -> bool {
        row.body() == Some(self.0)
    }
}

#[tokio::test]
async fn a_read_returns_what_matches_and_reports_what_it_examined() {
    let (fixture, stream) = mixed().await;
    for text in ["3", "4", "none"] {
        let predicate = Some(Arc::new(HasText(text)) as _);
        let plan = ReadPlan { predicate, ..within(2, 8) };
        let (_, mut rows) = fixture.logs.read(&stream, plan).await.unwrap();

        let mut found = 0;
        while let Some(more) = rows.next(10, 1024).await.unwrap() {
            found += more.len();
        }

        assert_eq!(found, usize::from(text != "none"), "{text}");
        let cost = rows.cost();
        assert_eq!((cost.segments, cost.records_returned), (2, found as u64));
        assert!(cost.records_scanned >= 6 && cost.bytes > 0, "{text}: {cost:?}");
    }
}

#[tokio::test]
async fn a_limited_read_opens_no_segment_before_it_needs_it() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    // Of one time: the next record is the one of the next sequence.
    for number in 0..4 {
        fixture.append(&stream, &[record(0, &format!("{number}"))]).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    let segments = fixture.logs.segments(&stream, 0..u64::MAX, 10, "").await.unwrap().segments;
    for is_backward in [false, true] {
        let plan = ReadPlan { limit: 1, is_backward, ..plan() };
        // Nothing is in the cache.
        let fixture = fixture.reopened();
        let (_, mut rows) = fixture.logs.read(&stream, plan).await.unwrap();

        let found = rows.next(10, 1024).await.unwrap().unwrap();

        assert_eq!(found[0].sequence, if is_backward { 3 } else { 0 });
        let bytes = segments[0].bytes;
        assert!(rows.cost().bytes <= 2 * bytes, "{bytes}: {:?}", rows.cost());
    }
}

#[tokio::test]
async fn a_read_shows_the_state_when_it_began() {
    let (fixture, stream) = mixed().await;
    let (_, mut rows) = fixture.logs.read(&stream, plan()).await.unwrap();

    fixture.append(&stream, &[record(5 * SECOND, "new")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.sweep().await;

    let mut count = 0;
    while let Some(more) = rows.next(3, usize::MAX).await.unwrap() {
        count += more.len();
    }
    assert_eq!(count, 10);
    assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 11);
}

#[tokio::test]
async fn a_changed_byte_of_a_segment_is_reported_and_not_returned() {
    let (fixture, stream) = mixed().await;
    let path = object_store::path::Path::from(fixture.objects().await.remove(0));
    let store = &fixture.logs.area.store;
    let whole = object_store::ObjectStoreExt::get(store, &path).await.unwrap();
    let mut damaged = whole.bytes().await.unwrap().to_vec();
    damaged[100] ^= 1;
    object_store::ObjectStoreExt::put(store, &path, damaged.into()).await.unwrap();

    let read = fixture.reopened().read_all(&stream).await;

    assert!(matches!(&read, Err(LogError::Corrupt(_))), "{read:?}");
}
