//! Summaries through the interface.

use trestle_proto::opentelemetry::proto::common::v1::{AnyValue, any_value::Value};

use super::*;
use crate::fixture::{SECOND, START};

fn summary_of(stream: &str) -> proto::SummarizeRecordsRequest {
    proto::SummarizeRecordsRequest { stream: stream.to_owned(), ..Default::default() }
}

async fn summarize(
    api: &LogApi,
    request: proto::SummarizeRecordsRequest,
) -> Result<Vec<proto::SummarizeRecordsResponse>, Status> {
    api.summarize_records(Request::new(request)).await?.into_inner().try_collect().await
}

#[tokio::test]
async fn groups_have_their_interval_key_and_numbers_and_the_last_response_has_the_cost() {
    let api = filled(100).await;
    let request = proto::SummarizeRecordsRequest {
        interval: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        group_by: vec!["severity".to_owned(), "scope".to_owned()],
        value: "sequence".to_owned(),
        quantiles: vec![0.5],
        filter: "sequence ge 10".to_owned(),
        ..summary_of("web")
    };
    let responses = summarize(&api, request).await.unwrap();
    let groups: Vec<_> = responses.iter().flat_map(|response| &response.groups).collect();
    let [first, second] = groups[..] else { panic!("{groups:?}") };
    let seconds = |group: &proto::RecordGroup| group.start_time.unwrap().seconds.cast_unsigned();
    assert_eq!((seconds(first), first.records), (START / SECOND, 50));
    assert_eq!((seconds(second), second.records), (START / SECOND + 60, 40));
    assert_eq!(first.key, [AnyValue { value: None }, AnyValue { value: None }]);
    let numbers = second.numbers.as_ref().unwrap();
    assert_eq!((numbers.count, numbers.sum, numbers.min, numbers.max), (40, 3_180.0, 60.0, 99.0));
    assert!((numbers.quantiles[0] - 79.0).abs() <= 0.79, "{numbers:?}");

    let cost = responses.last().unwrap().cost.unwrap();
    assert_eq!((cost.segments, cost.records_scanned, cost.records_returned), (1, 100, 2));
    assert!(cost.bytes > 0);
}

#[tokio::test]
async fn many_groups_come_in_several_responses() {
    let api = api();
    create(&api, "web").await;
    let long = "x".repeat(200_000);
    for at in 0..20 {
        append(&api, append_of("web", &[record(at, &format!("{at}{long}"))])).await.unwrap();
    }
    let request =
        proto::SummarizeRecordsRequest { group_by: vec!["body".to_owned()], ..summary_of("web") };
    let responses = summarize(&api, request).await.unwrap();
    let counts: Vec<_> = responses.iter().map(|response| response.groups.len()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 20);
    assert!(counts.iter().all(|count| *count <= 6), "about a MiB: {counts:?}");
    let keys = responses.iter().flat_map(|response| &response.groups).flat_map(|group| &group.key);
    assert!(keys.into_iter().all(|key| matches!(&key.value, Some(Value::StringValue(_)))));
}

#[tokio::test]
async fn every_field_that_makes_no_sense_is_named() {
    let api = filled(2).await;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let request = proto::SummarizeRecordsRequest {
        filter: "path eq 'x'".to_owned(),
        interval: Some(prost_types::Duration { seconds: 0, nanos: 1 }),
        group_by: names(&["path", "time", "body", "body", "attributes/", "attributes/'a b'"]),
        value: "body".to_owned(),
        quantiles: vec![0.5, 1.5],
        ..summary_of("web")
    };
    let status = summarize(&api, request).await.unwrap_err();
    let expected =
        ["filter", "interval", "group_by[0]", "group_by[1]", "group_by[3]", "value", "quantiles"];
    assert_eq!(violated(&status), expected, "{status:?}");
    assert!(status.message().contains("path"), "{status:?}");

    let many = proto::SummarizeRecordsRequest {
        group_by: (0..9).map(|at| format!("attributes/{at}")).collect(),
        quantiles: vec![f64::NAN; 17],
        ..summary_of("web")
    };
    let status = summarize(&api, many).await.unwrap_err();
    assert_eq!(violated(&status), ["group_by", "quantiles", "quantiles", "quantiles"]);
    let absent = summarize(&api, summary_of("absent")).await.unwrap_err();
    assert_eq!(absent.code(), Code::NotFound);
}
