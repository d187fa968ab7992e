//! Quotas on calls of every service: operations, and bytes of requests and responses.

use tonic::Code;
use trestle_proto::opentelemetry::proto::collector::logs::v1::logs_service_client::LogsServiceClient;
use trestle_tests::{log_record, text};

use super::*;
use crate::log::{an_hour, export::one_log};

/// The error of the call that is rejected, of at most a thousand.
async fn until_rejected<T>(mut call: impl AsyncFnMut() -> Result<T, CallError>) -> CallError {
    for _ in 0..1000 {
        if let Err(error) = call().await {
            return error;
        }
    }
    panic!("a thousand calls were not rejected")
}

/// Checks that a call was rejected for a quota of the account with this setting.
fn check_rejected(error: &CallError, setting: &str, call: &str) {
    assert_eq!(error.kind(), (Code::ResourceExhausted, "SERVER_BUSY"), "{call}: {error:?}");
    assert_eq!(error.quotas, ["account `devstoreaccount1`"], "{call}");
    assert!(error.message.contains(&format!("(quotas.{setting})")), "{call}: {error:?}");
    assert!(error.retry_after.is_some_and(|delay| !delay.is_zero()), "{call}: {error:?}");
}

#[tokio::test]
async fn calls_of_every_service_count_as_operations_of_the_account() {
    let quotas = [("ACCOUNT_OPERATIONS_PER_SECOND", "1"), ("ACCOUNT_BURST_OPERATIONS", "10")];
    let world = world(&quotas).await;
    let (table, queue) = (world.table("busy").await, world.queue("busy").await);
    let (container, stream) = (world.container("busy").await, world.log_stream("busy").await);
    let records = [log_record(an_hour(), "x")];
    let exports = LogsServiceClient::new(world.transport());
    let export = async || {
        exports.clone().export(one_log("busy", "x")).await.map(drop).map_err(CallError::from)
    };
    let setting = "account_operations_per_second";

    let rejected = until_rejected(async || table.insert(fresh("p")).await).await;
    check_rejected(&rejected, setting, "insert");
    for (call, rejected) in [
        ("get", until_rejected(async || table.query("").await).await),
        ("send", until_rejected(async || queue.send(text("x")).await).await),
        ("peek", until_rejected(async || queue.peek(1).await).await),
        ("write", until_rejected(async || container.write("a", "1").await).await),
        ("read", until_rejected(async || container.read("a").await).await),
        ("append", until_rejected(async || stream.append(&records).await).await),
        ("export", until_rejected(export).await),
    ] {
        check_rejected(&rejected, setting, call);
    }
    // A retry after the delay succeeds.
    with_retries(async || queue.send(text("x")).await).await;
}

#[tokio::test]
async fn bytes_of_requests_and_responses_count_for_the_next_call() {
    let quotas = [("ACCOUNT_BYTES_PER_SECOND", "65536")];
    let world = world(&quotas).await;
    let (table, queue) = (world.table("busy").await, world.queue("busy").await);
    let large = || {
        let padding = string("padding", &"x".repeat(30_000));
        let mut entity = fresh("p");
        entity.properties.push(padding);
        entity
    };
    let setting = "account_bytes_per_second";

    let rejected = until_rejected(async || table.insert(large()).await).await;
    check_rejected(&rejected, setting, "insert");
    let rejected = until_rejected(async || queue.send(text(&"x".repeat(48_000))).await).await;
    check_rejected(&rejected, setting, "send");
    // Read, and not written: a page of entities of 30 KB.
    let rejected = until_rejected(async || table.query("").await).await;
    check_rejected(&rejected, setting, "query");
    with_retries(async || queue.peek(1).await).await;
}

#[tokio::test]
async fn streams_are_slowed_down_to_the_bytes_of_the_account() {
    let server = server("all", &[("ACCOUNT_BYTES_PER_SECOND", "2000000")]);
    let admin = server.address("admin");
    let world = World::of(server).await;
    let container = world.container("busy").await;
    let content: Vec<u8> = (0..2_500_000_u32).map(|at| at.to_le_bytes()[1]).collect();

    container.write("a", content.clone()).await.unwrap();
    let read = with_retries(async || container.read("a").await).await;

    assert!(read.data == content, "{} bytes", read.data.len());
    // Of five million bytes two are a burst: the upload, its response, or the download waited.
    let metrics = page(&admin, "/metrics").await;
    let scope = "trestle_throttle_operations_total{trestle_throttle_scope=\"account_bytes\"";
    assert!(metric(&metrics, scope) >= Some(1.0), "{metrics}");
}

#[tokio::test]
async fn an_account_with_quotas_of_its_own_has_those() {
    let quotas = [
        ("ACCOUNT_OPERATIONS_PER_SECOND", "1"),
        ("ACCOUNT_BURST_OPERATIONS", "1"),
        ("ACCOUNTS__DEVSTOREACCOUNT1__ACCOUNT_OPERATIONS_PER_SECOND", "1000000"),
    ];
    let world = world(&quotas).await;
    let queue = world.queue("free").await;
    for _ in 0..100 {
        queue.send(text("x")).await.unwrap();
    }
}
