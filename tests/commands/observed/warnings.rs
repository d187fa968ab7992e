//! Warnings about a limit that is reached, and a collector that does not answer.

use std::{fs, net::TcpListener};

use tempfile::tempdir;
use tokio::net::TcpStream;
use trestle_tests::Server;

use super::{logged, measured};
use crate::client::run;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_connection_is_counted_and_one_line_names_the_limit() {
    let folder = tempdir().unwrap();
    let log = folder.path().join("log");
    let settings = [("TRESTLE__LIMITS__CONNECTIONS_MAX", "2")];
    let server = Server::start_logging(&log, &["--ephemeral"], &settings);
    let series = "trestle_server_connections_rejected_total{trestle_listener=\"grpc\"";
    measured(&server, series, 0.0).await;

    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(TcpStream::connect(server.address("grpc")).await.unwrap());
    }
    measured(&server, "trestle_server_connections{trestle_listener=\"grpc\"", 2.0).await;
    for _ in 0..3 {
        open.push(TcpStream::connect(server.address("grpc")).await.unwrap());
    }

    measured(&server, series, 3.0).await;
    let line = logged(&log, &["WARN", "connection limit reached"]);
    assert!(line.contains("connections_max=2") && line.contains("listener=\"grpc\""), "{line}");
    let lines = fs::read_to_string(&log).unwrap().matches("connection limit reached").count();
    assert_eq!(lines, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_export_is_one_plain_line_with_the_endpoint_and_the_cause() {
    let folder = tempdir().unwrap();
    let log = folder.path().join("log");
    // A port without a listener.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{free}");
    let settings = [
        ("TRESTLE__TELEMETRY__OTLP_ENDPOINT", endpoint.as_str()),
        ("TRESTLE__TELEMETRY__METRICS_EVERY_SECONDS", "1"),
        ("TRESTLE__TELEMETRY__TRACE_SAMPLE_RATIO", "1"),
    ];
    let server = Server::start_logging(&log, &["--ephemeral"], &settings);
    assert_eq!(run(&server, &["table", "create", "orders"]).code, Some(0));

    let line = logged(&log, &["WARN", "export to telemetry.otlp_endpoint failed"]);
    assert!(line.contains(&format!("endpoint=\"{endpoint}\"")), "{line}");
    assert!(line.contains("Connection refused"), "{line}");
    assert_eq!(server.terminate(), Some(0));

    let log = fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("export to telemetry.otlp_endpoint failed").count(), 1, "{log}");
    for words in [
        "opentelemetry",
        "ExportError",
        "InternalFailure",
        "gRPC code",
        "Operation failed",
        "os error",
    ] {
        assert!(!log.contains(words), "{words}: {log}");
    }
}
