//! Telemetry by the protocol of OpenTelemetry.

use prost::Message as _;
use tonic::{Code, Request};
use trestle_proto::log::v1::{
    ReadRecordsRequest,
    wire::{ExportLogsServiceRequest, ExportMetricsServiceRequest, ExportTraceServiceRequest},
};
use trestle_proto::opentelemetry::proto::{
    collector::{
        logs::v1::{ExportLogsServiceResponse, logs_service_client::LogsServiceClient},
        metrics::v1::metrics_service_client::MetricsServiceClient,
        trace::v1::trace_service_client::TraceServiceClient,
    },
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    metrics::v1::{
        AggregationTemporality, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
        metric::Data, number_data_point,
    },
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, span::SpanKind},
};
use trestle_tests::{CallError, World, log_scenario, log_texts};

use super::an_hour;

log_scenario!(
    logs_go_to_the_stream_of_their_service_which_is_created,
    invalid_parts_are_left_out_and_records_without_them_kept,
    invalid_records_are_rejected_alone_and_counted,
    data_points_are_records_with_a_value,
    a_span_is_a_record_that_its_trace_finds,
);

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value }
}

/// The resource of a service.
pub(super) fn resource(service: &str) -> Option<Resource> {
    let attributes = vec![attribute("service.name", service)];
    Some(Resource { attributes, ..Default::default() })
}

fn log(text: &str) -> LogRecord {
    LogRecord { time_unix_nano: an_hour(), body: attribute("", text).value, ..LogRecord::default() }
}

/// A request with the records of services.
pub(super) fn request(services: &[(&str, Vec<LogRecord>)]) -> ExportLogsServiceRequest {
    let logs = services.iter().map(|(service, log_records)| {
        let scope = Some(InstrumentationScope { name: "lib".to_owned(), ..Default::default() });
        let log_records = log_records.clone();
        let scope_logs = vec![ScopeLogs { scope, log_records, ..Default::default() }];
        let logs = ResourceLogs { resource: resource(service), scope_logs, ..Default::default() };
        logs.encode_to_vec().into()
    });
    ExportLogsServiceRequest { resource_logs: logs.collect() }
}

/// A request with one record.
pub(crate) fn one_log(service: &str, text: &str) -> ExportLogsServiceRequest {
    request(&[(service, vec![log(text)])])
}

/// A request with one span, of a quarter of a second.
pub(super) fn one_span(service: &str, name: &str) -> ExportTraceServiceRequest {
    one_span_of(service, name, &[0xAB; 16])
}

fn one_span_of(service: &str, name: &str, trace: &[u8]) -> ExportTraceServiceRequest {
    let span = Span {
        trace_id: trace.to_vec().into(),
        span_id: vec![0xCD; 8].into(),
        name: name.to_owned(),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: an_hour(),
        end_time_unix_nano: an_hour() + 250_000_000,
        ..Span::default()
    };
    let scope_spans = vec![ScopeSpans { spans: vec![span], ..Default::default() }];
    let resource = resource(service);
    let spans = ResourceSpans { resource, scope_spans, ..Default::default() };
    ExportTraceServiceRequest { resource_spans: vec![spans.encode_to_vec().into()] }
}

async fn export(
    world: &World,
    request: impl tonic::IntoRequest<ExportLogsServiceRequest>,
) -> Result<ExportLogsServiceResponse, CallError> {
    let mut client = LogsServiceClient::new(world.transport());
    Ok(client.export(request).await?.into_inner())
}

async fn logs_go_to_the_stream_of_their_service_which_is_created(world: &World) {
    let sent = request(&[("Check Out", vec![log("a"), log("b")]), ("web", vec![log("c")])]);

    let response = export(world, sent.clone()).await.unwrap();

    assert_eq!(response.partial_success, None);
    let records = world.existing_log_stream("check-out").read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["a", "b"]);
    assert_eq!(records[0].resource["service.name"], attribute("", "Check Out").value.unwrap());
    assert_eq!(records[0].scope.as_ref().unwrap().name, "lib");
    assert_eq!(world.existing_log_stream("web").read().await.unwrap().records.len(), 1);

    let mut named = Request::new(sent);
    named.metadata_mut().insert("trestle-log-stream", "all".parse().unwrap());
    export(world, named).await.unwrap();
    let all = world.existing_log_stream("all").read().await.unwrap().records;
    assert_eq!(log_texts(&all), ["a", "b", "c"]);

    assert_eq!(export(world, request(&[])).await.unwrap().partial_success, None);
    let empty = ResourceLogs::default();
    let empty = ExportLogsServiceRequest {
        resource_logs: vec![prost::Message::encode_to_vec(&empty).into()],
    };
    assert_eq!(export(world, empty).await.unwrap().partial_success, None);
    let mut misnamed = Request::new(request(&[]));
    misnamed.metadata_mut().insert("trestle-log-stream", "No Name".parse().unwrap());
    let error = export(world, misnamed).await.unwrap_err();
    assert_eq!(
        (error.code, error.fields),
        (Code::InvalidArgument, vec!["trestle-log-stream".to_owned()])
    );
}

async fn invalid_parts_are_left_out_and_records_without_them_kept(world: &World) {
    let twice = vec![attribute("a", "1"), attribute("a", "2"), attribute("", "3")];
    let records = vec![
        LogRecord { attributes: twice, ..log("duplicate") },
        LogRecord { trace_id: vec![1; 3].into(), span_id: vec![0; 8].into(), ..log("trace") },
    ];

    let response = export(world, request(&[("web", records)])).await.unwrap();

    assert_eq!(response.partial_success, None);
    let stream = world.existing_log_stream("web");
    for _ in 0..2 {
        let stored = stream.read().await.unwrap().records;
        assert_eq!(log_texts(&stored), ["duplicate", "trace"]);
        let kept = ("a".to_owned(), attribute("", "2").value.unwrap());
        assert_eq!(stored[0].attributes, [kept].into());
        assert_eq!(stored[0].dropped_attributes_count, 2);
        assert!(stored[1].trace_id.is_empty() && stored[1].span_id.is_empty());
        stream.flush().await.unwrap();
    }
}

async fn invalid_records_are_rejected_alone_and_counted(world: &World) {
    let invalid = [
        LogRecord { time_unix_nano: u64::MAX, ..log("future") },
        LogRecord { time_unix_nano: u64::MAX, ..log("future too") },
    ];
    let records = [vec![log("first")], invalid.to_vec(), vec![log("last")]].concat();

    let response = export(world, request(&[("web", records)])).await.unwrap();

    let partial = response.partial_success.unwrap();
    assert_eq!(partial.rejected_log_records, 2);
    assert!(partial.error_message.contains("time_unix_nano"), "{}", partial.error_message);
    let stored = world.existing_log_stream("web").read().await.unwrap().records;
    assert_eq!(log_texts(&stored), ["first", "last"]);

    // Text that is not UTF-8 within a record, and bytes that are not a message at all.
    let mut damaged = request(&[("web", vec![log("~~~~")])]);
    let bytes = damaged.resource_logs[0].iter().map(|b| if *b == b'~' { 0xFF } else { *b });
    damaged.resource_logs[0] = bytes.collect::<Vec<_>>().into();
    let partial = export(world, damaged).await.unwrap().partial_success.unwrap();
    assert_eq!(partial.rejected_log_records, 1);
    let garbage = ExportLogsServiceRequest { resource_logs: vec![vec![0xFF; 20].into()] };
    let error = export(world, garbage).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_RECORD"));
}

async fn data_points_are_records_with_a_value(world: &World) {
    let point = |value: f64| NumberDataPoint {
        time_unix_nano: an_hour(),
        start_time_unix_nano: 7,
        attributes: vec![attribute("cpu", "0")],
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    };
    let metric = Metric {
        name: "load".to_owned(),
        unit: "1".to_owned(),
        data: Some(Data::Sum(Sum {
            data_points: vec![point(0.5), point(0.25)],
            aggregation_temporality: AggregationTemporality::Cumulative.into(),
            is_monotonic: true,
        })),
        ..Metric::default()
    };
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..Default::default() }];
    let metrics =
        ResourceMetrics { resource: resource("web"), scope_metrics, ..Default::default() };
    let resource_metrics = vec![metrics.encode_to_vec().into()];
    let request = ExportMetricsServiceRequest { resource_metrics };

    let mut client = MetricsServiceClient::new(world.transport());
    let response = client.export(request).await.unwrap().into_inner();

    assert_eq!(response.partial_success, None);
    let stream = world.existing_log_stream("web.metrics");
    for _ in 0..2 {
        let records = stream.read().await.unwrap().records;
        let values: Vec<_> = records.iter().map(|record| record.value.unwrap()).collect();
        assert_eq!(values, [0.5, 0.25]);
        assert_eq!(records[0].event_name, "load");
        assert_eq!(records[0].attributes["cpu"], attribute("", "0").value.unwrap());
        assert_eq!((records[0].unit.as_str(), records[0].temporality), ("1", 2));
        assert_eq!((records[0].is_monotonic, records[0].start_time_unix_nano), (Some(true), 7));
        stream.flush().await.unwrap();
    }
}

async fn a_span_is_a_record_that_its_trace_finds(world: &World) {
    let mut client = TraceServiceClient::new(world.transport());
    let response = client.export(one_span("web", "GET /pay")).await.unwrap().into_inner();
    assert_eq!(response.partial_success, None);

    let stream = world.existing_log_stream("web.traces");
    for _ in 0..2 {
        let of_trace = async |hex: &str| {
            let filter = format!("trace_id eq '{}' and value lt 1", hex.repeat(16));
            let read = ReadRecordsRequest { filter, ..stream.reading() };
            stream.read_with(read).await.unwrap().records
        };
        let found = of_trace("ab").await;
        assert_eq!(log_texts(&found), ["GET /pay"]);
        assert_eq!((found[0].value, &found[0].span_id[..]), (Some(0.25), &[0xCD; 8][..]));
        assert_eq!(found[0].attributes["span.kind"], attribute("", "server").value.unwrap());
        assert!(of_trace("cd").await.is_empty());
        stream.flush().await.unwrap();
    }

    let bad = one_span_of("web", "bad", &[1; 3]);
    let partial = client.export(bad).await.unwrap().into_inner().partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(
        partial.error_message.contains("scope_spans[0].spans[0].trace_id"),
        "{}",
        partial.error_message
    );
}
