//! The paths that are measured, each beside its ceiling.

use std::{
    future::Future,
    pin::Pin,
    process::Command,
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use prost::Message as _;
use tempfile::TempDir;
use trestle_proto::table::v1::{
    self as proto, BatchOperation, Entity, Property, Value, WriteMode, batch_operation,
    table_service_client::TableServiceClient, value::Kind,
};

use crate::{
    Plan, blob, credentials, depth,
    drive::{Connections, Done, drive},
    echo, large_blob, logs, memory, overload, peers, queue,
    raw::RawEngine,
    report::{self, Side},
    server::Process,
    slow_disk, telemetry, write_load,
};

/// Clients of every path but the streams.
pub(crate) const CLIENTS: usize = 64;
/// Clients of the batches: each call carries a hundred entities.
pub(crate) const BATCH_CLIENTS: usize = 16;
/// Entities of a batch.
const BATCH_ROWS: u64 = 100;
/// Clients of the streams.
const STREAM_CLIENTS: usize = 4;
/// Entities that reads choose from.
pub(crate) const STORED: u64 = 20_000;
pub(crate) const TABLE: &str = "bench";
pub(crate) const GET: &str = "/trestle.table.v1.TableService/GetEntity";
pub(crate) const INSERT: &str = "/trestle.table.v1.TableService/InsertEntity";
const UPSERT: &str = "/trestle.table.v1.TableService/UpsertEntity";
pub(crate) const BATCH: &str = "/trestle.table.v1.TableService/ExecuteBatch";
const QUERY: &str = "/trestle.table.v1.TableService/QueryEntities";

type Run = fn(Plan) -> Pin<Box<dyn Future<Output = ()>>>;

/// Every path by name.
pub(crate) fn all() -> Vec<(&'static str, Run)> {
    vec![
        ("point-get", |plan| Box::pin(point_get(plan))),
        ("credentials", |plan| Box::pin(credentials::overhead(plan))),
        ("telemetry", |plan| Box::pin(telemetry::overhead(plan))),
        ("separate-gateway", |plan| Box::pin(separate_gateway(plan))),
        ("durable-insert", |plan| Box::pin(durable_insert(plan, |_| true, ""))),
        ("slow-disk-insert", |plan| {
            Box::pin(durable_insert(plan, slow_disk::add_a_millisecond, ", sync + 1 ms"))
        }),
        ("hot-row", |plan| Box::pin(hot_row(plan))),
        ("batch", |plan| Box::pin(batch(plan))),
        ("pages", |plan| Box::pin(pages(plan))),
        ("queue-send", |plan| Box::pin(queue::send(plan))),
        ("queue-cycle", |plan| Box::pin(queue::cycle(plan))),
        ("queue-wait", |plan| Box::pin(queue::wait(plan))),
        ("queue-depth", |plan| Box::pin(depth::depth(plan))),
        ("peers", |plan| Box::pin(peers::queues(plan))),
        ("rest", |plan| Box::pin(peers::rest(plan))),
        ("blob-small", |plan| Box::pin(blob::small(plan))),
        ("blob-append", |plan| Box::pin(blob::append(plan))),
        ("blob-peers", |plan| Box::pin(peers::blobs(plan))),
        ("blob-rest", |plan| Box::pin(peers::blobs_over_rest(plan))),
        ("logs-acknowledged", |plan| Box::pin(logs::acknowledged(plan))),
        ("logs-sealed", |plan| Box::pin(logs::sealed(plan))),
        ("logs-open-loop", |plan| Box::pin(logs::open_loop(plan))),
        ("logs-size", |plan| Box::pin(logs::size(plan))),
        ("logs-points", |plan| Box::pin(logs::points(plan))),
        ("logs-reads", |plan| Box::pin(logs::reads(plan))),
        ("logs-streams", |plan| Box::pin(logs::memory(plan))),
        ("overload", |plan| Box::pin(overload::overload(plan))),
        ("filter-scan", |plan| Box::pin(memory::filter_scan(plan))),
        ("start", |plan| Box::pin(memory::start(plan))),
        ("memory", |plan| Box::pin(write_load::memory(plan))),
        ("large-blob", |plan| Box::pin(large_blob::memory(plan))),
        ("million", |plan| Box::pin(memory::million(plan))),
    ]
}

/// 1 KiB that compresses to about half, like real rows. Built once: the load generator shares the cores.
pub(crate) fn payload() -> &'static str {
    static PAYLOAD: LazyLock<String> = LazyLock::new(|| {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let words = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            format!("{:08x}padding!", state >> 32)
        });
        words.take(63).collect()
    });
    &PAYLOAD
}

/// An entity of 1 KiB.
pub(crate) fn entity(partition: String, row: String) -> Entity {
    let value = Some(Value { kind: Some(Kind::StringValue(payload().to_owned())) });
    let properties = vec![Property { name: "payload".to_owned(), value }];
    Entity { partition_key: partition, row_key: row, properties, ..Default::default() }
}

fn key(number: u64) -> (String, String) {
    (format!("p{:05}", number % 1000), format!("{number:012}"))
}

/// A server with one table, its data directory, and connections to it.
pub(crate) struct Bench {
    pub(crate) server: Process,
    pub(crate) connections: Connections,
    pub(crate) _data: TempDir,
}

impl Bench {
    /// Starts an all-in-one server; `prepare` may change the command.
    pub(crate) async fn start(prepare: impl FnOnce(&mut Command) -> bool) -> Option<Self> {
        let data = tempfile::tempdir().unwrap();
        let mut command = Process::trestle(&["--data-dir", data.path().to_str().unwrap()]);
        if !prepare(&mut command) {
            return None;
        }
        let server = Process::start(&mut command);
        let connections = Connections::open(&server.endpoint()).await;
        let bench = Self { server, connections, _data: data };
        let request = proto::CreateTableRequest {
            table: Some(proto::Table { name: TABLE.to_owned(), ..Default::default() }),
        };
        bench.client().create_table(request).await.unwrap();
        Some(bench)
    }

    pub(crate) fn client(&self) -> TableServiceClient<tonic::transport::Channel> {
        TableServiceClient::new(self.connections.pick(0)).max_decoding_message_size(16 << 20)
    }

    /// Stores `count` entities of 1 KiB through the import.
    pub(crate) async fn fill(&self, count: u64) {
        use proto::import_entities_request::Message;
        let spec =
            proto::ImportSpec { table: TABLE.to_owned(), mode: Some(WriteMode::Replace.into()) };
        let chunks = (0..count.div_ceil(500)).map(move |chunk| {
            let numbers = chunk * 500..((chunk + 1) * 500).min(count);
            let entities = numbers.map(|number| {
                let (partition, row) = key(number);
                entity(partition, row)
            });
            Message::Chunk(proto::ImportChunk { entities: entities.collect() })
        });
        let messages = std::iter::once(Message::Spec(spec)).chain(chunks);
        let requests = tokio_stream::iter(
            messages.map(|message| proto::ImportEntitiesRequest { message: Some(message) }),
        );
        let mut responses = self.client().import_entities(requests).await.unwrap().into_inner();
        while let Some(response) = responses.message().await.unwrap() {
            assert!(response.results.iter().all(|result| result.error.is_none()));
        }
    }

    /// One turn of calls of one method with this message for each number.
    pub(crate) async fn turn(
        &self,
        clients: usize,
        time: Duration,
        path: &'static str,
        message: impl Fn(u64) -> Bytes + Send + Sync + 'static,
    ) -> (Done, f64) {
        let connections = self.connections.clone();
        let before = self.server.cpu_us();
        let message = Arc::new(message);
        let done = drive(clients, time, move |number| {
            let (connections, message) = (connections.clone(), Arc::clone(&message));
            async move {
                connections.call(number, path, message(number)).await.unwrap();
                1
            }
        })
        .await;
        (done, self.server.cpu_us() - before)
    }
}

pub(crate) fn get_message(number: u64) -> Bytes {
    let (partition_key, row_key) = key(number % STORED);
    let table = TABLE.to_owned();
    proto::GetEntityRequest { table, partition_key, row_key, select: None }.encode_to_vec().into()
}

pub(crate) fn insert_message(number: u64) -> Bytes {
    let (partition, row) = key(number);
    let entity = Some(entity(partition, row));
    proto::InsertEntityRequest { table: TABLE.to_owned(), entity }.encode_to_vec().into()
}

async fn point_get(plan: Plan) {
    let bench = Bench::start(|_| true).await.unwrap();
    bench.fill(STORED).await;
    let echo = Process::start(&mut Process::own("echo"));
    let to_echo = Connections::open(&echo.endpoint()).await;
    let answer = bench.connections.call(0, GET, get_message(0)).await.unwrap();
    let (mut measured, mut ceiling) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let (done, cpu) = bench.turn(CLIENTS, plan.turn, GET, get_message).await;
        measured.add(done, cpu);
        let (to_echo, answer, before) = (to_echo.clone(), answer.clone(), echo.cpu_us());
        let done = drive(CLIENTS, plan.turn, move |number| {
            let (to_echo, answer) = (to_echo.clone(), answer.clone());
            async move {
                to_echo.call(number, echo::PATH, answer).await.unwrap();
                1
            }
        });
        ceiling.add(done.await, echo.cpu_us() - before);
    }
    report::compared("point get 1 KiB / empty echo", &measured, &ceiling, 0.65);
    report::figure("  server CPU a point get", measured.cpu_us_per_operation(), 20.0, true, "us");
}

async fn separate_gateway(plan: Plan) {
    let data = tempfile::tempdir().unwrap();
    let args = ["--roles", "table", "--data-dir", data.path().to_str().unwrap()];
    let table = Process::start(&mut Process::trestle(&args));
    let mut command = Process::trestle(&["--roles", "gateway"]);
    let gateway = Process::start(command.env("TRESTLE__GATEWAY__TABLE_ENDPOINT", table.endpoint()));
    let direct = Connections::open(&table.endpoint()).await;
    let through = Connections::open(&gateway.endpoint()).await;
    let direct = Bench { server: table, connections: direct, _data: data };
    let request = proto::CreateTableRequest {
        table: Some(proto::Table { name: TABLE.to_owned(), ..Default::default() }),
    };
    direct.client().create_table(request).await.unwrap();
    direct.fill(STORED).await;
    let unused = tempfile::tempdir().unwrap();
    let through = Bench { server: gateway, connections: through, _data: unused };
    let (mut measured, mut ceiling) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let (done, cpu) = through.turn(CLIENTS, plan.turn, GET, get_message).await;
        measured.add(done, cpu);
        let (done, cpu) = direct.turn(CLIENTS, plan.turn, GET, get_message).await;
        ceiling.add(done, cpu);
    }
    report::compared("point get through a gateway / direct", &measured, &ceiling, 0.45);
}

async fn durable_insert(plan: Plan, prepare: fn(&mut Command) -> bool, disk: &str) {
    let Some(bench) = Bench::start(prepare).await else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mut raw = RawEngine::start(directory.path(), |command| {
        prepare(command);
    });
    let (mut measured, mut ceiling) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let (done, cpu) = bench.turn(CLIENTS, plan.turn, INSERT, insert_message).await;
        measured.add(done, cpu);
        let (done, cpu) = raw.commit(CLIENTS, 1, plan.turn);
        ceiling.add(done, cpu);
    }
    let name = format!("durable insert 1 KiB / raw group commit{disk}");
    report::compared(&name, &measured, &ceiling, 0.5);
    let cpu = measured.cpu_us_per_operation();
    report::figure("  server CPU a durable insert", cpu, 35.0, true, "us");
}

async fn hot_row(plan: Plan) {
    let bench = Bench::start(|_| true).await.unwrap();
    let merge = |partition: String, row: String| -> Bytes {
        let value = Some(Value { kind: Some(Kind::Int64Value(1)) });
        let properties = vec![Property { name: "count".to_owned(), value }];
        let entity =
            Entity { partition_key: partition, row_key: row, properties, ..Default::default() };
        let mode = WriteMode::Merge.into();
        let table = TABLE.to_owned();
        proto::UpsertEntityRequest { table, entity: Some(entity), mode }.encode_to_vec().into()
    };
    let (mut measured, mut ceiling) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let hot = move |_| merge("hot".to_owned(), "row".to_owned());
        let (done, cpu) = bench.turn(CLIENTS, plan.turn, UPSERT, hot).await;
        measured.add(done, cpu);
        let distinct = move |number| {
            let (partition, row) = key(number % STORED);
            merge(partition, row)
        };
        let (done, cpu) = bench.turn(CLIENTS, plan.turn, UPSERT, distinct).await;
        ceiling.add(done, cpu);
    }
    report::compared("merge of one hot row / of distinct rows", &measured, &ceiling, 0.5);
}

/// A batch of a hundred new entities.
pub(crate) fn batch_message(number: u64) -> Bytes {
    let operations = (0..BATCH_ROWS).map(|row| {
        let (partition, prefix) = key(number);
        let entity = Some(entity(partition, format!("{prefix}-{row:03}")));
        let insert = proto::BatchInsert { entity };
        BatchOperation { operation: Some(batch_operation::Operation::Insert(insert)) }
    });
    let operations = operations.collect();
    proto::ExecuteBatchRequest { table: TABLE.to_owned(), operations }.encode_to_vec().into()
}

async fn batch(plan: Plan) {
    let bench = Bench::start(|_| true).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut raw = RawEngine::start(directory.path(), |_| {});
    let (mut measured, mut ceiling) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let (done, cpu) = bench.turn(BATCH_CLIENTS, plan.turn, BATCH, batch_message).await;
        let operations = done.operations * BATCH_ROWS;
        measured.add(Done { operations, ..done }, cpu);
        let (done, cpu) = raw.commit(BATCH_CLIENTS, 100, plan.turn);
        ceiling.add(done, cpu);
    }
    report::compared("entities in batches of 100 / raw batches", &measured, &ceiling, 0.6);
}

async fn pages(plan: Plan) {
    let bench = Bench::start(|_| true).await.unwrap();
    bench.fill(STORED).await;
    let (mut streamed, mut paged) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let (done, cpu) = bench.turn(16, plan.turn, QUERY, page_message).await;
        paged.add(Done { operations: done.operations * 100, ..done }, cpu);
        let before = bench.server.cpu_us();
        let connections = bench.connections.clone();
        let whole = move |number| stream_all(connections.pick(number));
        let done = drive(STREAM_CLIENTS, plan.turn, whole).await;
        streamed.add(done, bench.server.cpu_us() - before);
    }
    for (name, side) in [("in pages of 100", &paged), ("streamed", &streamed)] {
        let name = format!("entities of 1 KiB {name}");
        report::figure(&name, side.rate(), 1e6, false, "/s");
        report::figure("  server CPU an entity", side.cpu_us_per_operation(), 1.0, true, "us");
    }
}

fn page_message(number: u64) -> Bytes {
    let request = proto::QueryEntitiesRequest {
        table: TABLE.to_owned(),
        filter: format!("PartitionKey ge 'p{:05}'", number % 900),
        page_size: Some(100),
        ..Default::default()
    };
    request.encode_to_vec().into()
}

async fn stream_all(channel: tonic::transport::Channel) -> u64 {
    let mut client = TableServiceClient::new(channel).max_decoding_message_size(16 << 20);
    let request = proto::StreamEntitiesRequest { table: TABLE.to_owned(), ..Default::default() };
    let mut stream = client.stream_entities(request).await.unwrap().into_inner();
    let mut entities = 0;
    while let Some(message) = stream.message().await.unwrap() {
        entities += message.entities.len() as u64;
    }
    entities
}
