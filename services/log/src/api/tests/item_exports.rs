//! Exports of metrics and of traces: streams beside that of the logs of a service.

use trestle_proto::{
    log::v1::wire::{ExportMetricsServiceRequest, ExportTraceServiceRequest},
    opentelemetry::proto::{
        collector::{
            metrics::v1::metrics_service_server::MetricsService,
            trace::v1::trace_service_server::TraceService,
        },
        metrics::v1::{
            Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
            number_data_point,
        },
        trace::v1::{ResourceSpans, ScopeSpans, Span, span::Event},
    },
};

use super::{
    exports::{names, resource},
    *,
};
use crate::fixture::{SECOND, START, texts};

#[tokio::test]
async fn metrics_have_streams_of_their_own() {
    let api = api();
    let point = |value| NumberDataPoint {
        time_unix_nano: START,
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    };
    let late = NumberDataPoint { time_unix_nano: u64::MAX, ..point(2.0) };
    let gauge = Gauge { data_points: vec![point(1.5), late] };
    let metric =
        Metric { name: "cpu".to_owned(), data: Some(Data::Gauge(gauge)), ..Metric::default() };
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    let of = |service: &str| ResourceMetrics {
        resource: resource(service),
        scope_metrics: scope_metrics.clone(),
        ..ResourceMetrics::default()
    };
    let long = "x".repeat(200);
    let resource_metrics = [of("web"), of(&long)].map(|it| it.encode_to_vec().into()).into();
    let request = ExportMetricsServiceRequest { resource_metrics };

    let answer = MetricsService::export(&api, Request::new(request)).await.unwrap();
    let answer = answer.into_inner();

    let partial = answer.partial_success.unwrap();
    assert_eq!(partial.rejected_data_points, 2);
    assert!(
        partial.error_message.contains("metrics[0].data_points[1].time_unix_nano"),
        "{partial:?}"
    );
    assert_eq!(names(&api).await, ["web.metrics".to_owned(), "x".repeat(120) + ".metrics"]);
    let points = records_of(&read(&api, read_of("web.metrics")).await.unwrap());
    let values: Vec<_> =
        points.iter().map(|point| (point.event_name.as_str(), point.value)).collect();
    assert_eq!(values, [("cpu", Some(1.5))]);
}

fn spans(service: &str, names: &[&str]) -> ResourceSpans {
    let events = vec![Event { name: "e".to_owned(), time_unix_nano: START, ..Event::default() }];
    let span = |name: &&str| Span {
        trace_id: vec![7; 16].into(),
        span_id: vec![8; 8].into(),
        name: (*name).to_owned(),
        start_time_unix_nano: START,
        end_time_unix_nano: START + SECOND,
        events: events.clone(),
        ..Span::default()
    };
    let spans = names.iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    ResourceSpans { resource: resource(service), scope_spans, ..ResourceSpans::default() }
}

fn request(resource_spans: &[ResourceSpans]) -> ExportTraceServiceRequest {
    let encoded = resource_spans.iter().map(|it| it.encode_to_vec().into());
    ExportTraceServiceRequest { resource_spans: encoded.collect() }
}

#[tokio::test]
async fn a_rejected_span_is_named_by_its_place_in_the_request() {
    let api = api();
    let mut last = spans("web", &["kept"]);
    last.scope_spans.extend(spans("web", &["kept too", "bad"]).scope_spans);
    last.scope_spans[1].spans[1].span_id = vec![1].into();
    let request = request(&[spans("web", &["a"]), spans("api", &["b"]), last]);

    let answer = TraceService::export(&api, Request::new(request)).await.unwrap();

    let partial = answer.into_inner().partial_success.unwrap();
    let text = "resource_spans[2].scope_spans[1].spans[1].span_id: ";
    assert!(partial.error_message.starts_with(text), "{partial:?}");
}

#[tokio::test]
async fn an_export_whose_spans_are_all_rejected_creates_no_stream() {
    let api = api();
    let mut bad = spans("web", &["bad"]);
    bad.scope_spans[0].spans[0].trace_id = vec![0; 16].into();

    let answer = TraceService::export(&api, Request::new(request(&[bad]))).await.unwrap();

    assert_eq!(answer.into_inner().partial_success.unwrap().rejected_spans, 1);
    assert_eq!(names(&api).await, [""; 0]);
}

#[tokio::test]
async fn spans_have_streams_of_their_own_unless_the_request_names_one() {
    let api = api();
    let request = request(&[spans("web", &["a", "b"]), spans("api", &["c"])]);
    let mut named = Request::new(request.clone());
    named.metadata_mut().insert("trestle-log-stream", "all".parse().unwrap());

    for request in [Request::new(request), named] {
        let answer = TraceService::export(&api, request).await.unwrap();
        assert_eq!(answer.into_inner().partial_success, None);
    }

    assert_eq!(names(&api).await, ["all", "api.traces", "web.traces"]);
    let all = records_of(&read(&api, read_of("all")).await.unwrap());
    assert_eq!(texts(&all), ["a", "e", "b", "e", "c", "e"]);
    let durations: Vec<_> = all.iter().filter_map(|record| record.value).collect();
    assert_eq!(durations, [1.0; 3]);
    let of_trace = proto::ReadRecordsRequest {
        filter: format!("trace_id eq '{}' and body eq 'b'", "07".repeat(16)),
        ..read_of("web.traces")
    };
    assert_eq!(records_of(&read(&api, of_trace).await.unwrap()).len(), 1);
}

#[tokio::test]
async fn a_rejected_span_is_a_partial_success_without_its_events() {
    let api = api();
    let mut bad = spans("web", &["kept", "bad", "kept too"]);
    bad.scope_spans[0].spans[1].span_id = vec![1].into();

    let answer = TraceService::export(&api, Request::new(request(&[bad]))).await.unwrap();

    let partial = answer.into_inner().partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(
        partial.error_message.starts_with("resource_spans[0].scope_spans[0].spans[1].span_id"),
        "{partial:?}"
    );
    let found = records_of(&read(&api, read_of("web.traces")).await.unwrap());
    assert_eq!(texts(&found), ["kept", "e", "kept too", "e"]);
}

#[tokio::test]
async fn an_export_of_spans_to_too_many_streams_stores_nothing() {
    let api = api();
    let resource_spans: Vec<_> = (0..1_001).map(|at| spans(&format!("s{at}"), &["a"])).collect();

    let request = Request::new(request(&resource_spans));
    let status = TraceService::export(&api, request).await.unwrap_err();

    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(violated(&status), ["resource_spans"]);
    assert!(names(&api).await.is_empty());
}
