//! Requests with a short-circuit response: preflights, and malformed requests. They
//! are counted, logged and shed like calls.

use std::{fs, path::Path, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use trestle_tests::{Server, metric};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const TABLE: &str = "trestle.table.v1.TableService";

/// Sends a request of HTTP/1.1 without a body to a listener of the server; status and headers.
async fn send(address: &str, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let parent = format!("traceparent: 00-{TRACE}-b7ad6b7169203331-00");
    let head = format!("{head}\r\nhost: {address}\r\n{parent}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let head = answer.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap(), head)
}

/// Every such request, with its listener and its status.
fn requests() -> Vec<(&'static str, String, u16)> {
    let preflight = "origin: https://a.example\r\naccess-control-request-method: POST";
    let call = format!("/{TABLE}/GetEntity");
    vec![
        ("grpc", format!("OPTIONS {call} HTTP/1.1\r\n{preflight}"), 403),
        ("grpc", format!("OPTIONS {call} HTTP/1.1"), 400),
        ("grpc", format!("GET {call} HTTP/1.1\r\ncontent-type: application/grpc-web+proto"), 405),
        ("grpc", format!("POST {call} HTTP/1.1\r\ncontent-type: text/plain"), 415),
        ("grpc", format!("POST {call} HTTP/1.1\r\ncontent-type: application/grpc-web+json"), 415),
        ("azure_table", format!("OPTIONS /devstoreaccount1/t HTTP/1.1\r\n{preflight}"), 403),
        ("azure_table", "GET /x HTTP/1.1".to_owned(), 400),
        ("azure_queue", format!("OPTIONS /devstoreaccount1/q HTTP/1.1\r\n{preflight}"), 403),
        ("azure_queue", "GET /devstoreaccount1/q?a=%FF HTTP/1.1".to_owned(), 400),
    ]
}

fn logging_to(log: &Path) -> Server {
    let settings = [
        ("TRESTLE__TELEMETRY__ACCESS_LOG", log.to_str().unwrap()),
        ("TRESTLE__TELEMETRY__LOG_FORMAT", "json"),
    ];
    Server::start(&["--ephemeral"], &settings)
}

fn lines(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn short_circuit_responses_are_logged_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let server = logging_to(&log);
    let mut ids = Vec::new();

    for (listener, head, expected) in requests() {
        let (status, answer) = send(&server.address(listener), &head).await;
        assert_eq!(status, expected, "{head}\n{answer}");
        assert!(!answer.contains("grpc-status"), "{head}\n{answer}");
        let id = answer.lines().find_map(|line| {
            line.strip_prefix("x-request-id: ").or_else(|| line.strip_prefix("x-ms-request-id: "))
        });
        ids.push(id.unwrap_or_else(|| panic!("no id: {head}\n{answer}")).to_owned());
    }

    for _ in 0..100 {
        if lines(&log).len() >= ids.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let lines = lines(&log);
    assert_eq!(lines.len(), ids.len(), "{lines:#?}");
    for ((id, line), (_, head, status)) in ids.iter().zip(&lines).zip(requests()) {
        assert_eq!(line["request_id"], *id, "{head}: {line:#}");
        assert_eq!((&line["method"], &line["trace_id"]), (&"_OTHER".into(), &TRACE.into()));
        let code = match status {
            403 => "PERMISSION_DENIED",
            405 => "UNIMPLEMENTED",
            _ => "INVALID_ARGUMENT",
        };
        assert_eq!(line["status"], code, "{head}: {line:#}");
        assert!(line["reason"].is_string(), "{head}: {line:#}");
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line:#}");
    }
    let page = server.page("/metrics").await;
    let rejections = "trestle_rpc_server_rejections_total{";
    let counted: f64 = page
        .lines()
        .filter(|line| line.starts_with(rejections))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum();
    assert!((counted - 9.0).abs() < 0.5, "{page}");
    assert_eq!(metric(&page, "trestle_rpc_server_active_calls"), Some(0.0));
}

/// Before its body arrives, of which nothing is sent here.
#[tokio::test]
async fn a_call_that_declares_too_long_a_body_is_rejected_at_its_head() {
    let server = Server::start(&["--ephemeral"], &[]);
    let address = server.address("grpc");
    for length in [900_000_000, 16 * 1024 * 1024 + 1] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST /{TABLE}/GetEntity HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/grpc-web+proto\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains("grpc-status:8"), "{answer}");
        assert!(answer.contains("must%20be%20at%20most%208388608%20bytes"), "{answer}");
    }
}

#[tokio::test]
async fn allowed_preflight_is_logged_as_success() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let server = logging_to(&log);
    let world = trestle_tests::World::of(server).await;
    let rule = trestle_proto::service::v1::CorsRule {
        allowed_origins: vec!["https://a.example".to_owned()],
        allowed_methods: vec!["POST".to_owned()],
        max_age: Some(prost_types::Duration { seconds: 5, nanos: 0 }),
        ..Default::default()
    };
    let cors = Some(trestle_proto::service::v1::Cors { rules: vec![rule] });
    let change = trestle_proto::service::v1::ServiceProperties { cors, ..Default::default() };
    world.set_properties(change).await.unwrap();
    let preflight = "origin: https://a.example\r\naccess-control-request-method: POST";
    let head = format!("OPTIONS /{TABLE}/GetEntity HTTP/1.1\r\n{preflight}");

    let (status, answer) = send(&world.address().unwrap(), &head).await;

    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("access-control-allow-origin: https://a.example"), "{answer}");
    assert!(answer.contains("x-request-id: ") && !answer.contains("grpc-status"), "{answer}");
    let about_pages = || {
        let of_pages = |line: &Value| line["method"] == "_OTHER" && line["status"] == "OK";
        lines(&log).into_iter().filter(of_pages).count()
    };
    for _ in 0..100 {
        if about_pages() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(about_pages(), 1);
}
