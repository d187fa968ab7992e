//! Signatures that a stored access policy completes.

use prost_types::Timestamp;
use trestle_proto::service::v1::AccessPolicy;
use trestle_proto::table::v1::{ImportChunk, StreamEntitiesRequest, import_entities_request};
use trestle_tests::{Service, Table, entity, service_scenario, string};

use super::{NO_PERMISSION, NOT_AUTHENTIC, TABLE_ABSENT, by_policy, over_table};

service_scenario!(
    policy_changes_and_revocation_apply_at_once,
    policy_is_valid_between_start_and_expiry,
    policies_are_deleted_with_their_table,
    revoked_policy_ends_streams_and_imports,
);

const PAST: i64 = 1_000_000_000;
const FUTURE: i64 = 32_000_000_000;

fn policy(id: &str, permissions: &str) -> AccessPolicy {
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    AccessPolicy {
        id: id.to_owned(),
        start_time: at(PAST),
        expiry_time: at(FUTURE),
        permissions: Some(permissions.to_owned()),
    }
}

/// The table `shared` for its owner, and for the holder of a SAS with the policy `p`.
async fn shared(service: &Service) -> (Table, Table) {
    let owner = service.owner().table("shared").await;
    (owner, service.granted(by_policy("shared", "p")).existing_table("shared"))
}

async fn policy_changes_and_revocation_apply_at_once(service: &Service) {
    let (owner, held) = shared(service).await;
    owner.insert(entity("p", "r", [])).await.unwrap();
    for round in 0..20 {
        let row = format!("r{round}");
        assert_eq!(held.get("p", "r").await.unwrap_err().kind(), NOT_AUTHENTIC);
        let others = (0..4).map(|other| policy(&other.to_string(), "raud"));
        let policies = others.chain([policy("p", "r")]).collect();
        owner.set_policies(policies).await.unwrap();
        held.get("p", "r").await.unwrap();
        let rejected = held.insert(entity("p", &row, [])).await.unwrap_err();
        assert_eq!(rejected.kind(), NO_PERMISSION);

        owner.set_policies(vec![policy("p", "a")]).await.unwrap();
        held.insert(entity("p", &row, [])).await.unwrap();
        assert_eq!(held.query("").await.unwrap_err().kind(), NO_PERMISSION);

        owner.set_policies(vec![policy("P", "raud")]).await.unwrap();
        let renamed = held.insert(entity("p", "renamed", [])).await.unwrap_err();
        assert_eq!(renamed.kind(), NOT_AUTHENTIC);
        owner.set_policies(Vec::new()).await.unwrap();
    }
    let unlimited = service.granted(over_table("shared", "r")).existing_table("shared");
    unlimited.get("p", "r").await.unwrap();
}

async fn policy_is_valid_between_start_and_expiry(service: &Service) {
    let (owner, held) = shared(service).await;
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    let good = policy("p", "r");
    for (stored, holds) in [
        (good.clone(), true),
        (AccessPolicy { start_time: at(FUTURE - 1), ..good.clone() }, false),
        (AccessPolicy { expiry_time: at(PAST + 1), ..good.clone() }, false),
        (AccessPolicy { expiry_time: None, ..good.clone() }, false),
        (AccessPolicy { start_time: None, ..good.clone() }, true),
        (AccessPolicy { permissions: None, ..good.clone() }, false),
        (AccessPolicy { permissions: Some(String::new()), ..good }, false),
    ] {
        owner.set_policies(vec![stored.clone()]).await.unwrap();
        match held.query("").await {
            Ok(entities) => assert!(holds && entities.is_empty(), "{stored:?}"),
            Err(error) => assert_eq!((error.kind(), holds), (NOT_AUTHENTIC, false)),
        }
    }
}

async fn policies_are_deleted_with_their_table(service: &Service) {
    let absent = service.granted(by_policy("shared", "p")).existing_table("shared");
    let rejected = absent.get("p", "r").await.unwrap_err();
    assert_eq!(rejected.kind(), NOT_AUTHENTIC, "not whether the table exists");

    let (owner, held) = shared(service).await;
    owner.set_policies(vec![policy("p", "raud")]).await.unwrap();
    held.insert(entity("p", "r", [])).await.unwrap();
    service.owner().drop_table("shared").await.unwrap();
    assert_eq!(held.get("p", "r").await.unwrap_err().kind(), NOT_AUTHENTIC);
    assert_eq!(owner.get("p", "r").await.unwrap_err().kind(), TABLE_ABSENT);
    service.owner().create("shared").await.unwrap();
    assert_eq!(held.query("").await.unwrap_err().kind(), NOT_AUTHENTIC);
}

async fn revoked_policy_ends_streams_and_imports(service: &Service) {
    let (owner, held) = shared(service).await;
    let large = "x".repeat(30_000);
    for batch in 0..10 {
        let rows = (0..90).map(|row| format!("{batch}-{row:02}"));
        let entities = rows.map(|row| entity("p", &row, [string("large", &large)])).collect();
        assert_eq!(owner.import(None, vec![entities]).await.unwrap(), []);
    }
    owner.set_policies(vec![policy("p", "ra")]).await.unwrap();
    let mut stream = held.open_stream(StreamEntitiesRequest::default()).await.unwrap();
    stream.message().await.unwrap().unwrap();
    owner.set_policies(Vec::new()).await.unwrap();
    // Messages in flight when the policy was deleted may still arrive; the 27 MB do not.
    let ended = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream went on to its end"),
            Err(status) => break trestle_tests::CallError::of(&status),
        }
    };
    assert_eq!(ended.kind(), NOT_AUTHENTIC);

    owner.set_policies(vec![policy("p", "a")]).await.unwrap();
    let chunk = |row: &str| {
        let entities = vec![entity("q", row, [])];
        Some(import_entities_request::Message::Chunk(ImportChunk { entities }))
    };
    let spec = import_entities_request::Message::Spec(held.spec(None));
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let send = |message| sender.send(trestle_proto::table::v1::ImportEntitiesRequest { message });
    send(Some(spec)).await.unwrap();
    send(chunk("before")).await.unwrap();
    let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut answers = held.client().import_entities(requests).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().results[0].error, None);
    owner.set_policies(Vec::new()).await.unwrap();
    send(chunk("after")).await.unwrap();
    let ended = trestle_tests::CallError::of(&answers.message().await.unwrap_err());
    assert_eq!(ended.kind(), NOT_AUTHENTIC);
    assert_eq!(owner.rows("PartitionKey eq 'q'").await.unwrap(), ["before"]);
}
