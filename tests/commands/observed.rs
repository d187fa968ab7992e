//! What an operator sees of a running server: its log and its metrics.

mod log;
mod warnings;

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::tempdir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use trestle_tests::{CertificateAuthority, HANG, Server, metric, replace_file};

use crate::client::{Ended, becomes, run, succeeds};

/// Longest time from one sweep to the end of the next.
const SWEPT_WITHIN: Duration = Duration::from_secs(8);
/// Most series beside buckets: as many as one user of every service has, and a few more.
const SERIES_MAX: usize = 145;
const KEY: &str = "a2V5IG9mIGFuIGFjY291bnQgb2YgdGhpcnR5LXR3byBieXRlcw==";

/// Waits until the log has a line with all of these parts.
pub(crate) fn logged(log: &Path, parts: &[&str]) -> String {
    let mut found = None;
    let is_logged = becomes(|| {
        let text = fs::read_to_string(log).unwrap();
        let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
        found = text.lines().find(has_all).map(str::to_owned);
        found.is_some()
    });
    assert!(is_logged, "no line has {parts:?}: {}", fs::read_to_string(log).unwrap());
    found.unwrap()
}

/// Waits until a series has a value.
async fn measured(server: &Server, series: &str, expected: f64) {
    let until = Instant::now() + HANG;
    loop {
        let page = server.page("/metrics").await;
        if metric(&page, series) == Some(expected) {
            return;
        }
        assert!(Instant::now() < until, "not {expected}: {series}: {page}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_is_logged_and_its_expiry_is_a_metric() {
    let directory = tempdir().unwrap();
    let log = directory.path().join("log");
    let authority = CertificateAuthority::new("authority");
    let issued = authority.issue("localhost");
    let settings = [
        ("TRESTLE__TLS__CERT_FILE", issued.certificate.to_str().unwrap()),
        ("TRESTLE__TLS__KEY_FILE", issued.key.to_str().unwrap()),
    ];
    let server = Server::start_logging(&log, &["--ephemeral"], &settings);

    let series = "trestle_tls_certificate_expiry_seconds{trestle_listener=\"grpc\"";
    let page = server.page("/metrics").await;
    let expiry = metric(&page, series);
    authority.replace(&issued, "localhost");
    server.hang_up();

    // Certificates of the tests have the validity that rcgen gives: for thousands of years.
    assert!(expiry.is_some_and(|seconds| seconds > 4e9), "{page}");
    logged(&log, &["reloaded", "what=\"certificates\"", "the certificate expires"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_user_has_few_series_with_backlogs_connections_and_protocols() {
    let directory = tempdir().unwrap();
    let server = Server::start(&["--data-dir", directory.path().to_str().unwrap()], &[]);
    for args in [
        &["table", "create", "orders"][..],
        &["entity", "insert", "orders", "--partition-key", "a", "--row-key", "b"],
        &["entity", "query", "orders"],
        &["entity", "get", "orders", "a", "b"],
        &["queue", "create", "jobs"],
        &["queue", "create", "empty"],
        &["message", "send", "jobs", "one", "two"],
        &["message", "peek", "jobs"],
        &["blob", "container", "create", "photos"],
        &["blob", "ls", "photos"],
    ] {
        succeeds(&server, args);
    }
    let rest =
        "GET /devstoreaccount1/Tables HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    answer(&server.address("azure_table"), rest).await;
    let web = "POST /trestle.table.v1.TableService/ListTables HTTP/1.1\r\nhost: localhost\r\n\
               content-type: application/grpc-web+proto\r\ncontent-length: 5\r\n\
               connection: close\r\n\r\n\0\0\0\0\0";
    answer(&server.address("grpc"), web).await;

    measured(&server, "trestle_queue_depth{trestle_queue_rank=\"1\"", 2.0).await;
    measured(&server, "trestle_tables", 1.0).await;
    measured(&server, "trestle_queues", 2.0).await;
    measured(&server, "trestle_containers", 1.0).await;
    measured(&server, "trestle_queue_messages", 2.0).await;
    // Last: a connection without a byte is closed after ten seconds.
    let held = TcpStream::connect(server.address("grpc")).await.unwrap();
    measured(&server, "trestle_server_connections{trestle_listener=\"grpc\"", 1.0).await;
    let page = server.page("/metrics").await;
    drop(held);

    for protocol in ["grpc", "grpc-web", "rest"] {
        let label = format!("trestle_protocol=\"{protocol}\"");
        let has = |line: &str| {
            line.starts_with("rpc_server_call_duration_seconds_count") && line.contains(&label)
        };
        assert!(page.lines().any(has), "{label}: {page}");
    }
    assert!(page.contains("trestle_queue_oldest_age_seconds{trestle_queue_rank=\"1\""), "{page}");
    let body = page.split_once("\r\n\r\n").unwrap().1;
    // Which buckets of histograms have a value depends on how fast this machine is just now.
    let is_counted =
        |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.contains("_bucket{");
    let series = body.lines().filter(is_counted).count();
    assert!(series <= SERIES_MAX, "{series} series: {page}");
    let queues = server.page("/queues").await;
    assert!(queues.contains("\"queue\": \"jobs\""), "{queues}");
    assert!(server.page("/").await.contains("/queues"));
}

/// Sends a request over HTTP/1 and reads the answer to its end.
async fn answer(address: &str, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_writes_are_counted_by_their_cause() {
    let directory = tempdir().unwrap();
    let args = ["--data-dir", directory.path().to_str().unwrap()];
    let settings = [("TRESTLE__STORAGE__MIN_FREE_BYTES", "4EiB")];
    let server = Server::start(&args, &settings);

    let ended = run(&server, &["table", "create", "orders"]);

    assert_ne!(ended.code, Some(0), "{ended:?}");
    let page = server.page("/metrics").await;
    let refused = metric(&page, "trestle_storage_writes_refused_total{error_type=\"full\"");
    assert!(refused.is_some_and(|writes| writes >= 1.0), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_gateway_shows_which_role_behind_it_accepts_no_writes() {
    let start = |folder: &Path, role: &str, reserve: &str| {
        let args = ["--data-dir", folder.to_str().unwrap(), "--roles", role];
        Server::start(&args, &[("TRESTLE__STORAGE__MIN_FREE_BYTES", reserve)])
    };
    let of_tables = tempdir().unwrap();
    let table = start(of_tables.path(), "table", "64MiB");
    for role in ["queue", "log"] {
        let key = format!("TRESTLE__GATEWAY__{}_ENDPOINT", role.to_uppercase());
        let writes = |other: &str, shown: &[&str]| {
            let table = table.endpoint();
            let settings = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", &*table), (&*key, other)];
            let gateway = Server::start(&["--roles", "gateway"], &settings);
            let mut status = String::new();
            let is_shown = becomes(|| {
                status = run(&gateway, &["status", "-o", "plain"]).output;
                shown.iter().all(|line| status.lines().any(|it| it == *line))
            });
            assert!(is_shown, "{shown:?}: {status}");
            let lines = status.lines().filter(|line| line.contains("writes\t")).count();
            assert_eq!(lines, shown.len(), "{shown:?}: {status}");
        };

        let folder = tempdir().unwrap();
        let other = start(folder.path(), role, "64MiB");
        writes(&other.endpoint(), &["writes\taccepted"]);
        drop(other);
        let other = start(folder.path(), role, "4EiB");
        let endpoint = other.endpoint();
        let limited = format!("roles.{role}.writes\tread-only: disk or backup");
        writes(&endpoint, &["roles.table.writes\taccepted", &limited]);
        // A role that is not reached does not limit the others.
        other.kill();
        writes(&endpoint, &["writes\taccepted"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_gateway_shows_by_role_what_differs_and_names_a_role_in_its_error() {
    let start = |role: &str| Server::start(&["--ephemeral", "--roles", role], &[]);
    let table = start("table");
    let queue = start("queue");
    let settings = [
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", &*table.endpoint()),
        ("TRESTLE__GATEWAY__QUEUE_ENDPOINT", &*queue.endpoint()),
        ("TRESTLE__GATEWAY__WAIT_MS", "0"),
    ];
    let gateway = Server::start(&["--roles", "gateway"], &settings);
    let status = |code: i32| {
        let mut ended = run(&gateway, &["status", "-o", "json"]);
        becomes(|| {
            ended = run(&gateway, &["status", "-o", "json"]);
            ended.code == Some(code)
        });
        ended
    };
    let parsed = |ended: &Ended| -> Value { serde_json::from_str(&ended.output).unwrap() };

    let both = parsed(&status(0));
    drop(queue);
    let one = status(5);
    drop(table);
    let mut none = run(&gateway, &["status", "-o", "plain"]);
    let is_shown = becomes(|| {
        none = run(&gateway, &["status", "-o", "plain"]);
        none.output.contains("unavailable\ttable,queue")
    });
    // No role reports its writes.
    assert!(is_shown && none.code == Some(5), "{none:?}");
    assert!(!none.output.contains("writes") && none.output.contains("endpoint\t"), "{none:?}");
    assert!(none.errors.starts_with("error: table: the service is unreachable"), "{none:?}");

    assert_eq!(both["engine"], "memory", "{both}");
    assert!(both["start_time"].is_null(), "{both}");
    let start = |role: &str| both["roles"][role]["start_time"].as_str().map(str::to_owned);
    assert!(start("table") <= start("queue") && start("table").is_some(), "{both}");
    let instance = |role: &str| both["roles"][role]["instance_id"].as_str().map(str::to_owned);
    assert!(instance("table") != instance("queue") && instance("queue").is_some(), "{both}");
    let reached = parsed(&one);
    assert!(reached["start_time"].is_string() && reached["roles"].is_null(), "{one:?}");
    assert!(reached["instance_id"].is_string() && reached["writes"] == "accepted", "{one:?}");
    assert!(one.errors.contains("\"message\":\"queue: the service is unreachable"), "{one:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_gateway_names_a_role_that_does_not_answer_in_time() {
    let start = |role: &str| Server::start(&["--ephemeral", "--roles", role], &[]);
    let (table, queue) = (start("table"), start("queue"));
    let settings = [
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", &*table.endpoint()),
        ("TRESTLE__GATEWAY__QUEUE_ENDPOINT", &*queue.endpoint()),
    ];
    let gateway = Server::start(&["--roles", "gateway"], &settings);
    assert!(becomes(|| run(&gateway, &["status"]).code == Some(0)));

    let pid = Pid::from_raw(i32::try_from(queue.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let status = run(&gateway, &["status", "-o", "plain", "--timeout", "1s"]);
    kill_process(pid, Signal::CONT).unwrap();

    assert_eq!(status.code, Some(5), "{status:?}");
    assert!(status.output.contains("unavailable\tqueue"), "{status:?}");
    assert!(status.errors.starts_with("error: queue: "), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_a_store_that_starts_on_a_short_disk_is_received_and_cleared() {
    let directory = tempdir().unwrap();
    let args = ["--data-dir", directory.path().to_str().unwrap()];
    let server = Server::start(&args, &[]);
    let texts: Vec<_> = (0..33).map(|number| number.to_string()).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let send = [&["message", "send", "jobs"][..], &texts].concat();
    for command in [&["queue", "create", "jobs"][..], &send] {
        assert_eq!(run(&server, command).code, Some(0), "{command:?}");
    }
    assert_eq!(server.terminate(), Some(0));
    let logs = tempdir().unwrap();
    let log = logs.path().join("log");
    let short = [("TRESTLE__STORAGE__MIN_FREE_BYTES", "4EiB")];
    let server = Server::start_logging(&log, &args, &short);

    let peeked = run(&server, &["message", "peek", "jobs"]);
    let shown = run(&server, &["queue", "get", "jobs"]);
    let sent = run(&server, &["message", "send", "jobs", "b"]);
    // Its write is larger than what every change may add while it removes something.
    let received = run(&server, &["message", "receive", "jobs", "-n", "32", "--delete", "--json"]);
    // Background work that needs space waits, without a warning and without a refused write.
    let refused = "trestle_storage_writes_refused_total{error_type=\"full\"";
    let before = metric(&server.page("/metrics").await, refused);
    tokio::time::sleep(SWEPT_WITHIN).await;
    let page = server.page("/metrics").await;
    let failed = metric(&page, "trestle_task_failures_total{trestle_task_name=\"queue-sweep\"");
    assert_eq!((failed, metric(&page, refused)), (Some(0.0), before), "{page}");
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("background step failed") && !text.contains("checkpoint"), "{text}");
    let cleared = run(&server, &["queue", "clear", "jobs", "--yes"]);
    let empty = run(&server, &["message", "peek", "jobs"]);

    assert_eq!(peeked.code, Some(0), "{peeked:?}");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(sent.errors.contains("disk space is short"), "{sent:?}");
    assert_eq!((received.code, received.output.lines().count()), (Some(0), 32), "{received:?}");
    assert_eq!(cleared.code, Some(0), "{cleared:?}");
    assert_eq!(empty.code, Some(0), "{empty:?}");
    assert!(empty.errors.contains("no messages"), "{empty:?}");
}
