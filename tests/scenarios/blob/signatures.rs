//! Shared access signatures on containers and blobs: what each allows, and what it does not.

use tonic::Code;
use trestle_identity::sas::Scope;
use trestle_proto::blob::v1 as proto;
use trestle_proto::service::v1::AccessPolicy;
use trestle_tests::{Container, World, blob_scenario, over_account, terms, terms_by_policy, token};

blob_scenario!(
    a_container_sas_grants_its_permissions_on_its_blobs,
    an_account_sas_grants_its_permissions_on_blobs,
    a_container_policy_is_used_and_revoked,
);

const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const FAILURE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");
const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");

/// A container as the holder of a signature over it sees it.
fn held(world: &World, permissions: &str) -> Container {
    let token = token(terms(Scope::of_container("logs"), permissions));
    world.signed_for_blob(&token, "logs").existing_container("logs")
}

async fn a_container_sas_grants_its_permissions_on_its_blobs(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();

    let reader = held(world, "r");
    assert_eq!(reader.read("a").await.unwrap().data, "1");
    assert_eq!(reader.write("a", "2").await.unwrap_err().kind(), NO_PERMISSION);
    assert_eq!(reader.delete("a").await.unwrap_err().kind(), NO_PERMISSION);
    assert_eq!(reader.list("", "").await.unwrap_err().kind(), NO_PERMISSION);
    let writer = held(world, "wdl");
    writer.write("b", "2").await.unwrap();
    assert_eq!(writer.list("", "").await.unwrap(), ["a", "b"]);
    writer.delete("b").await.unwrap();
    assert_eq!(writer.read("a").await.unwrap_err().kind(), NO_PERMISSION);
    assert_eq!(writer.drop_container().await.unwrap_err().kind(), FAILURE);

    writer.create_append("log").await.unwrap();
    for permissions in ["a", "w"] {
        let appender = held(world, permissions);
        appender.append(appender.appending("log"), "line").await.unwrap();
    }
    let appender = held(world, "a");
    assert_eq!(appender.write("b", "2").await.unwrap_err().kind(), NO_PERMISSION);
    let rejected = reader.append(reader.appending("log"), "line").await;
    assert_eq!(rejected.unwrap_err().kind(), NO_PERMISSION);

    world.container("other").await;
    let other = token(terms(Scope::of_container("logs"), "rwdl"));
    let other = world.signed_for_blob(&other, "logs").existing_container("other");
    assert_eq!(other.write("a", "x").await.unwrap_err().kind(), FAILURE);
    let unnamed = token(terms(Scope::of_container("logs"), "r"));
    let unnamed = world.signed_for_blob(&unnamed, "other").existing_container("other");
    assert_eq!(unnamed.read("a").await.unwrap_err().kind(), NOT_AUTHENTIC);
}

async fn an_account_sas_grants_its_permissions_on_blobs(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let holder = |services: &str, types: &str, permissions: &str| {
        let token = token(terms(over_account(services, types), permissions));
        world.signed(&token).existing_container("logs")
    };

    assert_eq!(holder("b", "o", "r").read("a").await.unwrap().data, "1");
    assert_eq!(holder("b", "c", "l").list("", "").await.unwrap(), ["a"]);
    let kind = |error: trestle_tests::CallError| error.reason;
    let wrong = holder("qt", "o", "r").read("a").await.unwrap_err();
    assert_eq!(kind(wrong), "AUTHORIZATION_SERVICE_MISMATCH");
    let wrong = holder("b", "c", "r").read("a").await.unwrap_err();
    assert_eq!(kind(wrong), "AUTHORIZATION_RESOURCE_TYPE_MISMATCH");
    let wrong = holder("b", "o", "r").write("a", "2").await.unwrap_err();
    assert_eq!(kind(wrong), "AUTHORIZATION_PERMISSION_MISMATCH");
}

async fn a_container_policy_is_used_and_revoked(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let set = |policies| {
        let (container, conditions) = (logs.name(), None);
        let request = proto::SetContainerAccessPoliciesRequest {
            container,
            policies,
            conditions,
            ..Default::default()
        };
        let mut client = logs.client();
        async move { client.set_container_access_policies(request).await.unwrap() }
    };
    let token = token(terms_by_policy(Scope::of_container("logs"), "readers"));
    let reader = world.signed_for_blob(&token, "logs").existing_container("logs");
    assert_eq!(reader.read("a").await.unwrap_err().kind(), NOT_AUTHENTIC);

    let expiry_time = Some(prost_types::Timestamp { seconds: 4_000_000_000, nanos: 0 });
    let (id, permissions) = ("readers".to_owned(), Some("r".to_owned()));
    set(vec![AccessPolicy { id, permissions, expiry_time, ..Default::default() }]).await;
    assert_eq!(reader.read("a").await.unwrap().data, "1");
    assert_eq!(reader.write("a", "2").await.unwrap_err().kind(), NO_PERMISSION);
    set(Vec::new()).await;
    assert_eq!(reader.read("a").await.unwrap_err().kind(), NOT_AUTHENTIC);
}
