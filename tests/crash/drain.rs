//! SIGTERM: calls in flight are answered, waiting receives are answered without messages, and
//! the process exits with code 0 in time.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_stream::StreamExt as _;
use tonic::Code;
use trestle_proto::{
    queue::v1::{StreamMessagesRequest, StreamOpen, stream_messages_request::Message},
    table::v1::StreamEntitiesRequest,
};
use trestle_tests::{Queue, Server, Table, entity, int, seconds, string, text, texts};

use crate::{contents::MAIN, faults, queue::gateway, start, writer::create};

/// A drain that takes longer waits for what it should not wait for: the bound of the server is twice this.
const DRAIN_MAX: Duration = Duration::from_secs(60);
const DRAIN_SECONDS: (&str, &str) = ("TRESTLE__SERVER__DRAIN_SECONDS", "120");

async fn terminate(server: Server) -> (Option<i32>, Duration) {
    let began = Instant::now();
    let ended = tokio::task::spawn_blocking(|| server.terminate()).await;
    (ended.unwrap(), began.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_answers_writes_in_flight() {
    let Some(library) = faults::library() else {
        return;
    };
    let data = tempfile::tempdir().unwrap();
    // Created before the disk is slow: a new store needs many syncs.
    let server = start(&data, &[]);
    create(&Table::over(&server.channel(), MAIN)).await.unwrap();
    assert_eq!(server.terminate(), Some(0));
    let slow = [("LD_PRELOAD", library), ("KVFAULT_SYNC_DELAY_US", "400000"), DRAIN_SECONDS];
    let server = start(&data, &slow);
    let table = Table::over(&server.channel(), MAIN);
    assert_eq!(table.rows("").await.unwrap().len(), 0, "connected");
    let rows: Vec<String> = (0..16).map(|row| row.to_string()).collect();
    let calls = rows.iter().map(async |row| {
        let outcome = table.insert(entity("p", row, [])).await;
        (outcome, Instant::now())
    });

    let signal = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        (Instant::now(), terminate(server).await)
    };
    let (outcomes, (signalled, (code, elapsed))) = tokio::join!(join_all(calls), signal);

    assert!(outcomes.iter().all(|(outcome, _)| outcome.is_ok()), "{outcomes:?}");
    let in_flight = outcomes.iter().all(|(_, answered)| *answered > signalled);
    assert!(in_flight, "answered before the signal: {outcomes:?}");
    assert_eq!(code, Some(0));
    assert!(elapsed < DRAIN_MAX, "{elapsed:?}");
    let late = table.insert(entity("p", "late", [])).await.unwrap_err();
    assert_eq!(late.code, Code::Unavailable, "{late:?}");
    let server = start(&data, &[]);
    let rows = Table::over(&server.channel(), MAIN).rows("").await.unwrap();
    assert_eq!(rows.len(), 16);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_does_not_wait_for_idle_connections() {
    let data = tempfile::tempdir().unwrap();
    let server = start(&data, &[DRAIN_SECONDS]);
    let table = Table::over(&server.channel(), MAIN);
    create(&table).await.unwrap();
    table.insert(entity("p", "r", [int("n", 1)])).await.unwrap();

    let (code, elapsed) = terminate(server).await;

    assert_eq!(code, Some(0));
    assert!(elapsed < DRAIN_MAX, "{elapsed:?}");
}

/// Clients that stay connected and send nothing: one of HTTP/1 after a response, one of HTTP/2 that acknowledges no
/// frame, one that never sent a byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_waits_neither_for_clients_without_calls_nor_to_notify_them() {
    const NOTICE: Duration = Duration::from_secs(12);
    let data = tempfile::tempdir().unwrap();
    let notice = NOTICE.as_millis().to_string();
    let server = start(&data, &[("TRESTLE__SERVER__DRAIN_NOTICE_MS", &notice)]);
    let mut http1 = TcpStream::connect(server.address("azure_table")).await.unwrap();
    http1.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut http2 = TcpStream::connect(server.address("grpc")).await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    http2.write_all(preface).await.unwrap();
    for client in [&mut http1, &mut http2] {
        assert!(client.read(&mut [0; 4096]).await.unwrap() > 0, "a response");
    }
    let silent = TcpStream::connect(server.address("grpc")).await.unwrap();
    tokio::time::sleep(NOTICE + Duration::from_millis(200)).await;

    let (code, elapsed) = terminate(server).await;

    assert_eq!(code, Some(0));
    assert!(elapsed < NOTICE, "{elapsed:?}");
    drop((http1, http2, silent));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_aborts_an_unread_stream_at_the_drain_timeout_and_logs_it() {
    let data = tempfile::tempdir().unwrap();
    let server = start(&data, &[("TRESTLE__SERVER__DRAIN_SECONDS", "1")]);
    let table = Table::over(&server.channel(), MAIN);
    create(&table).await.unwrap();
    let filling = "x".repeat(30_000);
    let row = |row: u32| entity("p", &row.to_string(), [string("filling", &filling)]);
    for first in (0..400).step_by(100) {
        let chunk = (first..first + 100).map(row).collect();
        assert_eq!(table.import(None, vec![chunk]).await.unwrap(), []);
    }
    let mut stream = table.open_stream(StreamEntitiesRequest::default()).await.unwrap();
    stream.message().await.unwrap().expect("the stream has begun");

    let (code, elapsed) = terminate(server).await;

    assert!(elapsed >= Duration::from_millis(900) && elapsed < DRAIN_MAX, "{elapsed:?}");
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    let end = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(end.is_err(), "a cut stream does not look complete");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_shutdown_ends_waiting_receives_of_another_process() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_str().unwrap();
    let role = Server::start(&["--roles", "queue", "--data-dir", path], &[]);
    let (first, second) = (gateway(&role, &[DRAIN_SECONDS]), gateway(&role, &[]));
    let queue = crate::queue::create(&first.channel()).await;
    let open = StreamOpen { queue: queue.name(), credit: 3, ..Default::default() };
    let open = StreamMessagesRequest { message: Some(Message::Open(open)) };
    // The client sends nothing more, and does not half-close.
    let requests = tokio_stream::once(open).chain(tokio_stream::pending());
    let mut stream = queue.client().stream_messages(requests).await.unwrap().into_inner();
    queue.send(text("streamed")).await.unwrap();
    assert_eq!(texts(&stream.message().await.unwrap().unwrap().deliveries), ["streamed"]);

    let waits = [queue.wait(seconds(20)), queue.wait(seconds(20))];
    let signal = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        terminate(first).await
    };
    let (waited, (code, elapsed)) = tokio::join!(join_all(waits), signal);

    for waited in waited {
        assert_eq!(waited.unwrap(), []);
    }
    assert_eq!(code, Some(0));
    assert!(elapsed < DRAIN_MAX, "{elapsed:?}");
    let end = stream.message().await.unwrap_err();
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    let queue = Queue::over(&second.channel(), "jobs");
    queue.send(text("next")).await.unwrap();
    let next = queue.wait(seconds(20)).await.unwrap();
    assert_eq!(
        texts(&next),
        ["next"],
        "the waiting receive of the terminated gateway takes nothing"
    );
}
