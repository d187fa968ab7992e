//! Leases of blobs and containers, end to end. Every state and action is a test of the service.

mod rejected;

use tonic::{Code, Status};
use trestle_proto::blob::v1::{
    self as proto, AcquireLease, BlobConditions, BreakLease, ChangeLease, LeaseState, ReleaseLease,
    RenewLease, lease_blob_request::Action,
};
use trestle_tests::{CallError, Container, World, blob_scenario, seconds};

blob_scenario!(a_lease_protects_a_blob_until_it_is_released, a_lease_is_renewed_changed_and_broken,);

const A: &str = "0f0e0d0c-0b0a-4908-8706-050403020100";
const B: &str = "1f0e0d0c-0b0a-4908-8706-050403020100";

async fn lease(
    container: &Container,
    action: Action,
) -> Result<proto::LeaseBlobResponse, CallError> {
    let request = proto::LeaseBlobRequest {
        container: container.name(),
        blob: "a".to_owned(),
        action: Some(action),
        conditions: None,
    };
    let response = container.client().lease_blob(request).await;
    response.map(tonic::Response::into_inner).map_err(|status: Status| CallError::of(&status))
}

fn acquire(duration: Option<i64>, id: &str) -> Action {
    let duration = duration.map(seconds);
    Action::Acquire(AcquireLease { duration, proposed_lease_id: id.to_owned() })
}

fn with_lease(container: &Container, id: &str) -> proto::WriteBlobSpec {
    let conditions = Some(BlobConditions { lease_id: id.to_owned(), ..Default::default() });
    proto::WriteBlobSpec { conditions, ..container.spec("a") }
}

fn state(response: &proto::LeaseBlobResponse) -> LeaseState {
    response.blob.as_ref().unwrap().lease.as_ref().unwrap().state()
}

async fn a_lease_protects_a_blob_until_it_is_released(world: &World) {
    let logs = world.container("logs").await;
    let written = logs.write("a", "1").await.unwrap();

    let leased = lease(&logs, acquire(None, "")).await.unwrap();
    assert_eq!((state(&leased), leased.lease_id.len()), (LeaseState::Leased, 36));
    assert_eq!(leased.blob.unwrap().etag, written.etag, "a lease is not a modification");
    let id = leased.lease_id.as_str();
    let precondition = |reason| (Code::FailedPrecondition, reason);
    let missing = logs.write("a", "2").await.unwrap_err();
    assert_eq!(missing.kind(), precondition("LEASE_ID_MISSING"));
    assert_eq!(logs.delete("a").await.unwrap_err().kind(), precondition("LEASE_ID_MISSING"));
    let other = logs.write_with(with_lease(&logs, A), "2").await.unwrap_err();
    assert_eq!(other.kind(), precondition("LEASE_ID_MISMATCH_WITH_BLOB_OPERATION"));
    assert_eq!(logs.read("a").await.unwrap().data, "1", "reads need no lease");
    logs.write_with(with_lease(&logs, &id.to_uppercase()), "3").await.unwrap();
    let again = lease(&logs, acquire(None, A)).await.unwrap_err();
    assert_eq!(again.kind(), (Code::AlreadyExists, "LEASE_ALREADY_PRESENT"));

    lease(&logs, Action::Release(ReleaseLease { lease_id: id.to_owned() })).await.unwrap();
    logs.write("a", "4").await.unwrap();
    let released = logs.write_with(with_lease(&logs, id), "5").await.unwrap_err();
    assert_eq!(released.kind(), precondition("LEASE_NOT_PRESENT_WITH_BLOB_OPERATION"));
}

async fn a_lease_is_renewed_changed_and_broken(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    lease(&logs, acquire(Some(60), A)).await.unwrap();

    let renewed = lease(&logs, Action::Renew(RenewLease { lease_id: A.to_owned() })).await;
    assert_eq!(renewed.unwrap().lease_id, A);
    let (lease_id, proposed_lease_id) = (A.to_owned(), B.to_owned());
    let change = Action::Change(ChangeLease { lease_id, proposed_lease_id });
    assert_eq!(lease(&logs, change).await.unwrap().lease_id, B);
    let stale = lease(&logs, Action::Renew(RenewLease { lease_id: A.to_owned() })).await;
    assert_eq!(stale.unwrap_err().reason, "LEASE_ID_MISMATCH_WITH_LEASE_OPERATION");

    let period = Some(seconds(30));
    let breaking = lease(&logs, Action::Break(BreakLease { break_period: period })).await.unwrap();
    assert_eq!((state(&breaking), breaking.remaining), (LeaseState::Breaking, period));
    assert_eq!(logs.write("a", "2").await.unwrap_err().reason, "LEASE_ID_MISSING");
    let now = Some(seconds(0));
    let broken = lease(&logs, Action::Break(BreakLease { break_period: now })).await.unwrap();
    assert_eq!((state(&broken), broken.remaining), (LeaseState::Broken, now));
    let lost = logs.write_with(with_lease(&logs, B), "2").await.unwrap_err();
    assert_eq!(lost.reason, "LEASE_LOST");
    logs.write("a", "2").await.unwrap();
}
