//! Quotas on what an account stores.

use futures::future::join_all;
use trestle_proto::{
    blob::v1::{Container, CreateContainerRequest, DeleteContainerRequest},
    log::v1::{CreateStreamRequest, LogStream},
    opentelemetry::proto::collector::logs::v1::logs_service_client::LogsServiceClient,
    queue::v1::{CreateQueueRequest, Queue},
    table::v1::{CreateTableRequest, DeleteTableRequest, Table as NewTable},
};

use super::*;
use crate::log::export::one_log;

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

    let delete = DeleteTableRequest { table: "first".to_owned(), ..Default::default() };
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
