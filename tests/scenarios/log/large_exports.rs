//! Exports of telemetry over 8 MiB, where `limits.export_bytes_max` allows them.

use std::collections::BTreeSet;

use http::{Request, StatusCode, header};
use prost::Message as _;
use tonic::Code;
use trestle_proto::{
    log::v1::{Record, wire::ExportLogsServiceRequest},
    opentelemetry::proto::{
        collector::{
            logs::v1::{ExportLogsServiceResponse, logs_service_client::LogsServiceClient},
            trace::v1::trace_service_client::TraceServiceClient,
        },
        common::v1::{AnyValue, KeyValue, any_value::Value},
        logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
        trace::v1::{ResourceSpans, ScopeSpans, Span},
    },
    table::v1::ListTablesRequest,
};
use trestle_tests::{CallError, World};

use super::{an_hour, export::request, export_http::gzipped};

/// The setting of the tests.
const EXPORT_BYTES: &str = "20971520";
/// Bytes of the text of a record.
const TEXT_BYTES: usize = 100_000;

async fn world() -> World {
    World::over_loopback_with(&[("TRESTLE__LIMITS__EXPORT_BYTES_MAX", EXPORT_BYTES)]).await
}

fn text(index: usize, bytes: usize) -> AnyValue {
    let text = format!("{index:06}{}", "x".repeat(bytes - 6));
    AnyValue { value: Some(Value::StringValue(text)) }
}

/// A request with so many records of the service `web`.
fn logs(count: usize) -> ExportLogsServiceRequest {
    let log = |index| {
        let body = Some(text(index, TEXT_BYTES));
        LogRecord { time_unix_nano: an_hour(), body, ..LogRecord::default() }
    };
    request(&[("web", (0..count).map(log).collect())])
}

/// Which records have been read, by the number that their text begins with.
fn numbers(records: &[Record]) -> BTreeSet<usize> {
    let number = |record: &Record| match &record.body.as_ref().unwrap().value {
        Some(Value::StringValue(text)) => text[..6].parse().unwrap(),
        other => panic!("{other:?}"),
    };
    records.iter().map(number).collect()
}

async fn export(
    world: &World,
    request: ExportLogsServiceRequest,
) -> Result<ExportLogsServiceResponse, CallError> {
    let mut client = LogsServiceClient::new(world.transport());
    Ok(client.export(request).await?.into_inner())
}

/// Exports by HTTP; the status and the body of the response.
async fn post(world: &World, kind: &str, encoding: &str, body: Vec<u8>) -> (StatusCode, String) {
    let request = Request::post("/v1/logs")
        .header(header::CONTENT_TYPE, kind)
        .header(header::CONTENT_ENCODING, encoding)
        .body(body.into())
        .unwrap();
    let response = world.http(http::Version::HTTP_11, request).await.unwrap();
    (response.status(), String::from_utf8_lossy(response.body()).into_owned())
}

#[tokio::test]
async fn an_export_over_8_mib_is_stored_whole_or_rejected_by_the_setting() {
    let (allowed, by_default) = (world().await, World::over_loopback().await);

    let response = export(&allowed, logs(180)).await.unwrap();
    assert_eq!(response.partial_success, None);
    let stream = allowed.existing_log_stream("web");
    assert_eq!(numbers(&stream.read().await.unwrap().records), (0..180).collect());
    stream.flush().await.unwrap();
    assert_eq!(numbers(&stream.read().await.unwrap().records), (0..180).collect());

    let error = export(&allowed, logs(220)).await.unwrap_err();
    let kind = (Code::ResourceExhausted, "RPC_MESSAGE_TOO_LARGE");
    assert_eq!(error.kind(), kind);
    assert!(error.message.contains("at most 20971520 bytes"), "{error:?}");
    let error = export(&by_default, logs(90)).await.unwrap_err();
    assert_eq!(error.kind(), kind);
    assert!(error.message.contains("at most 8388608 bytes"), "{error:?}");
}

#[tokio::test]
async fn an_export_over_8_mib_by_http_is_stored_whole_or_rejected_by_the_setting() {
    let world = world().await;
    let protobuf = "application/x-protobuf";
    let json = |count: usize| {
        let log = |index: usize| {
            let text = format!("{index:06}{}", "x".repeat(TEXT_BYTES - 6));
            format!(r#"{{"body":{{"stringValue":"{text}"}}}}"#)
        };
        let logs = (0..count).map(log).collect::<Vec<_>>().join(",");
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{logs}]}}]}}]}}"#).into_bytes()
    };
    for (kind, encoding, small, large) in [
        (protobuf, "identity", logs(150).encode_to_vec(), logs(220).encode_to_vec()),
        (protobuf, "gzip", gzipped(logs(150).encode_to_vec()), gzipped(logs(220).encode_to_vec())),
        ("application/json", "identity", json(150), json(220)),
        ("application/json", "gzip", gzipped(json(150)), gzipped(json(220))),
    ] {
        let (status, body) = post(&world, kind, encoding, small).await;
        assert_eq!(status, StatusCode::OK, "{kind} {encoding}: {body}");
        let (status, body) = post(&world, kind, encoding, large).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{kind} {encoding}: {body}");
        assert!(body.contains("at most 20971520 bytes"), "{kind} {encoding}: {body}");
    }
    for (stream, times) in [("web", 2), ("unknown_service", 2)] {
        let records = world.existing_log_stream(stream).read().await.unwrap().records;
        assert_eq!((numbers(&records), records.len()), ((0..150).collect(), 150 * times));
    }
}

/// A request with spans of a service, of which some have so many attributes.
fn spans(attributes: &[usize]) -> Vec<u8> {
    let span = |count: &usize| Span {
        trace_id: vec![0xAB; 16].into(),
        span_id: vec![0xCD; 8].into(),
        name: format!("with {count}"),
        start_time_unix_nano: an_hour(),
        end_time_unix_nano: an_hour() + 1,
        attributes: vec![KeyValue::default(); *count],
        ..Span::default()
    };
    let spans = attributes.iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    ResourceSpans { scope_spans, ..ResourceSpans::default() }.encode_to_vec()
}

#[tokio::test]
async fn a_span_with_too_many_parts_is_rejected_alone() {
    let world = World::in_process().await;
    let resource_spans = vec![spans(&[300_001, 1, 200_000, 200_000]).into()];
    let request = trestle_proto::log::v1::wire::ExportTraceServiceRequest { resource_spans };

    let response = TraceServiceClient::new(world.transport()).export(request).await.unwrap();

    let partial = response.into_inner().partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1, "{partial:?}");
    let text = "resource_spans[0].scope_spans[0].spans[0]: has over 300000 elements";
    assert!(partial.error_message.contains(text), "{partial:?}");
    let records = world.existing_log_stream("unknown_service.traces").read().await.unwrap();
    assert_eq!(records.records.len(), 3);
}

#[tokio::test]
async fn other_messages_keep_their_limit() {
    let world = world().await;
    let request = ListTablesRequest { page_token: "x".repeat(9 << 20), ..Default::default() };

    let error = CallError::from(world.client().list_tables(request).await.unwrap_err());

    assert_eq!(error.kind(), (Code::ResourceExhausted, "RPC_MESSAGE_TOO_LARGE"));
    assert!(error.message.contains("at most 8388608 bytes"), "{error:?}");
    let logs = ResourceLogs { scope_logs: vec![ScopeLogs::default()], ..Default::default() };
    let request = ExportLogsServiceRequest { resource_logs: vec![logs.encode_to_vec().into()] };
    assert!(export(&world, request).await.is_ok(), "the connection goes on");
}
