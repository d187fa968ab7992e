//! Health over gRPC: checks, watches, and the end of both.

use std::time::Duration;

use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use trestle_rpc::layer::CallService;
use trestle_runtime::health::Health;

const TABLE: &str = "trestle.table.v1.TableService";

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn status(client: &mut HealthClient<CallService>, service: &str) -> ServingStatus {
    client.check(about(service)).await.unwrap().get_ref().status()
}

#[tokio::test]
async fn reports_not_serving_for_the_process_until_every_service_recovers() {
    let health = Health::of(&[TABLE, "other"]).await;
    let mut client = HealthClient::new(health.service());

    health.report(TABLE, Some("storage stopped".to_owned())).await;
    assert_eq!(status(&mut client, TABLE).await, ServingStatus::NotServing);
    assert_eq!(status(&mut client, "").await, ServingStatus::NotServing);
    assert_eq!(status(&mut client, "other").await, ServingStatus::Serving);
    assert_eq!(health.problems(), [format!("{TABLE}: storage stopped")]);
    health.report("other", Some("storage stopped".to_owned())).await;
    assert_eq!(health.problems(), [format!("other, {TABLE}: storage stopped")]);
    health.report("other", None).await;

    health.report(TABLE, None).await;
    assert_eq!(status(&mut client, TABLE).await, ServingStatus::Serving);
    assert_eq!(status(&mut client, "").await, ServingStatus::Serving);
    assert!(health.problems().is_empty());
}

#[tokio::test]
async fn a_limitation_applies_while_any_part_of_the_process_reports_it() {
    let health = Health::of(&[TABLE]).await;
    let mut client = HealthClient::new(health.service());
    let full = Some("read-only: disk or backup");
    let mut found = Vec::new();

    for (part, limitation) in
        [("store", None), ("table", full), ("queue", full), ("table", None), ("queue", None)]
    {
        health.limit("writes", part, limitation).await;
        found.push((status(&mut client, "writes").await, health.limitations().len()));
    }

    use ServingStatus::{NotServing, Serving};
    let limited = (NotServing, 1);
    assert_eq!(found, [(Serving, 0), limited, limited, limited, (Serving, 0)]);
    assert_eq!(status(&mut client, "").await, Serving);
}

#[tokio::test]
async fn reports_not_found_for_an_unknown_service() {
    let health = Health::of(&[TABLE]).await;
    let mut client = HealthClient::new(health.service());

    let error = client.check(about("unknown")).await.unwrap_err();

    assert_eq!(error.code(), Code::NotFound);
}

#[tokio::test]
async fn a_watch_of_an_unknown_service_reports_it_as_unknown_and_continues() {
    let health = Health::of(&[TABLE]).await;
    let mut client = HealthClient::new(health.service());

    let mut watch = client.watch(about("later")).await.unwrap().into_inner();
    let first = watch.next().await.unwrap().unwrap().status();
    health.report(TABLE, Some("of another service".to_owned())).await;
    let silence = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    health.report("later", None).await;
    health.report("later", Some("broken".to_owned())).await;
    let later = watch.next().await.unwrap().unwrap().status();
    health.end_watches().await;

    assert_eq!(first, ServingStatus::ServiceUnknown);
    assert!(silence.is_err(), "an unchanged status was reported again");
    assert_eq!(later, ServingStatus::NotServing);
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_watch_reports_each_change_once_and_ends_with_the_process() {
    let health = Health::of(&[TABLE]).await;
    let mut client = HealthClient::new(health.service());
    let mut watch = client.watch(about("")).await.unwrap().into_inner();
    let mut reported = Vec::new();

    reported.push(watch.next().await.unwrap().unwrap().status());
    health.report(TABLE, Some("first".to_owned())).await;
    reported.push(watch.next().await.unwrap().unwrap().status());
    health.report(TABLE, Some("still broken".to_owned())).await;
    let silence = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    health.report(TABLE, None).await;
    reported.push(watch.next().await.unwrap().unwrap().status());
    health.drain().await;
    health.end_watches().await;
    while let Some(status) = watch.next().await {
        reported.push(status.unwrap().status());
    }

    use ServingStatus::{NotServing, Serving};
    assert!(silence.is_err(), "an unchanged status was reported again");
    assert_eq!(reported, [Serving, NotServing, Serving, NotServing]);
    assert_eq!(health.problems(), ["shutting down"]);
}
