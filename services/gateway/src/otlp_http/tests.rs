use std::{
    io::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use http_body_util::Full;
use tonic_types::ErrorDetails;
use tower::{Layer as _, service_fn};
use trestle_model::limits::MESSAGE_BYTES_MAX;
use trestle_proto::opentelemetry::proto::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceResponse,
};
use trestle_rpc::layer::body_bytes::{BodyBounds, BodyBytesLayer, Unframed};
use trestle_rpc::layer::methods::Methods;

use super::{
    body_type::{JSON, PROTOBUF},
    *,
};

const METHOD: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const LOGS: &OtlpPath = &PATHS[0];

fn post(body: &'static [u8]) -> Request {
    let request = Request::new(Body::new(Full::from(body)));
    let (mut parts, body) = request.into_parts();
    parts.method = Method::POST;
    parts.uri = Uri::from_static("/v1/logs");
    parts.headers.insert(header::CONTENT_TYPE, PROTOBUF);
    Request::from_parts(parts, body)
}

fn with_header(mut request: Request, name: HeaderName, value: &'static str) -> Request {
    request.headers_mut().insert(name, HeaderValue::from_static(value));
    request
}

/// The paths and bodies of calls.
type SeenCalls = Arc<Mutex<Vec<(String, Bytes)>>>;

/// A service that keeps the body of its call and answers.
fn answering(answer: fn() -> Response) -> (CallService, SeenCalls) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let service = service_fn(move |request: Request| {
        let kept = Arc::clone(&kept);
        let path = request.uri().path().to_owned();
        let answered: trestle_rpc::layer::ResponseFuture = Box::pin(async move {
            let Ok(body) = request.into_body().collect().await else {
                return Ok(Status::unknown("broken stream").into_http());
            };
            kept.lock().unwrap().push((path, body.to_bytes()));
            Ok(answer())
        });
        answered
    });
    (CallService::new(service), seen)
}

/// A service behind the layers that bound bodies, frame those of unknown length, and translate JSON.
fn framing(calls: CallService) -> CallService {
    let translating = JsonTranslation::layer(MESSAGE_BYTES_MAX).layer(calls);
    let framing = MessageFraming::layer(MESSAGE_BYTES_MAX).layer(translating);
    // Without a pool of bytes a decompressed message is small.
    let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET).unwrap();
    let bounds = BodyBounds::of_services(16 * MESSAGE_BYTES_MAX, Duration::from_secs(60));
    CallService::new(BodyBytesLayer::new(bounds, methods).layer(framing))
}

/// A request with a body in JSON.
fn post_json(body: &'static [u8]) -> Request {
    with_header(post(body), header::CONTENT_TYPE, "Application/JSON; charset=utf-8")
}

fn gzip(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap().into()
}

/// A response with one message.
fn message_of(message: &[u8]) -> Response {
    let prefix = prefix(false, message.len() as u64).unwrap();
    Response::new(Body::new(Full::from([&prefix, message].concat())))
}

async fn body_of(response: Response) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

#[test]
fn the_paths_of_otlp_and_no_others_are_its_requests() {
    let method = |path: &'static str| {
        let mut request = post(b"");
        *request.uri_mut() = Uri::from_static(path);
        path_of(&request).map(|path| path.method)
    };
    // An endpoint that ends with a slash makes two, and some clients add one.
    for path in ["/v1/logs", "/v1/logs/", "//v1/logs", "/v1//logs//"] {
        assert_eq!(method(path), Some(METHOD), "{path}");
    }
    assert_eq!(
        method("/v1/metrics"),
        Some("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
    );
    assert_eq!(
        method("/v1/traces/"),
        Some("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
    );
    for path in ["/", "/v1", "/v1/logs/x", "/v1logs", "/V1/logs", "/x/v1/logs"] {
        assert_eq!(method(path), None, "{path}");
    }
}

#[test]
fn a_request_of_another_verb_type_or_encoding_is_rejected() {
    assert_eq!(check(&post(b"")), Ok(()));
    let mut get = post(b"");
    *get.method_mut() = Method::GET;
    assert_eq!(check(&get), Err(Rejection::METHOD));
    for kind in ["application/jsonl", "application/x-protobuf2", "text/plain", ""] {
        let request = with_header(post(b""), header::CONTENT_TYPE, kind);
        assert_eq!(check(&request), Err(Rejection::CONTENT_TYPE), "{kind}");
    }
    for encoding in ["br", "gzip, gzip", "gzip;q=1", "x-gzip, zstd"] {
        let request = with_header(post(b""), header::CONTENT_ENCODING, encoding);
        assert_eq!(check(&request), Err(Rejection::ENCODING), "{encoding}");
    }
    let mut twice = with_header(post(b""), header::CONTENT_ENCODING, "gzip");
    twice.headers_mut().append(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
    assert_eq!(check(&twice), Err(Rejection::ENCODING));
}

#[test]
fn types_and_encodings_are_those_of_http_in_any_case() {
    for kind in
        ["Application/X-Protobuf; charset=utf-8", "APPLICATION/X-PROTOBUF ;a=b", "application/JSON"]
    {
        let request = with_header(post(b""), header::CONTENT_TYPE, kind);
        assert_eq!(check(&request), Ok(()), "{kind}");
    }
    for (encoding, expected) in [
        ("GZIP", Some("gzip")),
        (" X-Gzip ", Some("gzip")),
        ("gzip, identity", Some("gzip")),
        ("zstd", Some("zstd")),
        ("Deflate", Some("deflate")),
        ("Identity", None),
        ("", None),
    ] {
        let request = with_header(post(b""), header::CONTENT_ENCODING, encoding);
        assert_eq!(check(&request), Ok(()), "{encoding}");
        assert_eq!(encoding_of(request.headers()), Some(expected), "{encoding}");
        let call = into_call(LOGS, BodyType::Protobuf, request).unwrap();
        let encoding = call.headers().get(ENCODING).map(|value| value.to_str().unwrap());
        assert_eq!(encoding, expected);
    }
}

#[tokio::test]
async fn a_rejection_is_a_status_in_the_type_of_the_request() {
    for rejection in [Rejection::METHOD, Rejection::CONTENT_TYPE, Rejection::ENCODING] {
        let response = |kind| {
            let request = with_header(post(b""), header::CONTENT_TYPE, kind);
            rejection.response(request.headers())
        };
        let protobuf = response("Application/x-protobuf");
        let is_allowed = protobuf.headers().get(header::ALLOW).is_some_and(|it| it == "POST");
        assert_eq!(is_allowed, protobuf.status() == StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(protobuf.headers()[header::CONTENT_TYPE], PROTOBUF);
        let status = tonic_types::Status::decode(body_of(protobuf).await).unwrap();
        assert!(!status.message.is_empty() && status.code > 0);

        let json = response("application/json; charset=utf-8");
        assert_eq!(json.headers()[header::CONTENT_TYPE], "application/json");
        let object: serde_json::Value = serde_json::from_slice(&body_of(json).await).unwrap();
        assert_eq!(
            (&object["code"], &object["message"]),
            (&status.code.into(), &status.message.clone().into())
        );

        let other = response("text/html");
        assert_eq!(other.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(body_of(other).await, status.message);
    }
}

#[tokio::test]
async fn a_body_becomes_the_one_message_of_a_call_and_back() {
    let (calls, seen) = answering(|| Response::new(Body::new(Full::from(&b"\0\0\0\0\x02ok"[..]))));

    let answer = export(calls, LOGS, post(b"records")).await;

    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()[header::CONTENT_TYPE], PROTOBUF);
    assert_eq!(body_of(answer).await, &b"ok"[..]);
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [(METHOD.to_owned(), Bytes::from_static(b"\0\0\0\0\x07records"))]);
}

#[tokio::test]
async fn a_compressed_body_stays_compressed() {
    let mut request = post(b"gz");
    request.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));

    let call = into_call(LOGS, BodyType::Protobuf, request).unwrap();

    assert_eq!(call.headers()["grpc-encoding"], "gzip");
    assert!(!call.headers().contains_key(header::CONTENT_ENCODING));
    let body = call.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, &b"\x01\0\0\0\x02gz"[..]);
}

#[tokio::test]
async fn headers_of_grpc_have_no_effect() {
    let mut request = post(b"plain");
    for name in ["grpc-encoding", "grpc-accept-encoding", "grpc-timeout"] {
        request.headers_mut().insert(name, HeaderValue::from_static("1n"));
    }

    let call = into_call(LOGS, BodyType::Protobuf, request).unwrap();

    assert!(!call.headers().contains_key("grpc-encoding"));
    assert!(!call.headers().contains_key("grpc-timeout"));
    // A client of HTTP could not read a compressed message.
    assert_eq!(call.headers()["grpc-accept-encoding"], "identity");
}

#[tokio::test]
async fn a_body_of_unknown_length_has_one_in_the_call() {
    let frames =
        stream::iter([Ok::<_, Status>(http_body::Frame::data(Bytes::from_static(b"abc")))]);
    let request = post(b"").map(|_| Body::new(StreamBody::new(frames)));

    let (calls, seen) = answering(|| Response::new(Body::empty()));

    export(framing(calls), LOGS, request).await;

    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [(METHOD.to_owned(), Bytes::from_static(b"\0\0\0\0\x03abc"))]);
}

#[tokio::test]
async fn a_body_of_unknown_length_is_not_read_before_its_caller_is_known() {
    let unread = stream::pending::<Result<http_body::Frame<Bytes>, Status>>();
    let request = post(b"").map(|_| Body::new(StreamBody::new(unread)));
    let denied = service_fn(|request: Request| {
        let is_unframed = request.extensions().get::<Unframed>().is_some();
        std::future::ready(Ok::<_, std::convert::Infallible>(match is_unframed {
            true => Status::unauthenticated("who").into_http(),
            false => Response::new(Body::empty()),
        }))
    });
    let denied = service_fn(move |request| -> trestle_rpc::layer::ResponseFuture {
        Box::pin(tower::ServiceExt::oneshot(denied, request))
    });

    let answer = export(CallService::new(denied), LOGS, request).await;

    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_body_over_the_limit_is_rejected() {
    static LARGE: [u8; MESSAGE_BYTES_MAX + 1] = [0; MESSAGE_BYTES_MAX + 1];
    let frames =
        stream::iter([Ok::<_, Status>(http_body::Frame::data(Bytes::from_static(&LARGE)))]);
    let chunked = post(b"").map(|_| Body::new(StreamBody::new(frames)));
    let (calls, seen) = answering(|| Response::new(Body::empty()));
    let answer = export(framing(calls), LOGS, chunked).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_that_breaks_is_an_error_of_the_client() {
    let frames = [
        Ok(http_body::Frame::data(Bytes::from_static(b"abc"))),
        Err(Status::internal("Invalid chunk size line")),
    ];
    let broken = post(b"").map(|_| Body::new(StreamBody::new(stream::iter(frames))));
    let (calls, seen) = answering(|| Response::new(Body::empty()));

    let answer = export(framing(calls), LOGS, broken).await;

    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let message = tonic_types::Status::decode(body_of(answer).await).unwrap();
    assert!(message.message.contains("Invalid chunk size line"), "{message:?}");
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn only_errors_that_pass_are_retried() {
    let delay = ErrorDetails::with_retry_info(Some(Duration::from_secs(1)));
    let busy = Status::with_error_details(Code::ResourceExhausted, "busy", delay);
    for (status, http, is_retryable) in [
        (busy, StatusCode::TOO_MANY_REQUESTS, true),
        (
            Status::resource_exhausted("must be at most 8388608 bytes"),
            StatusCode::PAYLOAD_TOO_LARGE,
            false,
        ),
        (Status::unavailable("later"), StatusCode::SERVICE_UNAVAILABLE, true),
        (Status::invalid_argument("never"), StatusCode::BAD_REQUEST, false),
        (Status::unauthenticated("who"), StatusCode::UNAUTHORIZED, false),
        (Status::internal("defect"), StatusCode::INTERNAL_SERVER_ERROR, false),
    ] {
        let answer = failed(BodyType::Protobuf, &status);
        assert_eq!(answer.status(), http, "{status:?}");
        assert_eq!(answer.headers().contains_key(header::RETRY_AFTER), is_retryable, "{status:?}");
    }
}

#[tokio::test]
async fn a_failed_call_is_a_status_message() {
    let (calls, _) = answering(|| Status::unavailable("no store").into_http());

    let answer = export(calls, LOGS, post(b"")).await;

    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let message = tonic_types::Status::decode(body_of(answer).await).unwrap();
    assert_eq!((message.code, message.message.as_str()), (Code::Unavailable.into(), "no store"));
}

/// A log record in JSON, and the bytes that it is in Protocol Buffers.
const RECORD: &[u8] =
    br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"e"}]}],"later":[]}]}"#;
const RECORD_MESSAGE: &[u8] = b"\0\0\0\0\x09\x0a\x07\x12\x05\x12\x03\x62\x01e";

#[tokio::test]
async fn a_body_in_json_is_a_message_however_it_is_sent() {
    let chunks = || {
        let parts =
            RECORD.chunks(7).map(|part| Ok::<_, Status>(http_body::Frame::data(part.into())));
        Body::new(StreamBody::new(stream::iter(parts)))
    };
    let compressed = || {
        let request = post_json(b"").map(|_| Body::new(Full::from(gzip(RECORD))));
        with_header(request, header::CONTENT_ENCODING, "x-gzip")
    };
    let chunked = || {
        compressed().map(|_| {
            let compressed = gzip(RECORD);
            let parts: Vec<_> = compressed.chunks(7).map(Bytes::copy_from_slice).collect();
            let parts = parts.into_iter().map(|part| Ok::<_, Status>(http_body::Frame::data(part)));
            Body::new(StreamBody::new(stream::iter(parts)))
        })
    };
    for request in [post_json(RECORD), post_json(b"").map(|_| chunks()), compressed(), chunked()] {
        let (calls, seen) = answering(|| message_of(b""));

        let answer = export(framing(calls), LOGS, request).await;

        assert_eq!(
            (answer.status(), &answer.headers()[header::CONTENT_TYPE]),
            (StatusCode::OK, &JSON)
        );
        assert_eq!(body_of(answer).await, "{}");
        assert_eq!(
            *seen.lock().unwrap(),
            [(METHOD.to_owned(), Bytes::from_static(RECORD_MESSAGE))]
        );
    }
}

#[tokio::test]
async fn a_partial_success_in_json_has_the_count_of_its_request() {
    let partial = || {
        let partial_success = Some(ExportLogsPartialSuccess {
            rejected_log_records: 2,
            error_message: "why".to_owned(),
        });
        message_of(&ExportLogsServiceResponse { partial_success }.encode_to_vec())
    };
    let names = ["rejectedLogRecords", "rejectedDataPoints", "rejectedSpans"];
    for (path, name) in PATHS.iter().zip(names) {
        let (calls, _) = answering(partial);
        let answer = export(framing(calls), path, post_json(b"{}")).await;
        let object: serde_json::Value = serde_json::from_slice(&body_of(answer).await).unwrap();
        let expected =
            serde_json::json!({ "partialSuccess": { name: "2", "errorMessage": "why" } });
        assert_eq!(object, expected);
    }
}

#[tokio::test]
async fn an_error_of_a_body_in_json_is_a_status_in_json() {
    let bomb = gzip(&vec![b' '; MESSAGE_BYTES_MAX + 1]);
    let with_gzip = |content: Bytes| {
        let request = post_json(b"").map(|_| Body::new(Full::from(content)));
        with_header(request, header::CONTENT_ENCODING, "gzip")
    };
    let zeros = vec!["0"; MESSAGE_BYTES_MAX / 4].join(",");
    let expanding = format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"histogram":{{"dataPoints":[
           {{"bucketCounts":[{zeros}]}}]}}}}]}}]}}]}}"#
    );
    for (path, request, status, text) in [
        (LOGS, post_json(b"{\"resourceLogs\":5}"), 400, "resourceLogs: must be a list: value=`5`"),
        (LOGS, post_json(b"no json"), 400, "syntax error at column 2"),
        (LOGS, post_json(b""), 400, "it ends before it is complete"),
        (LOGS, with_gzip(Bytes::from_static(b"no gzip")), 400, "must be gzip"),
        (LOGS, with_gzip(bomb), 413, "must be at most 8388608 bytes"),
        (&PATHS[1], with_gzip(gzip(expanding.as_bytes())), 413, "must be at most 8388608 bytes"),
    ] {
        let (calls, seen) = answering(|| message_of(b""));

        let answer = export(framing(calls), path, request).await;

        assert_eq!(
            (answer.status().as_u16(), &answer.headers()[header::CONTENT_TYPE]),
            (status, &JSON)
        );
        let object: serde_json::Value = serde_json::from_slice(&body_of(answer).await).unwrap();
        assert!(object["message"].as_str().unwrap().contains(text), "{object}: {text}");
        assert!(object["code"].as_i64().unwrap() > 0, "{object}");
        assert!(seen.lock().unwrap().is_empty());
    }
}
