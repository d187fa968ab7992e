//! The bytes of data points of metrics, and their cost.

use bytes::Bytes;
use prost::Message as _;
use trestle_proto::{
    log::v1::wire::ExportMetricsServiceRequest,
    opentelemetry::proto::{
        metrics::v1::{
            AggregationTemporality, Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics,
            Sum, metric::Data, number_data_point::Value,
        },
        resource::v1::Resource,
    },
};

use super::{
    LogBench,
    appends::since_an_hour,
    records::{mix, pair, resource, scope, text},
};
use crate::{Plan, report};

const EXPORT: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
/// Metrics, half of them counters, and series of each.
const METRICS: u64 = 20;
const SERIES: u64 = 50;
/// How often every series has a data point.
const EXPORTS: u64 = 300;
/// Between two data points of a series.
const STEP_NANOS: u64 = 10_000_000_000;
const POINT_BYTES: f64 = 10.0;

/// Bytes of a data point in segments.
pub(crate) async fn points(_: Plan) {
    let bench = LogBench::start().await;
    let begin = since_an_hour(STEP_NANOS).begin;
    let mut values = vec![0; usize::try_from(METRICS * SERIES).unwrap()];
    let before = bench.server.cpu_us();
    for export in 0..EXPORTS {
        let request = request(export, begin, &mut values);
        bench.connections.call(export, EXPORT, request).await.unwrap();
    }
    let acknowledged = bench.server.cpu_us() - before;
    let stats = bench.flush("bench.metrics").await;
    let cpu = bench.server.cpu_us() - before;
    let points = EXPORTS * METRICS * SERIES;
    assert_eq!(stats.segment_records, points, "every data point is sealed");
    let bytes = stats.segment_bytes as f64 / points as f64;
    report::figure("bytes of a data point in segments", bytes, POINT_BYTES, true, "B");
    let (acknowledged, cpu) = (acknowledged / points as f64, cpu / points as f64);
    println!("  server CPU a data point: {acknowledged:.2} us acknowledged, {cpu:.2} us sealed");
}

/// One data point of every series.
fn request(export: u64, begin: u64, values: &mut [i64]) -> Bytes {
    let mut values = (0_u64..).zip(values);
    let metrics = (0..METRICS).map(|metric| {
        let is_counter = metric % 2 == 0;
        let data_points = values.by_ref().take(usize::try_from(SERIES).unwrap());
        let data_points = data_points.map(|(series, value)| {
            let random = i64::try_from(mix(export * METRICS * SERIES + series) % 100).unwrap();
            *value += if is_counter { random } else { random - 50 };
            let instance = text(format!("instance-{:03}", series % SERIES));
            let value = match is_counter {
                true => Value::AsInt(*value),
                false => Value::AsDouble(*value as f64 / 10.0),
            };
            NumberDataPoint {
                attributes: vec![pair("instance", instance), pair("zone", text("eu-west-1"))],
                time_unix_nano: begin + export * STEP_NANOS,
                value: Some(value),
                ..Default::default()
            }
        });
        let data_points = data_points.collect();
        let aggregation_temporality = AggregationTemporality::Cumulative.into();
        let data = match is_counter {
            true => Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: true }),
            false => Data::Gauge(Gauge { data_points }),
        };
        let name = format!("bench.metric.{metric}");
        Metric { name, data: Some(data), ..Default::default() }
    });
    let metrics = metrics.collect();
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics, ..Default::default() }];
    let resource = Some(Resource { attributes: resource("bench"), ..Default::default() });
    let metrics = ResourceMetrics { resource, scope_metrics, ..Default::default() };
    let resource_metrics = vec![metrics.encode_to_vec().into()];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec().into()
}
