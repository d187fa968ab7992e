//! Reflection of processes with some of the roles.

use std::collections::BTreeSet;

use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use trestle_tests::Server;

const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];
const TABLE: &str = "trestle.table.v1.TableService";
const QUEUE: &str = "trestle.queue.v1.QueueService";

/// The services that a server lists.
async fn listed(server: &Server) -> BTreeSet<String> {
    let mut reflection = ServerReflectionClient::new(server.channel());
    let list = MessageRequest::ListServices(String::new());
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(list) };
    let answers = reflection.server_reflection_info(tokio_stream::iter([request])).await;
    let answer = answers.unwrap().into_inner().message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(services)) = answer.message_response else {
        panic!("{answer:?}")
    };
    services.service.into_iter().map(|service| service.name).collect()
}

/// Health and reflection, and these.
fn with_own(services: &[&str]) -> BTreeSet<String> {
    let all = REFLECTION.iter().chain([&HEALTH]).chain(services);
    all.map(|service| (*service).to_owned()).collect()
}

#[tokio::test]
async fn a_process_lists_the_services_that_it_serves() {
    let start = |role: &str| Server::start(&["--ephemeral", "--roles", role], &[]);
    let (table, queue) = (start("table"), start("queue"));
    assert_eq!(listed(&table).await, with_own(&[TABLE]));
    assert_eq!(listed(&queue).await, with_own(&[QUEUE]));

    let settings = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", &*table.endpoint())];
    let gateway = Server::start(&["--roles", "gateway"], &settings);
    assert_eq!(listed(&gateway).await, with_own(&[TABLE]));

    let whole = Server::start(&["--ephemeral"], &[]);
    let services = listed(&whole).await;
    assert!(services.is_superset(&with_own(&[TABLE, QUEUE])), "{services:?}");
    for name in ["trestle.blob.v1.BlobService", "trestle.log.v1.LogService"] {
        assert!(services.contains(name), "{services:?}");
    }
}
