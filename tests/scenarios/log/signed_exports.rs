//! Exports by holders of a signature of one stream: metrics and traces, by gRPC and by HTTP with JSON, and the header
//! that names a stream.

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode, Version, header};
use prost::Message as _;
use tonic::Code;
use trestle_identity::sas::Scope;
use trestle_proto::{
    log::v1::wire::ExportMetricsServiceRequest,
    opentelemetry::proto::{
        collector::{
            logs::v1::logs_service_client::LogsServiceClient,
            metrics::v1::metrics_service_client::MetricsServiceClient,
            trace::v1::trace_service_client::TraceServiceClient,
        },
        metrics::v1::{
            Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
            number_data_point,
        },
    },
};
use trestle_tests::{CallError, World, log_scenario, log_texts, terms, token};

use super::{
    an_hour,
    export::{one_log, one_span, resource},
};

log_scenario!(
    metrics_and_traces_with_a_stream_sas_go_to_its_stream_only,
    json_over_http_with_a_stream_sas_goes_to_its_stream_only,
    the_header_of_an_export_names_the_stream_that_its_sas_must_be_of,
);

const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const FAILURE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");
const STREAM_HEADER: HeaderName = HeaderName::from_static("trestle-log-stream");

/// The outcome of a call without its response.
type Called = Result<(), (Code, String)>;

fn denied((code, reason): (Code, &str)) -> Called {
    Err((code, reason.to_owned()))
}

fn outcome<T>(called: Result<T, tonic::Status>) -> Called {
    called.map(drop).map_err(|status| {
        let error = CallError::from(status);
        (error.code, error.reason)
    })
}

/// The world of a holder of a signature over a stream.
fn held(world: &World, stream: &str, permissions: &str) -> World {
    world.signed(&token(terms(Scope::of_log(stream), permissions)))
}

/// A request with one data point.
fn one_point(service: &str) -> ExportMetricsServiceRequest {
    let point = NumberDataPoint {
        time_unix_nano: an_hour(),
        value: Some(number_data_point::Value::AsDouble(0.5)),
        ..NumberDataPoint::default()
    };
    let data = Some(Data::Gauge(Gauge { data_points: vec![point] }));
    let metric = Metric { name: "load".to_owned(), data, ..Metric::default() };
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    let resource = resource(service);
    let metrics = ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![metrics.encode_to_vec().into()] }
}

/// How many records a stream has; none where it does not exist.
async fn count(world: &World, stream: &str) -> Option<usize> {
    match world.existing_log_stream(stream).read().await {
        Ok(read) => Some(read.records.len()),
        Err(error) => {
            assert_eq!(error.reason, "LOG_STREAM_NOT_FOUND");
            None
        }
    }
}

async fn metrics_and_traces_with_a_stream_sas_go_to_its_stream_only(world: &World) {
    let metrics = async |stream: &str, permissions: &str| {
        let mut client = MetricsServiceClient::new(held(world, stream, permissions).transport());
        outcome(client.export(one_point("web")).await)
    };
    let traces = async |stream: &str, permissions: &str| {
        let mut client = TraceServiceClient::new(held(world, stream, permissions).transport());
        outcome(client.export(one_span("web", "GET /pay")).await)
    };
    for other in ["web", "web.traces"] {
        assert_eq!(metrics(other, "rac").await, denied(FAILURE), "{other}");
    }
    for other in ["web", "web.metrics"] {
        assert_eq!(traces(other, "rac").await, denied(FAILURE), "{other}");
    }
    for letters in ["a", "rc"] {
        assert_eq!(metrics("web.metrics", letters).await, denied(NO_PERMISSION), "{letters}");
        assert_eq!(traces("web.traces", letters).await, denied(NO_PERMISSION), "{letters}");
    }
    for stream in ["web", "web.metrics", "web.traces"] {
        assert_eq!(count(world, stream).await, None, "nothing was created: {stream}");
    }

    for letters in ["ac", "a"] {
        assert_eq!(metrics("web.metrics", letters).await, Ok(()), "{letters}");
        assert_eq!(traces("web.traces", letters).await, Ok(()), "{letters}");
    }

    for (stream, records) in [("web", None), ("web.metrics", Some(2)), ("web.traces", Some(2))] {
        assert_eq!(count(world, stream).await, records, "{stream}");
    }
}

/// The paths of exports by HTTP, each with the stream of the service `web` and an item of that service in JSON.
fn in_json() -> [(&'static str, &'static str, String); 3] {
    let resource =
        r#""resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}}]}"#;
    let (time, ids) = (an_hour(), (format!("{:032x}", 1), format!("{:016x}", 1)));
    let log = format!(r#"{{"timeUnixNano":"{time}","body":{{"stringValue":"x"}}}}"#);
    let point = format!(r#"{{"timeUnixNano":"{time}","asDouble":0.5}}"#);
    let metric = format!(r#"{{"name":"load","gauge":{{"dataPoints":[{point}]}}}}"#);
    let (trace, span) = ids;
    let times = format!(r#""startTimeUnixNano":"{time}","endTimeUnixNano":"{time}""#);
    let span = format!(r#"{{"traceId":"{trace}","spanId":"{span}","name":"x",{times}}}"#);
    let request = |of_resources: &str, of_scopes: &str, items: &str, item: &str| {
        let scopes = format!(r#""{of_scopes}":[{{"{items}":[{item}]}}]"#);
        format!(r#"{{"{of_resources}":[{{{resource},{scopes}}}]}}"#)
    };
    [
        ("/v1/logs", "web", request("resourceLogs", "scopeLogs", "logRecords", &log)),
        (
            "/v1/metrics",
            "web.metrics",
            request("resourceMetrics", "scopeMetrics", "metrics", &metric),
        ),
        ("/v1/traces", "web.traces", request("resourceSpans", "scopeSpans", "spans", &span)),
    ]
}

/// The response to an export by HTTP of the holder of a token.
async fn post(
    world: &World,
    (path, kind, body): (&str, &str, Bytes),
    token: &str,
    stream: Option<&str>,
) -> Response<Bytes> {
    let request = Request::post(path).header(header::CONTENT_TYPE, kind);
    let request = request.header(header::AUTHORIZATION, format!("SharedAccessSignature {token}"));
    let request = stream.into_iter().fold(request, |it, name| it.header(STREAM_HEADER, name));
    world.http(Version::HTTP_11, request.body(body).unwrap()).await.unwrap()
}

async fn json_over_http_with_a_stream_sas_goes_to_its_stream_only(world: &World) {
    for (path, stream, body) in in_json() {
        let export = async |signed: &str, permissions: &str| {
            let token = token(terms(Scope::of_log(signed), permissions));
            let body = body.clone().into();
            post(world, (path, "application/json", body), &token, None).await
        };
        for (signed, permissions) in [("other", "rac"), (stream, "rc"), (stream, "a")] {
            let denied = export(signed, permissions).await;
            assert_eq!(denied.status(), StatusCode::FORBIDDEN, "{path} {signed} {permissions}");
            let status: serde_json::Value = serde_json::from_slice(denied.body()).unwrap();
            assert_eq!(status["code"], i32::from(Code::PermissionDenied), "{path}: {status}");
            assert_eq!(count(world, stream).await, None, "{path} {signed} {permissions}");
        }

        for permissions in ["ac", "a"] {
            let stored = export(stream, permissions).await;
            assert_eq!(stored.status(), StatusCode::OK, "{path}: {stored:?}");
        }

        assert_eq!(count(world, stream).await, Some(2), "{path}");
        assert_eq!(count(world, "other").await, None, "{path}");
    }
}

async fn the_header_of_an_export_names_the_stream_that_its_sas_must_be_of(world: &World) {
    let export = async |signed: &str, header: Option<&str>, service: &str| {
        let world = held(world, signed, "ac");
        let world = match header {
            Some(name) => world.with_header(STREAM_HEADER, name),
            None => world,
        };
        let mut client = LogsServiceClient::new(world.transport());
        outcome(client.export(one_log(service, service)).await)
    };
    assert_eq!(export("web", None, "api").await, denied(FAILURE));
    assert_eq!(export("web", Some("api"), "web").await, denied(FAILURE));
    assert_eq!(export("web", Some("web.traces"), "web").await, denied(FAILURE));
    assert_eq!(export("web", Some("web"), "api").await, Ok(()));
    assert_eq!(export("web", Some("web"), "web").await, Ok(()));

    let token = token(terms(Scope::of_log("web"), "a"));
    for (header, status) in [
        (Some("web"), StatusCode::OK),
        (Some("api"), StatusCode::FORBIDDEN),
        (None, StatusCode::FORBIDDEN),
    ] {
        let body = one_log("http", "http").encode_to_vec().into();
        let logs = ("/v1/logs", "application/x-protobuf", body);
        let response = post(world, logs, &token, header).await;
        assert_eq!(response.status(), status, "{header:?}: {response:?}");
    }

    let records = world.existing_log_stream("web").read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["api", "web", "http"]);
    for other in ["api", "web.traces", "http"] {
        assert_eq!(count(world, other).await, None, "nothing was created: {other}");
    }
}
