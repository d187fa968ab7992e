//! Exports of OTLP metrics: the records that data points become, and which points are rejected.

use trestle_proto::opentelemetry::proto::{
    common::v1::KeyValue,
    metrics::v1::{
        AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge,
        Histogram, HistogramDataPoint, Metric, NumberDataPoint, ScopeMetrics, Sum, Summary,
        SummaryDataPoint, exponential_histogram_data_point::Buckets, metric::Data,
        number_data_point, summary_data_point::ValueAtQuantile,
    },
    resource::v1::Resource,
};

use super::*;

fn pair(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(text(value)) }
}

fn metric(name: &str, data: Data) -> Metric {
    Metric { name: name.to_owned(), data: Some(data), ..Metric::default() }
}

fn number(value: number_data_point::Value) -> NumberDataPoint {
    NumberDataPoint { time_unix_nano: NOW, value: Some(value), ..NumberDataPoint::default() }
}

fn double(value: f64) -> NumberDataPoint {
    number(number_data_point::Value::AsDouble(value))
}

fn gauge(data_points: Vec<NumberDataPoint>) -> Metric {
    metric("g", Data::Gauge(Gauge { data_points }))
}

fn of_resource(metrics: Vec<Metric>) -> ResourceMetrics {
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }
}

/// The records of metrics as `name{label} value`, and what is rejected.
fn exported(metrics: Vec<Metric>) -> (Vec<String>, Rejected) {
    let (batch, rejected) =
        batch_of::<ResourceMetrics>(&[of_resource(metrics).encode_to_vec().into()]);
    let Some(batch) = batch else { return (Vec::new(), rejected) };
    let rows = BatchView::parse(&batch.bytes).unwrap().rows(0);
    let shown = rows.map(|row| {
        let record = Record::decode(row.unwrap().record).unwrap();
        let label = |(key, value): (&String, &AnyValue)| match &value.value {
            Some(Value::DoubleValue(bound)) => format!("{key}={bound}"),
            Some(Value::StringValue(text)) => format!("{key}={text}"),
            other => panic!("{other:?}"),
        };
        let labels: Vec<_> = record.attributes.iter().map(label).collect();
        format!("{}{{{}}} {}", record.event_name, labels.join(","), record.value.unwrap())
    });
    (shown.collect(), rejected)
}

#[test]
fn numbers_of_gauges_and_sums_are_values() {
    let whole = number(number_data_point::Value::AsInt(i64::MAX));
    let labelled = NumberDataPoint { attributes: vec![pair("host", "a")], ..double(-0.5) };
    let sum = Sum {
        data_points: vec![whole],
        aggregation_temporality: AggregationTemporality::Delta.into(),
        is_monotonic: true,
    };
    let with_unit = Metric { unit: "s".to_owned(), ..gauge(vec![labelled]) };

    let (records, rejected) = exported(vec![with_unit, metric("n", Data::Sum(sum))]);

    assert_eq!(records, ["g{host=a} -0.5", "n{} 9223372036854776000"]);
    assert_eq!(rejected, Rejected::default());
}

/// The records of a metric.
fn records_of(metric: Metric) -> Vec<Record> {
    let request = of_resource(vec![metric]).encode_to_vec().into();
    let (batch, rejected) = batch_of::<ResourceMetrics>(&[request]);
    assert_eq!(rejected, Rejected::default());
    let batch = batch.expect("records");
    let rows = BatchView::parse(&batch.bytes).unwrap().rows(0);
    rows.map(|row| Record::decode(row.unwrap().record).unwrap()).collect()
}

#[test]
fn what_gives_a_number_its_meaning_is_stored_with_it() {
    let meaning = |record: &Record| {
        let Record { start_time_unix_nano, temporality, is_monotonic, .. } = record;
        assert_eq!(record.unit, "s");
        (*start_time_unix_nano, *temporality, *is_monotonic)
    };
    let of = |data| Metric { unit: "s".to_owned(), ..metric("m", data) };
    let point = NumberDataPoint { start_time_unix_nano: NOW - 1, ..double(1.0) };
    let sum = |temporality: i32, is_monotonic| {
        let data_points = vec![point.clone()];
        let sum = Sum { data_points, aggregation_temporality: temporality, is_monotonic };
        records_of(of(Data::Sum(sum))).remove(0)
    };
    assert_eq!(meaning(&sum(1, true)), (NOW - 1, 1, Some(true)));
    assert_eq!(meaning(&sum(2, false)), (NOW - 1, 2, Some(false)));
    assert_eq!(meaning(&sum(0, false)), (NOW - 1, 0, Some(false)));
    let unknown = sum(3, true);
    assert_eq!((meaning(&unknown).1, unknown.dropped_attributes_count), (0, 1));
    let gauge = Gauge { data_points: vec![point.clone()] };
    assert_eq!(meaning(&records_of(of(Data::Gauge(gauge))).remove(0)), (NOW - 1, 0, None));

    let point = HistogramDataPoint {
        time_unix_nano: NOW,
        start_time_unix_nano: NOW - 2,
        bucket_counts: vec![1],
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram { data_points: vec![point], aggregation_temporality: 1 };
    let point = ExponentialHistogramDataPoint {
        time_unix_nano: NOW,
        start_time_unix_nano: NOW - 2,
        zero_count: 1,
        ..ExponentialHistogramDataPoint::default()
    };
    let powers = ExponentialHistogram { data_points: vec![point], aggregation_temporality: 1 };
    for data in [Data::Histogram(histogram), Data::ExponentialHistogram(powers)] {
        let records = records_of(of(data));
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|record| meaning(record) == (NOW - 2, 1, None)));
    }
}

#[test]
fn a_label_of_ours_replaces_no_attribute_of_a_point() {
    let attributes =
        vec![pair("unit", "mine"), pair("le", "mine"), pair("exported_le", "x"), pair("le", "b")];
    let point = HistogramDataPoint {
        time_unix_nano: NOW,
        attributes,
        count: 1,
        bucket_counts: vec![1],
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram { data_points: vec![point], ..Histogram::default() };
    let with_unit = Metric { unit: "s".to_owned(), ..metric("h", Data::Histogram(histogram)) };

    let (records, rejected) = exported(vec![with_unit]);

    let own = "exported_exported_le=b,exported_le=x";
    let expected =
        [format!("h.count{{{own},unit=mine}} 1"), format!("h.bucket{{{own},le=inf,unit=mine}} 1")];
    assert_eq!(records, expected);
    assert_eq!(rejected.count, 0);
    let labelled = NumberDataPoint { attributes: vec![pair("le", "mine")], ..double(1.0) };
    assert_eq!(exported(vec![gauge(vec![labelled])]).0, ["g{le=mine} 1"]);
}

#[test]
fn buckets_are_cumulative_with_their_upper_bounds() {
    let point = HistogramDataPoint {
        time_unix_nano: NOW,
        count: 7,
        sum: Some(12.5),
        min: Some(0.5),
        bucket_counts: vec![1, 0, 6],
        explicit_bounds: vec![1.0, 2.5],
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram { data_points: vec![point], ..Histogram::default() };

    let (records, _) = exported(vec![metric("h", Data::Histogram(histogram))]);

    assert_eq!(
        records,
        [
            "h.count{} 7",
            "h.sum{} 12.5",
            "h.min{} 0.5",
            "h.bucket{le=1} 1",
            "h.bucket{le=2.5} 1",
            "h.bucket{le=inf} 7",
        ]
    );
}

#[test]
fn buckets_of_powers_are_ordered_from_the_most_negative() {
    let buckets = |offset, bucket_counts| Some(Buckets { offset, bucket_counts });
    let point = ExponentialHistogramDataPoint {
        time_unix_nano: NOW,
        count: 10,
        scale: 0,
        zero_count: 2,
        positive: buckets(0, vec![3, 0, 1]),
        negative: buckets(1, vec![4]),
        ..ExponentialHistogramDataPoint::default()
    };
    let histogram = ExponentialHistogram { data_points: vec![point], ..Default::default() };

    let (records, _) = exported(vec![metric("e", Data::ExponentialHistogram(histogram))]);

    // The negative one has values from -4 to -2, the positive ones from 1 to 2 and from 4 to 8.
    assert_eq!(
        records,
        [
            "e.count{} 10",
            "e.bucket{le=-2} 4",
            "e.bucket{le=0} 6",
            "e.bucket{le=2} 9",
            "e.bucket{le=8} 10"
        ]
    );
}

#[test]
fn scales_and_offsets_at_their_ends_do_not_panic() {
    for (scale, offset) in [(i32::MIN, i32::MIN), (i32::MAX, i32::MAX), (-2_000, 0), (20, i32::MAX)]
    {
        let buckets = Some(Buckets { offset, bucket_counts: vec![1, u64::MAX] });
        let point = ExponentialHistogramDataPoint {
            time_unix_nano: NOW,
            scale,
            positive: buckets.clone(),
            negative: buckets,
            ..ExponentialHistogramDataPoint::default()
        };
        let histogram = ExponentialHistogram { data_points: vec![point], ..Default::default() };
        let (records, rejected) =
            exported(vec![metric("e", Data::ExponentialHistogram(histogram))]);
        assert_eq!((records.len(), rejected.count), (5, 0), "{scale} {offset}");
        // The total of the buckets stops at the greatest number.
        assert!(records[4].ends_with(" 18446744073709552000"), "{}", records[4]);
    }
}

#[test]
fn quantiles_are_labels() {
    let at = |quantile, value| ValueAtQuantile { quantile, value };
    let point = SummaryDataPoint {
        time_unix_nano: NOW,
        count: 2,
        sum: 3.0,
        quantile_values: vec![at(0.5, 1.0), at(0.99, 2.0)],
        ..SummaryDataPoint::default()
    };
    let summary = Summary { data_points: vec![point] };

    let (records, _) = exported(vec![metric("s", Data::Summary(summary))]);

    assert_eq!(records, ["s.count{} 2", "s.sum{} 3", "s{quantile=0.5} 1", "s{quantile=0.99} 2"]);
}

#[test]
fn a_point_without_a_recorded_value_is_neither_stored_nor_rejected() {
    let points = vec![NumberDataPoint { flags: 1, value: None, ..double(0.0) }, double(1.0)];
    assert_eq!(exported(vec![gauge(points)]), (vec!["g{} 1".to_owned()], Rejected::default()));
}

#[test]
fn a_bad_point_is_rejected_with_all_of_its_numbers() {
    let many = vec![1; 1_025];
    let histogram = |bucket_counts: Vec<u64>| {
        let explicit_bounds = (0_u16..).take(bucket_counts.len() - 1).map(f64::from).collect();
        let point = HistogramDataPoint {
            time_unix_nano: NOW,
            bucket_counts,
            explicit_bounds,
            ..HistogramDataPoint::default()
        };
        metric("h", Data::Histogram(Histogram { data_points: vec![point], ..Default::default() }))
    };
    let late = NumberDataPoint { time_unix_nano: NOW + 2 * DAY, ..double(0.0) };
    let missing = NumberDataPoint { value: None, ..double(0.0) };
    let twice = NumberDataPoint { attributes: vec![pair("a", "x"), pair("a", "y")], ..double(2.0) };

    let (records, rejected) =
        exported(vec![gauge(vec![late, missing, twice, double(1.0)]), histogram(many)]);

    assert_eq!(records, ["g{a=y} 2", "g{} 1"]);
    assert_eq!(rejected.count, 3);
    for part in [
        "resource_metrics[0].scope_metrics[0].metrics[0].data_points[0].time_unix_nano: is out",
        ".metrics[0].data_points[1].value: is missing (metric=`g`)",
        ".metrics[1].data_points[0].buckets: has more than 1024 buckets (metric=`h`)",
    ] {
        assert!(rejected.message.contains(part), "{part}: {}", rejected.message);
    }
    assert_eq!(exported(vec![histogram(vec![1; 1_024])]).1.count, 0);
}

#[test]
fn the_records_of_points_are_bounded_however_often_attributes_repeat() {
    // 1,024 buckets of 60 KB of attributes each: 60 MB of records of a request of 70 KB.
    let point = HistogramDataPoint {
        time_unix_nano: NOW,
        attributes: vec![pair("large", &"x".repeat(60_000))],
        bucket_counts: vec![1; 1_024],
        explicit_bounds: (0_u16..1_023).map(f64::from).collect(),
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram { data_points: vec![point], ..Histogram::default() };

    let (records, rejected) =
        exported(vec![metric("h", Data::Histogram(histogram)), gauge(vec![double(1.0)])]);

    assert_eq!(records, ["g{} 1"]);
    assert_eq!(rejected.count, 1);
    assert!(rejected.message.contains("over 8323072 bytes"), "{}", rejected.message);
}

#[test]
fn a_malformed_resource_rejects_every_point_and_one_without_points_has_no_stream() {
    let bad = Some(Resource { attributes: vec![pair("~", "")], ..Resource::default() });
    let metrics = vec![gauge(vec![double(1.0), double(2.0)]), Metric::default()];
    let request = ResourceMetrics { resource: bad, ..of_resource(metrics) };
    let (batch, rejected) = batch_of::<ResourceMetrics>(&[not_utf8(&request)]);
    assert_eq!((batch, rejected.count), (None, 2));
    assert!(
        rejected.message.starts_with("resource_metrics[0].resource.attributes"),
        "{}",
        rejected.message
    );

    let streams = |resources: &[ResourceMetrics]| {
        let encoded: Vec<_> = resources.iter().map(|it| it.encode_to_vec().into()).collect();
        let streams = resources_by_stream::<ResourceMetrics>(&encoded, stream_of_resource).unwrap();
        streams.into_keys().collect::<Vec<_>>()
    };
    let empty = of_resource(vec![Metric::default(), gauge(Vec::new())]);
    assert!(streams(&[ResourceMetrics::default(), empty]).is_empty());
    let one = of_resource(vec![gauge(vec![double(1.0)])]);
    assert_eq!(streams(&[one]), ["unknown_service"]);
}

#[test]
fn texts_that_are_not_utf8_reject_their_metric_only() {
    let points =
        vec![NumberDataPoint { attributes: vec![pair("k", "~")], ..double(1.0) }, double(2.0)];
    let metrics = vec![gauge(points), metric("~", gauge(vec![double(3.0)]).data.unwrap())];
    let mut request = of_resource(metrics);
    request.scope_metrics.extend(of_resource(vec![gauge(vec![double(4.0)])]).scope_metrics);

    let (batch, rejected) = batch_of::<ResourceMetrics>(&[not_utf8(&request)]);

    assert_eq!((batch.unwrap().records, rejected.count), (1, 3), "{}", rejected.message);
    for at in [0, 1] {
        let text = format!("resource_metrics[0].scope_metrics[0].metrics[{at}]: ");
        assert!(rejected.message.contains(&text), "{text}: {}", rejected.message);
    }
}

#[test]
fn a_malformed_metric_is_rejected_as_one_point() {
    let mut of_scope = Vec::new();
    for metric in
        [b"\xFF".to_vec(), b"\x2A\x01\xFF".to_vec(), gauge(vec![double(1.0)]).encode_to_vec()]
    {
        trestle_proto::wire::put_bytes(&mut of_scope, 2, &metric);
    }
    let mut request = Vec::new();
    trestle_proto::wire::put_bytes(&mut request, 2, &of_scope);

    let (batch, rejected) = batch_of::<ResourceMetrics>(&[request.into()]);

    assert_eq!((batch.unwrap().records, rejected.count), (1, 2), "{}", rejected.message);
}
