//! Deleting many blobs in one call.

use tonic::Code;
use trestle_identity::sas::Scope;
use trestle_proto::blob::v1::{self as proto, BlobConditions, DeleteSnapshots};
use trestle_tests::{CallError, World, blob_scenario, if_match, terms, token};

blob_scenario!(
    each_deletion_has_its_conditions_and_its_outcome,
    blobs_of_several_containers_and_snapshots_are_deleted_in_one_call,
    a_call_deletes_up_to_256_blobs,
    a_signature_deletes_only_what_it_is_for,
);

fn kinds(outcomes: &[Result<(), CallError>]) -> Vec<(Code, &str)> {
    let ok = (Code::Ok, "");
    outcomes.iter().map(|outcome| outcome.as_ref().err().map_or(ok, CallError::kind)).collect()
}

async fn each_deletion_has_its_conditions_and_its_outcome(world: &World) {
    let logs = world.container("logs").await;
    for blob in ["a", "b", "c", "d", "e"] {
        logs.write(blob, "x").await.unwrap();
    }
    let (lease_id, current) =
        (logs.acquire_lease("d").await.unwrap(), logs.get("b").await.unwrap().etag);
    logs.acquire_lease("e").await.unwrap();
    let with = |blob: &str, conditions: Option<BlobConditions>| proto::DeleteBlobRequest {
        conditions,
        ..logs.deleting(blob)
    };
    let held = BlobConditions { lease_id, ..Default::default() };

    let outcomes = logs.delete_all(vec![
        logs.deleting("a"),
        logs.deleting("absent"),
        with("b", if_match(&current)),
        with("c", if_match("\"0x1\"")),
        with("d", Some(held)),
        logs.deleting("e"),
        logs.deleting(""),
        proto::DeleteBlobRequest { container: "absent".to_owned(), ..logs.deleting("a") },
    ]);

    let outcomes = outcomes.await.unwrap();
    let expected = [
        (Code::Ok, ""),
        (Code::NotFound, "BLOB_NOT_FOUND"),
        (Code::Ok, ""),
        (Code::Aborted, "CONDITION_NOT_MET"),
        (Code::Ok, ""),
        (Code::FailedPrecondition, "LEASE_ID_MISSING"),
        (Code::InvalidArgument, "INVALID_URI"),
        (Code::NotFound, "CONTAINER_NOT_FOUND"),
    ];
    assert_eq!(kinds(&outcomes), expected);
    assert_eq!(logs.list("", "").await.unwrap(), ["c", "e"]);
}

async fn blobs_of_several_containers_and_snapshots_are_deleted_in_one_call(world: &World) {
    let logs = world.container("logs").await;
    let other = world.container("other").await;
    for container in [&logs, &other] {
        container.write("a", "x").await.unwrap();
        container.snapshot("a").await.unwrap();
    }
    let snapshots = DeleteSnapshots::Include.into();
    let all = proto::DeleteBlobRequest { delete_snapshots: snapshots, ..other.deleting("a") };

    let outcomes = logs.delete_all(vec![logs.deleting("a"), all]).await.unwrap();

    let present = (Code::FailedPrecondition, "SNAPSHOTS_PRESENT");
    assert_eq!(kinds(&outcomes), [present, (Code::Ok, "")]);
    assert_eq!(logs.list("", "").await.unwrap(), ["a"]);
    assert!(other.list("", "").await.unwrap().is_empty());
}

async fn a_call_deletes_up_to_256_blobs(world: &World) {
    let logs = world.container("logs").await;
    let names: Vec<String> = (0..256).map(|number| format!("{number:03}")).collect();
    for name in &names {
        logs.write(name, "x").await.unwrap();
    }
    let requests: Vec<_> = names.iter().map(|name| logs.deleting(name)).collect();

    let one_more = [requests.clone(), vec![logs.deleting("x")]].concat();
    for rejected in [one_more, Vec::new()] {
        let error = logs.delete_all(rejected).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(error.fields, ["requests"]);
    }
    assert_eq!(logs.list("", "").await.unwrap(), names, "nothing is deleted");

    let outcomes = logs.delete_all(requests).await.unwrap();
    assert_eq!(outcomes, vec![Ok(()); 256]);
    assert!(logs.list("", "").await.unwrap().is_empty());
}

async fn a_signature_deletes_only_what_it_is_for(world: &World) {
    let logs = world.container("logs").await;
    let other = world.container("other").await;
    for container in [&logs, &other] {
        container.write("a", "x").await.unwrap();
    }
    let held = |permissions: &str| {
        let token = token(terms(Scope::of_container("logs"), permissions));
        world.signed_for_blob(&token, "logs").existing_container("logs")
    };
    let both = || vec![other.deleting("a"), logs.deleting("a")];

    let denied = held("rwl").delete_all(both()).await.unwrap_err();
    assert_eq!(denied.kind(), (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH"));
    let outcomes = held("d").delete_all(both()).await.unwrap();

    let denied = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");
    assert_eq!(kinds(&outcomes), [denied, (Code::Ok, "")]);
    assert_eq!(other.list("", "").await.unwrap(), ["a"]);
    assert!(logs.list("", "").await.unwrap().is_empty());
}
