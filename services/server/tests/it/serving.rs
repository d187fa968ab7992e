//! A node in process: its health when its store stops, and its shutdown.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tonic::async_trait;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use trestle::{
    compose::{Node, NodeDeps, compose},
    roles::ROLES,
    running::{Listeners, Running},
    settings::Settings,
};
use trestle_kv::{
    Change, CommitError, DiskStatus, Engine, EngineError, EngineStatus, Limits, MemoryEngine,
    Snapshot, Version,
};
use trestle_model::time::{SystemClock, Ticks};
use trestle_proto::log::v1::wire::ExportLogsServiceRequest;
use trestle_proto::opentelemetry::proto::collector::logs::v1::logs_service_client::LogsServiceClient;
use trestle_proto::queue::v1::{
    CreateQueueRequest, Queue, ReceiveMessagesRequest, StreamMessagesRequest, StreamOpen,
    queue_service_client::QueueServiceClient, stream_messages_request,
};
use trestle_proto::table::v1::{
    CreateTableRequest, ImportEntitiesRequest, Table, table_service_client::TableServiceClient,
};
use trestle_rpc::access::AccessLog;
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_rpc::propagation::Traces;
use trestle_runtime::{config::Sources, openmetrics::Exposition};

use crate::process::Serving;

/// The bound of a wait for a condition, also on a busy machine.
const HANG: Duration = Duration::from_secs(120);
/// A notice of a minute, longer than a shutdown that does not wait for its end.
const LONG_NOTICE: (&str, &str) = ("TRESTLE__SERVER__DRAIN_NOTICE_MS", "60000");

/// A store in memory that a test can stop.
struct Stoppable {
    inner: MemoryEngine,
    stopped: Mutex<Option<Arc<str>>>,
    is_space_short: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Engine for Stoppable {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        self.inner.snapshot().await
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        self.inner.commit(change).await
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn now(&self) -> Ticks {
        self.inner.now()
    }

    fn status(&self) -> EngineStatus {
        let is_space_short = self.is_space_short.load(std::sync::atomic::Ordering::SeqCst);
        let disk = DiskStatus { storage_bytes: 0, free_bytes: 0, reserve_bytes: 0, is_space_short };
        let stopped = self.stopped.lock().unwrap().clone();
        EngineStatus { stopped, disk: Some(disk), ..self.inner.status() }
    }
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    let free = ["LISTEN", "ADMIN", "AZURE_TABLE", "AZURE_QUEUE", "AZURE_BLOB"];
    let free = free.map(|key| (format!("TRESTLE__SERVER__{key}"), "127.0.0.1:0".to_owned()));
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let environment = free.into_iter().chain(variables.iter().map(owned)).collect();
    Settings::load(ROLES, Sources { environment, ..Sources::default() }).unwrap()
}

async fn node_on(engine: Arc<dyn Engine>, variables: &[(&str, &str)]) -> Node {
    let deps = NodeDeps {
        engine: Some(engine),
        objects: Some(trestle_objects::ObjectStorage::in_memory()),
        listen: None,
        clock: Arc::new(SystemClock),
        meter: SdkMeterProvider::builder().build().meter("test"),
        traces: Traces::default(),
        access: AccessLog::off(),
        random: || 7,
        source: None,
    };
    compose(&settings(variables), ROLES, deps).await.unwrap()
}

/// A node on a store in memory.
pub(crate) async fn node(variables: &[(&str, &str)]) -> Node {
    node_on(Arc::new(MemoryEngine::new(trestle::storage::keyspaces())), variables).await
}

fn client(routes: &CallService) -> TableServiceClient<CallService> {
    TableServiceClient::new(routes.clone())
}

fn table(name: &str) -> CreateTableRequest {
    CreateTableRequest { table: Some(Table { name: name.to_owned(), ..Table::default() }) }
}

#[tokio::test]
async fn a_node_serves_in_process_without_a_socket() {
    let node = node(&[]).await;

    let created = client(&node.routes).create_table(table("Things")).await.unwrap();

    assert!(created.metadata().contains_key("x-request-id"));
    assert_eq!(created.into_inner().table.unwrap().name, "Things");
}

#[tokio::test]
async fn rejects_calls_over_the_admission_limit_at_once() {
    let node = node(&[("TRESTLE__LIMITS__CALLS_MAX", "1")]).await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<ImportEntitiesRequest>(1);
    let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let open = client(&node.routes).import_entities(requests).await.unwrap();

    let rejected = client(&node.routes).create_table(table("Things")).await.unwrap_err();
    drop((sender, open));
    let admitted = client(&node.routes).create_table(table("Things")).await;

    assert_eq!(rejected.code(), tonic::Code::ResourceExhausted);
    admitted.unwrap();
}

#[tokio::test]
async fn a_stopped_store_sets_the_node_to_not_serving() {
    let engine = Arc::new(Stoppable {
        inner: MemoryEngine::new(trestle::storage::keyspaces()),
        stopped: Mutex::default(),
        is_space_short: Default::default(),
    });
    let node = node_on(engine.clone(), &[]).await;
    let (health, routes) = (node.health.clone(), node.routes.clone());
    let settings = settings(&[]);
    let listeners = Listeners::bind(&settings).await.unwrap();
    let running = Running::start(node, listeners, &settings, Exposition::default());
    let mut client = HealthClient::new(routes);
    let writes = HealthCheckRequest { service: trestle::healthcheck::WRITES.to_owned() };
    let mut writes = client.watch(writes).await.unwrap().into_inner();
    let watched = HealthCheckRequest::default();
    let mut watch = client.watch(watched).await.unwrap().into_inner();
    let before = watch.message().await.unwrap().unwrap().status();

    *engine.stopped.lock().unwrap() = Some("sync failed".into());
    let after = tokio::time::timeout(HANG, watch.message()).await;

    assert_eq!(before, ServingStatus::Serving);
    let after = after.expect("the watch reports no change").unwrap().unwrap();
    assert_eq!(after.status(), ServingStatus::NotServing);
    let problems = health.problems().join("\n");
    assert!(problems.contains("storage stopped: sync failed"), "{problems}");
    let refused = async {
        while writes.message().await.unwrap().unwrap().status() != ServingStatus::NotServing {}
    };
    let reported = tokio::time::timeout(HANG, refused).await;
    assert!(reported.is_ok(), "writes are still reported as accepted");
    running.stop().await;
}

/// A service that a listener cannot use: the copy for the first connection panics.
struct Brittle;

impl Clone for Brittle {
    fn clone(&self) -> Self {
        panic!("a defect");
    }
}

impl tower::Service<Request> for Brittle {
    type Response = Response;
    type Error = Infallible;
    type Future = Ready<Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        ready(Ok(tonic::Status::ok("").into_http()))
    }
}

#[tokio::test]
async fn a_store_short_of_disk_space_remains_ready_and_reports_read_only() {
    let engine = Arc::new(Stoppable {
        inner: MemoryEngine::new(trestle::storage::keyspaces()),
        stopped: Mutex::default(),
        is_space_short: Default::default(),
    });
    let node = node_on(engine.clone(), &[]).await;
    let health = node.health.clone();
    let settings = settings(&[]);
    let listeners = Listeners::bind(&settings).await.unwrap();
    let endpoint = format!("http://{}", listeners.grpc().unwrap());
    let running = Running::start(node, listeners, &settings, Exposition::default());
    let tls = trestle_command::trust::TlsArgs::default();
    let checked = || trestle::healthcheck::check(&endpoint, &tls, String::new());
    let before = checked().await;

    engine.is_space_short.store(true, std::sync::atomic::Ordering::SeqCst);
    let deadline = std::time::Instant::now() + HANG;
    while health.limitations().is_empty() && std::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    assert_eq!(before, Ok(None));
    assert_eq!(checked().await, Ok(Some("read-only: disk or backup")));
    assert_eq!(health.problems(), [""; 0]);
    running.stop().await;
}

#[tokio::test]
async fn a_node_on_a_short_disk_reports_read_only_before_its_first_call() {
    let engine = Arc::new(Stoppable {
        inner: MemoryEngine::new(trestle::storage::keyspaces()),
        stopped: Mutex::default(),
        is_space_short: true.into(),
    });

    let node = node_on(engine, &[]).await;

    assert_eq!(node.health.limitations().len(), 1, "{:?}", node.health.limitations());
    assert_eq!(node.health.problems(), [""; 0]);
}

#[tokio::test]
async fn reports_a_listener_that_fails() {
    let settings = settings(&[]);
    let listeners = Listeners::bind(&settings).await.unwrap();
    let address = listeners.grpc().unwrap();
    let mut node = node(&[]).await;
    node.routes = CallService::new(Brittle);
    let running = Running::start(node, listeners, &settings, Exposition::default());
    let watchdog = running.watchdog();
    let _client = TcpStream::connect(address).unwrap();

    let failure = tokio::time::timeout(HANG, watchdog.failure()).await;
    running.stop().await;

    assert!(failure.is_ok(), "no listener failed");
    assert!(watchdog.failed().is_some_and(|key| key.starts_with("server.")), "{watchdog:?}");
}

#[tokio::test]
async fn a_stream_in_flight_receives_its_response_during_a_shutdown() {
    let server = Serving::start(&["--ephemeral"], &[]);
    let endpoint = server.endpoint();
    let channel = tonic::transport::Endpoint::new(endpoint).unwrap().connect().await.unwrap();
    let mut client = TableServiceClient::new(channel);
    client.create_table(table("Things")).await.unwrap();
    let (sender, receiver) = tokio::sync::mpsc::channel::<ImportEntitiesRequest>(1);
    let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut answers = client.import_entities(requests).await.unwrap().into_inner();

    server.terminate();
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(sender);
    let end = answers.message().await;
    drop(client);
    // Beside this task: the client must receive the close of its connection.
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();

    // The error of the service for an import without a first message: the call finished and was not cut.
    assert_eq!(end.unwrap_err().code(), tonic::Code::InvalidArgument);
    assert_eq!(status.code(), Some(0), "{log}");
}

#[tokio::test]
async fn a_waiting_consumer_receives_its_response_at_once_during_a_shutdown() {
    let server = Serving::start(&["--ephemeral"], &[]);
    let channel = tonic::transport::Endpoint::new(server.endpoint()).unwrap();
    let mut client = QueueServiceClient::new(channel.connect().await.unwrap());
    let queue = Some(Queue { name: "jobs".to_owned(), ..Queue::default() });
    client.create_queue(CreateQueueRequest { queue }).await.unwrap();
    let wait = Some(prost_types::Duration { seconds: 20, nanos: 0 });
    let receive = ReceiveMessagesRequest { queue: "jobs".to_owned(), wait, ..Default::default() };
    let mut waiting = client.clone();
    let answer = tokio::spawn(async move { waiting.receive_messages(receive).await });
    let open = StreamOpen { queue: "jobs".to_owned(), ..Default::default() };
    let message = Some(stream_messages_request::Message::Open(open));
    let requests = tokio_stream::iter([StreamMessagesRequest { message }]);
    let requests = tokio_stream::StreamExt::chain(requests, tokio_stream::pending());
    let mut stream = client.stream_messages(requests).await.unwrap().into_inner();
    // Enough time for the consumer to wait.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = std::time::Instant::now();

    server.terminate();
    let answer = answer.await.unwrap().unwrap().into_inner();
    let end = stream.message().await.unwrap_err();
    drop((client, stream));
    // Beside this task: the client must receive the close of its connection.
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();

    assert_eq!(answer.deliveries, []);
    assert_eq!(end.code(), tonic::Code::Unavailable, "{end:?}");
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "the end of its wait: {:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_second_signal_does_not_wait_for_calls() {
    let server = Serving::start(&["--ephemeral"], &[]);
    let endpoint = server.endpoint();
    let channel = tonic::transport::Endpoint::new(endpoint).unwrap().connect().await.unwrap();
    let mut client = TableServiceClient::new(channel);
    let (_sender, receiver) = tokio::sync::mpsc::channel::<ImportEntitiesRequest>(1);
    let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let _answers = client.import_entities(requests).await.unwrap();

    server.terminate();
    // Two pending signals would be merged into one.
    while admin_page(&server, "/readyz") == "ok\n" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.terminate();
    let waited = tokio::task::spawn_blocking(|| server.wait());
    let (status, log) = tokio::time::timeout(HANG, waited).await.unwrap().unwrap();

    assert_eq!(status.code(), Some(6), "{log}");
}

#[tokio::test]
async fn a_second_signal_without_calls_in_flight_is_a_clean_shutdown() {
    let server = Serving::start(&["--ephemeral"], &[LONG_NOTICE]);
    let mut client = TcpStream::connect(&server.grpc).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    // It counts once it is accepted.
    client.read_exact(&mut [0; 8]).unwrap();
    let began = std::time::Instant::now();

    server.terminate();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(server.is_running(), "a connected client has to see the notice");
    server.terminate();
    let (status, log) = server.wait();

    assert_eq!(status.code(), Some(0), "{log}");
    assert!(began.elapsed() < HANG / 2, "{:?}", began.elapsed());
}

#[test]
fn a_server_without_connections_stops_at_once() {
    let server = Serving::start(&["--ephemeral"], &[LONG_NOTICE]);
    let began = std::time::Instant::now();

    server.terminate();
    let (status, log) = server.wait();

    assert_eq!(status.code(), Some(0), "{log}");
    assert!(began.elapsed() < HANG / 2, "{:?}", began.elapsed());
}

fn admin_page(server: &Serving, path: &str) -> String {
    let mut stream = TcpStream::connect(&server.admin).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn counts_every_failed_handshake_and_logs_them_at_a_bounded_rate() {
    let folder = tempfile::tempdir().unwrap();
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&certificate, pair.cert.pem()).unwrap();
    std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    let files = [
        ("TRESTLE__TLS__CERT_FILE", certificate.to_str().unwrap()),
        ("TRESTLE__TLS__KEY_FILE", key.to_str().unwrap()),
    ];
    let server = Serving::start(&["--ephemeral"], &files);

    for _ in 0..3 {
        let mut plain = TcpStream::connect(&server.grpc).unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        // Until the server has ended it.
        let _ = plain.read_to_end(&mut Vec::new());
    }
    let metrics = admin_page(&server, "/metrics");
    server.terminate();
    let (_, log) = server.wait();

    let counted = metrics.lines().find(|line| {
        line.starts_with("trestle_tls_handshake_failures_total{")
            && line.contains("error_type=\"protocol\"")
    });
    assert!(counted.is_some_and(|line| line.ends_with(" 3")), "{counted:?}: {metrics}");
    let logged: Vec<_> = log.lines().filter(|line| line.contains("handshake failed")).collect();
    assert!(logged.len() == 1 && logged[0].contains("peer=127.0.0.1:"), "{logged:?}");
}

#[test]
fn metrics_and_probes_are_on_the_admin_port() {
    let server = Serving::start(&["--ephemeral"], &[]);
    let created = crate::process::output(&mut crate::process::trestle(&[
        "table",
        "create",
        "Things",
        "--endpoint",
        &server.endpoint(),
    ]));
    assert!(created.status.success());
    let get = |path: &str| admin_page(&server, path);

    let metrics = get("/metrics");

    assert_eq!([get("/livez"), get("/readyz")], ["ok\n", "ok\n"]);
    for name in [
        "rpc_server_call_duration_seconds_count{rpc_method=",
        "\"trestle.table.v1.TableService/CreateTable\"",
        "db_client_operation_duration_seconds_count{db_operation_name=\"commit\"",
        "trestle_storage_used_bytes{",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
}

#[tokio::test]
async fn rejected_items_of_exports_are_counted_by_stream_and_logged_at_a_bounded_rate() {
    let server = Serving::start(&["--ephemeral"], &[]);
    let mut client = LogsServiceClient::connect(server.endpoint()).await.unwrap();
    // A log record whose text is not UTF-8.
    let resource_logs = vec![bytes::Bytes::from_static(b"\x12\x05\x12\x03\x1A\x01\xFF")];
    let request = ExportLogsServiceRequest { resource_logs };

    for _ in 0..3 {
        let response = client.export(request.clone()).await.unwrap().into_inner();
        assert_eq!(response.partial_success.unwrap().rejected_log_records, 1);
    }
    let metrics = admin_page(&server, "/metrics");
    server.terminate();
    let (_, log) = server.wait();

    let counted = metrics.lines().find(|line| {
        line.starts_with("trestle_log_items_rejected_total{")
            && line.contains("trestle_rejection_reason=\"INVALID_RECORD\"")
            && line.contains("trestle_stream=\"unknown_service\"")
    });
    assert!(counted.is_some_and(|line| line.ends_with(" 3")), "{counted:?}: {metrics}");
    let logged: Vec<_> = log.lines().filter(|line| line.contains("were rejected")).collect();
    assert!(logged.len() == 1 && logged[0].contains("not UTF-8"), "{logged:?}");
}

#[test]
fn the_data_directory_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let server = Serving::start(&["--data-dir", data.to_str().unwrap()], &[]);
    server.terminate();
    assert!(server.wait().0.success());

    let mut directories = vec![data];
    let mut files = 0;
    while let Some(directory) = directories.pop() {
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), 0o700, "{}", directory.display());
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                files += 1;
                assert_eq!(mode(&path), 0o600, "{}", path.display());
            }
        }
    }
    assert!(files > 10, "{files}");
}
