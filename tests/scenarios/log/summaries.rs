//! Summaries of records.

use tonic::Code;
use trestle_proto::{
    log::v1::{self as proto, Record},
    opentelemetry::proto::common::v1::{AnyValue, any_value::Value},
};
use trestle_tests::{LogStream, World, log_record, log_scenario};

use super::{SECOND, an_hour};

log_scenario!(
    records_are_counted_by_minute_and_attribute_wherever_they_are,
    the_numbers_of_records_are_summarized,
    a_summary_is_of_a_range_and_a_filter,
    rejects_summaries_that_make_no_sense,
);

/// 120 records, a second apart, of two paths and with a duration each: in two segments, and unsealed.
async fn requests(world: &World) -> LogStream {
    let stream = world.log_stream("web").await;
    for part in 0..3_u64 {
        let record = |at: u64| {
            let text =
                Value::StringValue(["/pay", "/cart"][usize::from(at.is_multiple_of(3))].to_owned());
            let took = Value::IntValue(i64::try_from(at).unwrap());
            let attributes = [("path", text), ("took", took)];
            let attributes =
                attributes.map(|(key, value)| (key.to_owned(), AnyValue { value: Some(value) }));
            Record {
                attributes: attributes.into(),
                ..log_record(an_hour() + at * SECOND, &at.to_string())
            }
        };
        let records: Vec<_> = (part * 40..part * 40 + 40).map(record).collect();
        stream.append(&records).await.unwrap();
        if part < 2 {
            stream.flush().await.unwrap();
        }
    }
    stream
}

async fn summarize(
    world: &World,
    request: proto::SummarizeRecordsRequest,
) -> Result<(Vec<proto::RecordGroup>, proto::LogReadCost), tonic::Status> {
    let mut responses = world.logs().summarize_records(request).await?.into_inner();
    let (mut groups, mut cost) = (Vec::new(), None);
    while let Some(response) = responses.message().await? {
        groups.extend(response.groups);
        cost = response.cost;
    }
    Ok((groups, cost.expect("the last response has the cost")))
}

fn by_path(stream: &LogStream) -> proto::SummarizeRecordsRequest {
    proto::SummarizeRecordsRequest {
        stream: stream.name(),
        group_by: vec!["attributes/path".to_owned()],
        ..Default::default()
    }
}

fn key(group: &proto::RecordGroup) -> &str {
    match &group.key[0].value {
        Some(Value::StringValue(text)) => text,
        other => panic!("{other:?}"),
    }
}

async fn records_are_counted_by_minute_and_attribute_wherever_they_are(world: &World) {
    let stream = requests(world).await;
    let interval = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let request = proto::SummarizeRecordsRequest { interval, ..by_path(&stream) };
    let (groups, cost) = summarize(world, request).await.unwrap();

    let begin = i64::try_from(an_hour() / SECOND).unwrap();
    let shown =
        groups.iter().map(|it| (it.start_time.unwrap().seconds - begin, key(it), it.records));
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown, [(0, "/pay", 40), (0, "/cart", 20), (60, "/pay", 40), (60, "/cart", 20)]);
    assert_eq!((cost.segments, cost.records_scanned, cost.records_returned), (2, 120, 4));
    assert!(groups.iter().all(|group| group.numbers.is_none()));
}

async fn the_numbers_of_records_are_summarized(world: &World) {
    let stream = requests(world).await;
    let (value, quantiles) = ("attributes/took".to_owned(), vec![0.5, 0.99]);
    let request = proto::SummarizeRecordsRequest { value, quantiles, ..by_path(&stream) };
    let (groups, _) = summarize(world, request).await.unwrap();
    let cart = groups.iter().find(|group| key(group) == "/cart").unwrap();
    // 0, 3, 6 to 117.
    let numbers = cart.numbers.as_ref().unwrap();
    assert_eq!((cart.records, numbers.count, numbers.sum), (40, 40, 2_340.0));
    assert_eq!((numbers.min, numbers.max), (0.0, 117.0));
    let within = |found: f64, exact: f64| (found - exact).abs() <= exact / 100.0;
    assert!(
        within(numbers.quantiles[0], 57.0) && within(numbers.quantiles[1], 117.0),
        "{numbers:?}"
    );
}

async fn a_summary_is_of_a_range_and_a_filter(world: &World) {
    let stream = requests(world).await;
    let at = |second: u64| {
        let seconds = i64::try_from(an_hour() / SECOND + second).unwrap();
        Some(prost_types::Timestamp { seconds, nanos: 0 })
    };
    let request = proto::SummarizeRecordsRequest {
        stream: stream.name(),
        start_time: at(10),
        end_time: at(100),
        filter: "attributes/path eq '/cart'".to_owned(),
        ..Default::default()
    };
    let (groups, _) = summarize(world, request.clone()).await.unwrap();
    assert_eq!(groups.iter().map(|group| group.records).collect::<Vec<_>>(), [30]);
    let nothing = proto::SummarizeRecordsRequest { end_time: at(10), ..request };
    let (groups, _) = summarize(world, nothing).await.unwrap();
    assert_eq!(groups.iter().map(|group| group.records).collect::<Vec<_>>(), [0]);
}

async fn rejects_summaries_that_make_no_sense(world: &World) {
    let stream = requests(world).await;
    let absent =
        proto::SummarizeRecordsRequest { stream: "absent".to_owned(), ..Default::default() };
    assert_eq!(summarize(world, absent).await.unwrap_err().code(), Code::NotFound);
    let unknown =
        proto::SummarizeRecordsRequest { group_by: vec!["path".to_owned()], ..by_path(&stream) };
    let status = summarize(world, unknown).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("`path`"), "{status:?}");
    let bare = proto::SummarizeRecordsRequest { quantiles: vec![0.5], ..by_path(&stream) };
    assert_eq!(summarize(world, bare).await.unwrap_err().code(), Code::InvalidArgument);
}
