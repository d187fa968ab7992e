//! Telemetry over HTTP.

use std::io::Write as _;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures::FutureExt as _;
use http::{Method, Request, Response, StatusCode, Version, header};
use prost::Message as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use trestle_proto::opentelemetry::proto::{
    collector::{logs::v1::ExportLogsServiceResponse, trace::v1::ExportTraceServiceResponse},
    common::v1::any_value,
};
use trestle_tests::{Server, World, log_scenario, log_texts};

use super::export::{one_log, one_span};

log_scenario!(
    a_request_of_http_stores_records_plain_or_compressed,
    a_request_in_json_stores_records_and_is_answered_in_json,
    rejects_requests_of_http_with_the_status_that_clients_expect,
    a_request_of_http_stores_spans,
);

const PROTOBUF: &str = "application/x-protobuf";

fn post(kind: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    let request = Request::post("/v1/logs").header(header::CONTENT_TYPE, kind);
    request.body(body.into()).unwrap()
}

async fn send(world: &World, version: Version, request: Request<Bytes>) -> Response<Bytes> {
    world.http(version, request).await.unwrap()
}

async fn a_request_of_http_stores_records_plain_or_compressed(world: &World) {
    let plain = one_log("web", "plain").encode_to_vec();
    let gzip = gzipped(one_log("web", "compressed").encode_to_vec());
    // Names of types and encodings are of any case.
    let mut compressed = post("Application/X-Protobuf; charset=utf-8", gzip);
    compressed.headers_mut().insert(header::CONTENT_ENCODING, "GZIP".parse().unwrap());

    for (version, request) in
        [(Version::HTTP_11, post(PROTOBUF, plain)), (Version::HTTP_2, compressed)]
    {
        let response = send(world, version, request).await;
        assert_eq!(response.status(), StatusCode::OK, "{response:?}");
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROTOBUF);
        let message = ExportLogsServiceResponse::decode(response.into_body()).unwrap();
        assert_eq!(message.partial_success, None);
    }

    let records = world.existing_log_stream("web").read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["plain", "compressed"]);
}

/// A request with a record of the service `web`, and members of the record.
fn json_log(members: &str) -> String {
    format!(
        r#"{{"resourceLogs":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"web"}}}}]}},
        "scopeLogs":[{{"scope":null,"laterField":[],"logRecords":[{{"timeUnixNano":"0",{members}}}]}}]}}]}}"#
    )
}

pub(super) fn gzipped(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(content.as_ref()).unwrap();
    gzip.finish().unwrap()
}

async fn a_request_in_json_stores_records_and_is_answered_in_json(world: &World) {
    let first = r#""body":{"stringValue":"first"},"traceId":"5B8EFFF798038103D269B633813FC60C",
        "attributes":[{"key":"n","value":{"intValue":"9007199254740993"}}]"#;
    let plain = post("application/json; charset=utf-8", json_log(first));
    let mut compressed =
        post("Application/JSON", gzipped(json_log(r#""body":{"stringValue":"second"}"#)));
    compressed.headers_mut().insert(header::CONTENT_ENCODING, "x-gzip".parse().unwrap());
    *compressed.uri_mut() = "//v1/logs/".parse().unwrap();
    for (version, request) in [(Version::HTTP_11, plain), (Version::HTTP_2, compressed)] {
        let response = send(world, version, request).await;
        assert_eq!(response.status(), StatusCode::OK, "{response:?}");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(response.into_body(), "{}");
    }
    let malformed = post("application/json", json_log("\"flags\":\"many\""));

    let response = send(world, Version::HTTP_11, malformed).await;

    assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{response:?}");
    let body = String::from_utf8(response.into_body().to_vec()).unwrap();
    assert!(body.contains("flags: must be a whole number: value=`many`"), "{body}");
    let records = world.existing_log_stream("web").read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["first", "second"]);
    assert_eq!(records[0].trace_id[..2], [0x5B, 0x8E]);
    let number = records[0].attributes["n"].value.clone();
    assert_eq!(number, Some(any_value::Value::IntValue(9_007_199_254_740_993)));
}

async fn rejects_requests_of_http_with_the_status_that_clients_expect(world: &World) {
    let body = || one_log("web", "x").encode_to_vec();
    let mut get = post(PROTOBUF, body());
    *get.method_mut() = Method::GET;
    let mut brotli = post(PROTOBUF, body());
    brotli.headers_mut().insert(header::CONTENT_ENCODING, "br".parse().unwrap());
    let mut broken = post(PROTOBUF, body());
    broken.headers_mut().insert(header::CONTENT_ENCODING, "gzip".parse().unwrap());
    for (request, status) in [
        (get, StatusCode::METHOD_NOT_ALLOWED),
        (post("application/json", "{\"resourceLogs\":1}"), StatusCode::BAD_REQUEST),
        (post("text/plain", body()), StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (brotli, StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (broken, StatusCode::BAD_REQUEST),
        (post(PROTOBUF, "no message"), StatusCode::BAD_REQUEST),
    ] {
        let response = send(world, Version::HTTP_11, request).await;
        assert_eq!(response.status(), status, "{response:?}");
        let is_method = status == StatusCode::METHOD_NOT_ALLOWED;
        let allowed = response.headers().get(header::ALLOW).map(|it| it.as_bytes());
        assert_eq!(allowed, is_method.then_some(&b"POST"[..]), "{response:?}");
    }
    let error = send(world, Version::HTTP_11, post(PROTOBUF, "no message")).await;
    let status = tonic_types::Status::decode(error.into_body()).unwrap();
    assert_eq!(status.code, 3, "{status:?}");
    let unknown = world.existing_log_stream("web").read().await;
    assert_eq!(unknown.unwrap_err().reason, "LOG_STREAM_NOT_FOUND");
}

async fn a_request_of_http_stores_spans(world: &World) {
    let spans = one_span("web", "GET /pay").encode_to_vec();
    let mut request = post(PROTOBUF, spans);
    *request.uri_mut() = "/v1/traces".parse().unwrap();

    let response = send(world, Version::HTTP_11, request).await;

    assert_eq!(response.status(), StatusCode::OK, "{response:?}");
    let message = ExportTraceServiceResponse::decode(response.into_body()).unwrap();
    assert_eq!(message.partial_success, None);
    let records = world.existing_log_stream("web.traces").read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["GET /pay"]);
}

/// Begins an export in chunks, of which one of 6 MiB is sent and none is the last.
async fn unfinished_export(server: &Server) -> TcpStream {
    let address = server.address("grpc");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let chunk = vec![0; 6 * 1024 * 1024];
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: {address}\r\ncontent-type: {PROTOBUF}\r\n\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n",
        chunk.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may respond and close before it has read all.
    let _ = stream.write_all(&chunk).await;
    stream
}

/// How a response begins.
async fn begin_of(mut stream: TcpStream) -> String {
    let mut answer = [0; 32];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(answer.get(..read).unwrap()).into_owned()
}

#[tokio::test]
async fn a_body_of_unknown_length_is_bounded_before_it_ends_and_read_for_known_callers_only() {
    let bounds = [("TRESTLE__LIMITS__BODY_BYTES_MAX", "16MiB")];
    let bounded = Server::start(&["--ephemeral"], &bounds);
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(begin_of(unfinished_export(&bounded).await).boxed());
    }
    // Whichever arrives last is one too many; the others wait for their ends.
    let (answer, _, _) = futures::future::select_all(answers).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");

    let unknown = [
        ("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "off"),
        ("TRESTLE__ACCOUNTS__ACME__KEY1", "a2V5IG9mIGFuIGFjY291bnQgb2YgdGhpcnR5LXR3byBieXRlcw=="),
    ];
    let server = Server::start(&["--ephemeral"], &unknown);
    let answer = begin_of(unfinished_export(&server).await).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}
