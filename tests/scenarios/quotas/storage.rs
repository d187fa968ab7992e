//! Quotas on what an account stores.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::future::join_all;
use http::header::AUTHORIZATION;
use trestle_proto::{
    blob::v1::{
        Container, CreateContainerRequest, DeleteContainerRequest,
        GetServiceStatsRequest as GetBlobStatsRequest,
    },
    log::v1::{CreateStreamRequest, LogStream},
    opentelemetry::proto::collector::logs::v1::logs_service_client::LogsServiceClient,
    queue::v1::{CreateQueueRequest, Queue},
    table::v1::{CreateTableRequest, DeleteTableRequest, Table as NewTable},
};
use trestle_tests::{delete_op, log_record, receipt_of, text};

use super::*;
use crate::log::{an_hour, export::one_log};

/// The error of a call that would store more than a quota.
const FULL: (Code, &str) = (Code::ResourceExhausted, "STORAGE_QUOTA_EXCEEDED");

/// Checks that a call was rejected for this quota of the account, for good.
fn check_full(error: &CallError, setting: &str, usage: u64) {
    assert_eq!(error.kind(), FULL, "{setting}: {error:?}");
    assert_eq!(error.quotas, ["account `devstoreaccount1`"], "{setting}");
    let text = format!("(quotas.{setting}): usage=`{usage}`");
    assert!(error.message.contains(&text), "{setting}: {error:?}");
    assert_eq!(error.retry_after, None, "{setting}: {error:?}");
}

async fn create_table(world: &World, name: &str) -> Result<(), CallError> {
    let table = Some(NewTable { name: name.to_owned(), ..NewTable::default() });
    let created = world.client().create_table(CreateTableRequest { table }).await;
    created.map(drop).map_err(CallError::from)
}

async fn create_queue(world: &World, name: &str) -> Result<(), CallError> {
    let queue = Some(Queue { name: name.to_owned(), ..Queue::default() });
    let created = world.queues().create_queue(CreateQueueRequest { queue }).await;
    created.map(drop).map_err(CallError::from)
}

async fn create_container(world: &World, name: &str) -> Result<(), CallError> {
    let container = Some(Container { name: name.to_owned(), ..Container::default() });
    let created = world.blobs().create_container(CreateContainerRequest { container }).await;
    created.map(drop).map_err(CallError::from)
}

async fn create_stream(world: &World, name: &str) -> Result<(), CallError> {
    let stream = Some(LogStream { name: name.to_owned(), ..LogStream::default() });
    let created = world.logs().create_stream(CreateStreamRequest { stream }).await;
    created.map(drop).map_err(CallError::from)
}

#[tokio::test]
async fn each_number_of_resources_is_exact_also_where_they_are_created_at_once() {
    let quotas = [
        ("ACCOUNT_TABLES_MAX", "3"),
        ("ACCOUNT_QUEUES_MAX", "3"),
        ("ACCOUNT_CONTAINERS_MAX", "3"),
        ("ACCOUNT_STREAMS_MAX", "3"),
    ];
    let world = world(&quotas).await;
    let names: Vec<_> = (0..12).map(|number| format!("name{number}")).collect();

    let tables = join_all(names.iter().map(|name| create_table(&world, name))).await;
    let queues = join_all(names.iter().map(|name| create_queue(&world, name))).await;
    let containers = join_all(names.iter().map(|name| create_container(&world, name))).await;
    let streams = join_all(names.iter().map(|name| create_stream(&world, name))).await;

    for (setting, outcomes) in [
        ("account_tables_max", tables),
        ("account_queues_max", queues),
        ("account_containers_max", containers),
        ("account_streams_max", streams),
    ] {
        let rejected: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert_eq!(rejected.len(), 9, "{setting}: {rejected:?}");
        rejected.iter().for_each(|error| check_full(error, setting, 3));
    }
}

#[tokio::test]
async fn at_a_quota_what_exists_is_found_and_a_delete_makes_room() {
    let quotas = [
        ("ACCOUNT_TABLES_MAX", "1"),
        ("ACCOUNT_QUEUES_MAX", "1"),
        ("ACCOUNT_CONTAINERS_MAX", "1"),
        ("ACCOUNT_STREAMS_MAX", "1"),
    ];
    let world = world(&quotas).await;
    create_table(&world, "first").await.unwrap();
    create_queue(&world, "first").await.unwrap();
    create_container(&world, "first").await.unwrap();
    let exports = LogsServiceClient::new(world.transport());
    let export = async |name| exports.clone().export(one_log(name, "x")).await;
    export("first").await.unwrap();

    // Each creation responds as below the quota where the name exists.
    let exists = create_table(&world, "first").await.unwrap_err();
    assert_eq!(exists.kind(), (Code::AlreadyExists, "TABLE_ALREADY_EXISTS"));
    create_queue(&world, "first").await.unwrap();
    let exists = create_container(&world, "first").await.unwrap_err();
    assert_eq!(exists.kind(), (Code::AlreadyExists, "CONTAINER_ALREADY_EXISTS"));
    export("first").await.unwrap();
    // An export creates no stream over the quota either.
    let full = CallError::from(export("second").await.unwrap_err());
    check_full(&full, "account_streams_max", 1);

    let delete = DeleteTableRequest { table: "first".to_owned() };
    world.client().delete_table(delete).await.unwrap();
    create_table(&world, "second").await.unwrap();
    let delete = DeleteContainerRequest { container: "first".to_owned(), ..Default::default() };
    world.blobs().delete_container(delete).await.unwrap();
    create_container(&world, "second").await.unwrap();
}

#[tokio::test]
async fn an_account_with_a_quota_of_zero_is_exempt_from_the_default() {
    let quotas =
        [("ACCOUNT_TABLES_MAX", "1"), ("ACCOUNTS__DEVSTOREACCOUNT1__ACCOUNT_TABLES_MAX", "0")];
    let world = world(&quotas).await;

    for name in ["first", "second", "third"] {
        create_table(&world, name).await.unwrap();
    }
}

#[tokio::test]
async fn a_reload_changes_the_quotas_of_the_next_creation() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("trestle.toml");
    let quota =
        |max: u64| replace_file(&config, &format!("[quotas]\naccount_tables_max = {max}\n"));
    quota(1);
    let args = ["--ephemeral", "--config", config.to_str().unwrap()];
    let world = World::of(Server::start(&args, &[])).await;
    create_table(&world, "first").await.unwrap();
    check_full(&create_table(&world, "second").await.unwrap_err(), "account_tables_max", 1);

    quota(2);
    world.hang_up();
    until(async || create_table(&world, "second").await, Result::is_ok).await;
    check_full(&create_table(&world, "third").await.unwrap_err(), "account_tables_max", 2);
    // Below what exists: nothing is deleted, and the usage is reported.
    quota(1);
    world.hang_up();
    let is_lowered = |outcome: &Result<(), CallError>| {
        outcome.as_ref().is_err_and(|error| error.message.contains("at most 1 tables"))
    };
    until(async || create_table(&world, "third").await, is_lowered).await;
    check_full(&create_table(&world, "third").await.unwrap_err(), "account_tables_max", 2);
    quota(0);
    world.hang_up();
    until(async || create_table(&world, "third").await, Result::is_ok).await;
}

/// A quota of bytes, and an entity of a seventh of it.
const BYTES: Quotas<'static> =
    &[("ACCOUNT_STORED_BYTES_MAX", "200000"), ("ACCOUNT_BLOBS_MAX", "50")];

fn large(row: &str) -> Entity {
    entity("p", row, [string("padding", &"x".repeat(29_000))])
}

/// Checks that a call was rejected for the stored bytes of the account: for good, or until they are measured.
fn check_over_bytes(error: &CallError, call: &str) {
    let setting = "(quotas.account_stored_bytes_max)";
    assert!(error.message.contains(setting), "{call}: {error:?}");
    assert_eq!(error.quotas, ["account `devstoreaccount1`"], "{call}");
    let expected = if error.kind() == FULL { None } else { Some(Duration::from_secs(10)) };
    assert_eq!(error.retry_after, expected, "{call}");
    assert!(error.kind() == FULL || error.kind() == BUSY, "{call}: {error:?}");
}

/// Repeats a call until its outcome is as required.
async fn until<T>(
    mut call: impl AsyncFnMut() -> Result<T, CallError>,
    is_reached: impl Fn(&Result<T, CallError>) -> bool,
) {
    let reached = async {
        while !is_reached(&call().await) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(HANG, reached).await.expect("the usage was measured");
}

#[tokio::test]
async fn stored_bytes_of_one_service_leave_none_to_the_others_until_some_are_deleted() {
    let world = world(BYTES).await;
    let (table, queue) = (world.table("bytes").await, world.queue("bytes").await);
    let (container, stream) = (world.container("bytes").await, world.log_stream("bytes").await);
    queue.send(text("first")).await.unwrap();
    container.write("first", "1").await.unwrap();
    let records = [log_record(an_hour(), "x")];
    let rows = names(1000);
    let (stored, rejected) =
        until_rejected(async |row: usize| table.insert(large(&rows[row])).await).await;

    assert!((5..8).contains(&stored), "{stored} entities");
    check_over_bytes(&rejected, "insert");
    let upserts = vec![insert_op(plain("p", "batch")), delete_op("p", &rows[0], None)];
    check_over_bytes(&table.batch(upserts).await.unwrap_err(), "a batch");
    check_over_bytes(&queue.send(text("x")).await.unwrap_err(), "send");
    check_over_bytes(&container.write("second", "1").await.unwrap_err(), "write");
    check_over_bytes(&container.stage("second", "id", "1").await.unwrap_err(), "stage");
    check_over_bytes(&stream.append(&records).await.unwrap_err(), "append");
    check_over_bytes(&create_table(&world, "second").await.unwrap_err(), "create");
    // Reads pass, and what holds a message.
    assert_eq!(table.query("").await.unwrap().len(), stored);
    let minute = prost_types::Duration { seconds: 60, nanos: 0 };
    let received = queue.receive(1, minute).await.unwrap().remove(0);
    let receipt = receipt_of(&received);
    let receipt = queue.update(receipt, minute, None).await.unwrap();
    let grown = queue.update(receipt.clone(), minute, Some("longer")).await.unwrap_err();
    check_over_bytes(&grown, "update");

    // For good, once it is measured.
    until(
        async || table.insert(large("measured")).await,
        |outcome| matches!(outcome, Err(error) if error.kind() == FULL),
    )
    .await;
    check_over_bytes(&queue.send(text("x")).await.unwrap_err(), "send");
    // Deletes pass, in a batch too, and make room.
    let deletes = rows[..stored].iter().map(|row| delete_op("p", row, None)).collect();
    table.batch(deletes).await.unwrap();
    queue.delete(receipt).await.unwrap();
    container.delete("first").await.unwrap();
    until(async || table.insert(large("after")).await, Result::is_ok).await;
    queue.send(text("x")).await.unwrap();
}

#[tokio::test]
async fn an_upload_over_the_stored_bytes_is_rejected_while_it_is_sent() {
    let world = world(BYTES).await;
    let container = world.container("bytes").await;
    let pieces = vec![7; 2_000_000];

    let rejected = container.write("large", pieces).await.unwrap_err();

    check_over_bytes(&rejected, "write");
    let absent = container.get("large").await.unwrap_err();
    assert_eq!(absent.kind(), (Code::NotFound, "BLOB_NOT_FOUND"));
}

#[tokio::test]
async fn a_quota_of_blobs_is_measured_and_its_usage_reported_beside_it() {
    let server = server("all", &[("ACCOUNT_BLOBS_MAX", "3"), ("ACCOUNT_CONTAINERS_MAX", "10")]);
    let admin = server.address("admin");
    let world = World::of(server).await;
    let container = world.container("blobs").await;
    let write = async |blob: usize| container.write(&blob.to_string(), "1").await;
    let (written, error) = until_rejected(write).await;

    assert_eq!(written, 3);
    assert!(error.message.contains("(quotas.account_blobs_max): usage=`3`"), "{error:?}");
    until(
        async || container.write("more", "1").await,
        |outcome| matches!(outcome, Err(error) if error.kind() == FULL),
    )
    .await;
    let stats = world.blobs().get_service_stats(GetBlobStatsRequest {}).await;
    let quotas = stats.unwrap().into_inner().quotas;
    let quotas: Vec<_> = quotas.iter().map(|it| (&*it.quota, it.usage, it.limit)).collect();
    assert_eq!(quotas, [("account_containers_max", 1, 10), ("account_blobs_max", 3, 3)]);
    let metrics = page(&admin, "/metrics").await;
    let value = |name: &str| {
        let labels = "trestle_account=\"devstoreaccount1\",trestle_quota_name=\"account_blobs\"";
        metric(&metrics, &format!("{name}{{{labels}"))
    };
    assert_eq!(value("trestle_quota_usage"), Some(3.0), "{metrics}");
    assert_eq!(value("trestle_quota_limit"), Some(3.0), "{metrics}");
    let scope = "trestle_throttle_operations_total{trestle_throttle_scope=\"account_blobs\"";
    assert!(metric(&metrics, scope) >= Some(2.0), "{metrics}");
    container.delete("0").await.unwrap();
    until(async || container.write("more", "1").await, Result::is_ok).await;
}

/// The outcome of calls with the numbers from 0 on until one is rejected.
async fn until_rejected<T>(
    mut call: impl AsyncFnMut(usize) -> Result<T, CallError>,
) -> (usize, CallError) {
    for number in 0..1000 {
        if let Err(error) = call(number).await {
            return (number, error);
        }
    }
    panic!("a thousand calls were not rejected")
}

#[tokio::test]
async fn an_account_at_its_quotas_leaves_another_account_its_own() {
    let key = "a2V5IG9mIGFuIGFjY291bnQgb2YgdGhpcnR5LXR3byBieXRlcw==";
    let accounts =
        [("TRESTLE__ACCOUNTS__ALPHA__KEY1", key), ("TRESTLE__ACCOUNTS__BETA__KEY1", key)];
    let quotas = [
        ("TRESTLE__QUOTAS__ACCOUNT_STORED_BYTES_MAX", "200000"),
        ("TRESTLE__QUOTAS__ACCOUNT_TABLES_MAX", "1"),
        ("TRESTLE__STORAGE__EPHEMERAL", "true"),
    ];
    let world = World::of(Server::start(&[], &[&accounts[..], &quotas].concat())).await;
    let of = |account: &str| {
        let credentials = STANDARD.encode(format!("{account}:{key}"));
        world.with_header(AUTHORIZATION, &format!("Basic {credentials}"))
    };
    let (alpha, beta) = (of("alpha"), of("beta"));
    let (full, free) = (alpha.table("orders").await, beta.table("orders").await);

    let (stored, rejected) =
        until_rejected(async |row: usize| full.insert(large(&row.to_string())).await).await;

    assert!((5..8).contains(&stored), "{stored} entities");
    assert_eq!(rejected.quotas, ["account `alpha`"]);
    let full = create_table(&alpha, "second").await.unwrap_err();
    assert!(full.message.contains("account `alpha`"), "{full:?}");
    for row in names(5) {
        free.insert(large(&row)).await.unwrap();
    }
}
