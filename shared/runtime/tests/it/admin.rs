//! The admin listener, over a real socket.

use std::{net::SocketAddr, sync::Arc};

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use trestle_rpc::exemplar::Exemplars;
use trestle_runtime::{
    admin::{Admin, AdminPage, AllowsHost},
    health::Health,
    openmetrics::Exposition,
    serve::bind,
};

const TABLE: &str = "trestle.table.v1.TableService";

/// Status line and body of one response.
async fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    // Every page identifies its server, so that a client distinguishes it from another one on this port.
    assert!(head.lines().any(|line| line == "server: trestle"), "{path}: {head}");
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

/// The status of a page, addressed as `host`.
async fn status_at(address: SocketAddr, host: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /version HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_listener_on_loopback_rejects_the_hosts_that_it_does_not_allow() {
    let (health, metrics) = (Health::of(&[TABLE]).await, Exposition::default());
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let hosts: AllowsHost = Arc::new(|host: &str| host.starts_with("localhost"));
    let admin = Admin { health, metrics, pages: Vec::new(), hosts: Some(hosts) };
    let serving = tokio::spawn(admin.serve(listener, None, stop.clone()));

    assert_eq!(status_at(address, "localhost:1").await, "HTTP/1.1 200 OK");
    assert_eq!(status_at(address, "evil.example:1").await, "HTTP/1.1 403 Forbidden");
    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn serves_probes_and_metrics() {
    let registry = prometheus::Registry::new();
    let reader = opentelemetry_prometheus::exporter().with_registry(registry.clone());
    let meters = SdkMeterProvider::builder().with_reader(reader.build().unwrap()).build();
    meters.meter("test").u64_counter("things").build().add(3, &[]);
    let health = Health::of(&[TABLE]).await;
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let metrics = Exposition::new(registry, Exemplars::default());
    let json = Arc::new(|| "[1]".to_owned());
    let pages = vec![AdminPage { path: "/numbers", about: "a list", json }];
    let admin = Admin { health: health.clone(), metrics, pages, hosts: None };
    let serving = tokio::spawn(admin.serve(listener, None, stop.clone()));

    let ready = get(address, "/readyz").await;
    health.limit("test.writes", "store", Some("read-only: disk or backup")).await;
    let limited = get(address, "/readyz").await;
    health.report(TABLE, Some("storage stopped: disk".to_owned())).await;
    let unready = get(address, "/readyz").await;
    let live = get(address, "/livez").await;
    let metrics = get(address, "/metrics").await;
    let numbers = get(address, "/numbers").await;
    let index = get(address, "/").await;
    let version = get(address, "/version").await;
    let nowhere = get(address, "/nope").await;
    let health = get(address, "/healthz").await;
    stop.cancel();
    serving.await.unwrap();

    for path in ["/metrics", "/livez", "/healthz", "/readyz", "/version"] {
        assert!(index.1.lines().any(|line| line.starts_with(path)), "{path}: {index:?}");
    }
    assert!(index.1.contains("/numbers          a list\n"), "{index:?}");
    let build = format!("{{\"version\":\"{}\",\"profile\":\"", env!("CARGO_PKG_VERSION"));
    assert!(version.1.starts_with(&build), "{version:?}");
    let revision = option_env!("TRESTLE_REVISION").unwrap_or("unknown");
    assert!(version.1.contains(&format!("\"revision\":\"{revision}\"")), "{version:?}");
    let pages = format!("no such page; the pages are:\n{}", index.1);
    assert_eq!(nowhere, ("HTTP/1.1 404 Not Found".to_owned(), pages));
    assert_eq!(health, live);
    assert_eq!(ready, ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned()));
    assert_eq!(limited, ("HTTP/1.1 200 OK".to_owned(), "read-only: disk or backup\n".to_owned()));
    assert_eq!(unready.0, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(unready.1, format!("{TABLE}: storage stopped: disk\n"));
    assert_eq!(live.0, "HTTP/1.1 200 OK");
    assert_eq!(numbers, ("HTTP/1.1 200 OK".to_owned(), "[1]".to_owned()));
    assert!(
        metrics.1.lines().any(|line| line.starts_with("things_total{") && line.ends_with(" 3")),
        "{}",
        metrics.1
    );
}
