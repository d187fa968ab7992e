use std::{collections::BTreeMap, num::NonZeroU64};

use object_store::{ObjectStoreExt as _, path::Path};
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, any_value::Value},
};

use super::*;
use crate::{
    filter::LogFilter,
    fixture::{LogFixture, SECOND, START, record},
    row::Property,
    segment::PromotedType,
    stream::{PromotedAttribute, StreamSettings},
};

fn summary_plan() -> SummaryPlan {
    SummaryPlan {
        times: 0..u64::MAX,
        predicate: None,
        interval: None,
        group_by: Vec::new(),
        value: None,
        quantiles: Vec::new(),
    }
}

/// A record of a path that took a time, a second after the one before.
fn request(at: u64) -> Record {
    let text = |text: String| AnyValue { value: Some(Value::StringValue(text)) };
    let mut attributes = BTreeMap::from([("path".to_owned(), text(format!("/{}", at % 3)))]);
    if !at.is_multiple_of(5) {
        let took = AnyValue { value: Some(Value::IntValue(i64::try_from(at).unwrap())) };
        attributes.insert("took".to_owned(), took);
    }
    let severity_number = i32::try_from(at % 4).unwrap();
    Record { attributes, severity_number, ..record(at * SECOND, &at.to_string()) }
}

/// 240 requests: in three segments, one of which has a column for each attribute, and unsealed.
async fn requests() -> (LogFixture, Arc<OpenStream>) {
    let fixture = LogFixture::new();
    let promoted =
        |key: &str, kind| PromotedAttribute { key: key.to_owned(), kind, is_indexed: false };
    let promoted =
        vec![promoted("path", PromotedType::String), promoted("took", PromotedType::Int64)];
    let stream = fixture.stream(StreamSettings { promoted, ..StreamSettings::default() }).await;
    for part in 0..4 {
        // The times of the parts overlap.
        let records: Vec<_> = (0..60).map(|at| request(at * 4 + part)).collect();
        fixture.append(&stream, &records).await.unwrap();
        if part < 3 {
            fixture.logs.flush(&stream).await.unwrap();
        }
    }
    (fixture, stream)
}

/// The groups of a plan, as text.
async fn groups(fixture: &LogFixture, stream: &OpenStream, plan: SummaryPlan) -> Vec<String> {
    let mut open = fixture.logs.summarize(stream, plan).await.unwrap();
    while open.proceed().await.unwrap() {}
    open.summary().groups().iter().map(|group| format!("{group:?}")).collect()
}

/// The same, by taking in each record that a read returns.
async fn naive(fixture: &LogFixture, stream: &OpenStream, plan: SummaryPlan) -> Vec<String> {
    let read = crate::read::ReadPlan {
        times: plan.times.clone(),
        predicate: plan.predicate.clone(),
        ..crate::fixture::plan()
    };
    let records = fixture.read(stream, read).await.unwrap();
    let mut summary = RecordSummary::new(Arc::new(plan));
    for record in records {
        let encoded = prost::Message::encode_to_vec(&record);
        let row = crate::batch::BatchRow {
            time: record.time_unix_nano,
            sequence: record.sequence,
            record: &encoded,
            resource: &[],
            scope: &[],
        };
        summary.take(&UnsealedRow::parse(row).unwrap());
    }
    summary.groups().iter().map(|group| format!("{group:?}")).collect()
}

#[tokio::test]
async fn a_summary_is_that_of_the_records_that_a_read_returns() {
    let (fixture, stream) = requests().await;
    let attribute = |key: &str| Property::Attribute(key.to_owned());
    let filter = |text: &str| Some(Arc::new(LogFilter::parse(text).unwrap().unwrap()) as _);
    let minute = NonZeroU64::new(60 * SECOND);
    let times = START + 17 * SECOND..START + 200 * SECOND;
    let plans = [
        summary_plan(),
        SummaryPlan { interval: minute, ..summary_plan() },
        SummaryPlan { times: times.clone(), ..summary_plan() },
        SummaryPlan { group_by: vec![attribute("path"), Property::Severity], ..summary_plan() },
        SummaryPlan {
            interval: minute,
            group_by: vec![attribute("path")],
            value: Some(attribute("took")),
            quantiles: vec![0.5, 0.99],
            predicate: filter("severity ge 2"),
            times,
        },
        SummaryPlan { predicate: filter("body eq '7'"), ..summary_plan() },
        SummaryPlan { group_by: vec![attribute("absent"), Property::Body], ..summary_plan() },
    ];
    for (at, plan) in plans.into_iter().enumerate() {
        let expected = naive(&fixture, &stream, plan.clone()).await;
        assert!(!expected.is_empty());
        assert_eq!(groups(&fixture, &stream, plan).await, expected, "plan {at}");
    }
}

#[tokio::test]
async fn data_points_that_are_stored_by_series_are_summarized() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let point = |at: u64| Record {
        time_unix_nano: START + at / 4 * SECOND,
        event_name: format!("requests.{}", at % 4),
        value: Some(at as f64),
        ..Record::default()
    };
    let points: Vec<_> = (0..400).map(point).collect();
    fixture.append(&stream, &points).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    let plan = SummaryPlan {
        times: START + 10 * SECOND..START + 90 * SECOND,
        interval: NonZeroU64::new(60 * SECOND),
        group_by: vec![Property::EventName],
        value: Some(Property::Value),
        ..summary_plan()
    };
    let expected = naive(&fixture, &stream, plan.clone()).await;
    assert_eq!(expected.len(), 8);
    assert_eq!(groups(&fixture, &stream, plan).await, expected);
}

#[tokio::test]
async fn a_plain_count_reads_only_the_segments_at_the_ends_of_its_times() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    for part in 0..4_u64 {
        let records: Vec<_> = (0..10).map(|at| request(part * 60 + at)).collect();
        fixture.append(&stream, &records).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    let cost_of = async |plan| {
        let mut open = fixture.logs.summarize(&stream, plan).await.unwrap();
        while open.proceed().await.unwrap() {}
        let records: u64 = open.summary().groups().iter().map(|group| group.records).sum();
        (records, open.cost())
    };

    let (records, cost) = cost_of(summary_plan()).await;
    assert_eq!((records, cost.segments, cost.bytes, cost.records_scanned), (40, 4, 0, 0));
    let by_minute = SummaryPlan { interval: NonZeroU64::new(60 * SECOND), ..summary_plan() };
    let (records, cost) = cost_of(by_minute).await;
    assert_eq!((records, cost.bytes), (40, 0));

    let times = START + 5 * SECOND..START + 125 * SECOND;
    let (records, cost) = cost_of(SummaryPlan { times, ..summary_plan() }).await;
    assert_eq!((records, cost.segments), (20, 3));
    assert!(cost.bytes > 0 && (10..=20).contains(&cost.records_scanned), "{cost:?}");
}

#[tokio::test]
async fn what_happens_after_it_is_opened_is_not_in_a_summary_and_nothing_is_in_it_twice() {
    let (fixture, stream) = requests().await;
    let plan = || SummaryPlan { group_by: vec![Property::Severity], ..summary_plan() };
    let expected = groups(&fixture, &stream, plan()).await;

    let mut open = fixture.logs.summarize(&stream, plan()).await.unwrap();
    fixture.append(&stream, &[request(1_000)]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.sweep().await;
    while open.proceed().await.unwrap() {}

    let found: Vec<_> = open.summary().groups().iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(found, expected);
    assert_ne!(groups(&fixture, &stream, plan()).await, expected);
}

#[tokio::test]
async fn a_damaged_segment_fails_a_summary_instead_of_being_left_out() {
    let (fixture, stream) = requests().await;
    let path = Path::from(fixture.objects().await.remove(0));
    let store = &fixture.logs.area.store;
    let mut bytes = store.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
    bytes[100] ^= 1;
    store.put(&path, bytes.into()).await.unwrap();

    let fixture = fixture.reopened();
    let plan = SummaryPlan { group_by: vec![Property::Body], ..summary_plan() };
    let mut open = fixture.logs.summarize(&stream, plan).await.unwrap();
    let failed = loop {
        match open.proceed().await {
            Ok(true) => {}
            Ok(false) => panic!("the damage is not found"),
            Err(error) => break error,
        }
    };
    assert!(matches!(&failed, LogError::Corrupt(_)), "{failed:?}");
    drop(open);
    assert_eq!(fixture.logs.segment_bytes.free(), 256 * 1024 * 1024, "its bytes are released");
}

#[tokio::test]
async fn too_many_groups_are_an_error_that_names_the_properties() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let long = "x".repeat(900_000);
    for at in 0..40 {
        fixture.append(&stream, &[record(at, &format!("{at}{long}"))]).await.unwrap();
    }
    let plan = SummaryPlan { group_by: vec![Property::Body], ..summary_plan() };
    let failed = fixture.logs.summarize(&stream, plan).await.err().expect("too many bytes");
    let fault = Fault::from(failed);
    assert_eq!(fault.reason, Reason::OutOfRangeInput);
    assert!(format!("{fault:?}").contains("group_by"), "{fault:?}");
}
