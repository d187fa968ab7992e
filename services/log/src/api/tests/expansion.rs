//! Exports that become more than they are: bytes beyond those of their requests, and many days of many streams.

use bytes::Bytes;
use prost::Message as _;
use tonic_types::StatusExt as _;
use trestle_proto::{
    log::v1::wire::ExportMetricsServiceRequest,
    opentelemetry::proto::{
        collector::metrics::v1::metrics_service_server::MetricsService,
        common::v1::{AnyValue, KeyValue, any_value::Value},
        metrics::v1::{
            Histogram, HistogramDataPoint, Metric, ResourceMetrics, ScopeMetrics, metric::Data,
        },
        resource::v1::Resource,
    },
};
use trestle_rpc::layer::shares::{Holder, SharePool};

use super::{
    exports::{export, logs, names},
    *,
};
use crate::{
    fixture::{START, account, texts},
    layout::DAY_NANOS,
};

const MIB: usize = 1024 * 1024;

fn attribute(key: &str, text: String) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(Value::StringValue(text)) }),
    }
}

/// The metrics of a service: one point of so many buckets, with an attribute of 50 KB that is in the record of each.
fn histogram(service: &str, buckets: u8) -> Bytes {
    let point = HistogramDataPoint {
        time_unix_nano: START,
        attributes: vec![attribute("large", "x".repeat(50_000))],
        bucket_counts: vec![1; buckets.into()],
        explicit_bounds: (1..buckets).map(f64::from).collect(),
        ..HistogramDataPoint::default()
    };
    let data = Data::Histogram(Histogram { data_points: vec![point], ..Histogram::default() });
    let metric = Metric { name: "h".to_owned(), data: Some(data), ..Metric::default() };
    let attributes = vec![attribute("service.name", service.to_owned())];
    let resource = Some(Resource { attributes, ..Resource::default() });
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() }.encode_to_vec().into()
}

#[tokio::test]
async fn an_export_whose_bytes_cannot_be_charged_stores_nothing_and_may_be_repeated() {
    let mut api = api();
    let pool = SharePool::new("bytes of expanded exports", 8 * MIB);
    api.logs.derived_bytes = Arc::clone(&pool);
    // What other exports of the account have.
    let others = pool.take(Holder::account_alone(account().as_str()), 5 * MIB).unwrap();
    let resource_metrics = vec![histogram("other", 1), histogram("web", 100)];
    let request = || ExportMetricsServiceRequest { resource_metrics: resource_metrics.clone() };
    let export = async || MetricsService::export(&api, Request::new(request())).await;

    let status = export().await.unwrap_err();

    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert!(status.get_details_retry_info().is_some());
    assert!(status.message().contains("bytes of expanded exports"), "{status:?}");
    assert_eq!(pool.free(), 3 * MIB);
    for name in names(&api).await {
        assert!(records_of(&read(&api, read_of(&name)).await.unwrap()).is_empty(), "{name}");
    }
    drop(others);
    assert!(export().await.unwrap().into_inner().partial_success.is_none());
    let stored = records_of(&read(&api, read_of("web.metrics")).await.unwrap());
    assert!(stored.len() > 100, "{}", stored.len());
    assert_eq!(pool.free(), 8 * MIB);
}

#[tokio::test]
async fn the_days_of_all_streams_of_a_request_are_bounded() {
    let api = api();
    let of_days = |service: &str| {
        let mut request = logs(service, &["a"; 900]);
        for (day, record) in request.scope_logs[0].log_records.iter_mut().enumerate() {
            record.time_unix_nano = START - day as u64 * DAY_NANOS;
        }
        request
    };

    let answer = export(&api, None, &["a", "b", "c", "d"].map(of_days)).await.unwrap();

    let partial = answer.partial_success.unwrap();
    assert_eq!(partial.rejected_log_records, 4 * 900 - 2_000);
    assert!(partial.error_message.contains("is on a day too many"), "{partial:?}");
    let count = |records: Vec<Record>| texts(&records).len();
    let mut stored = Vec::new();
    for name in ["a", "b", "c"] {
        stored.push(count(records_of(&read(&api, read_of(name)).await.unwrap())));
    }
    assert_eq!(stored, [900, 900, 200]);
    assert_eq!(names(&api).await, ["a", "b", "c"]);
}
