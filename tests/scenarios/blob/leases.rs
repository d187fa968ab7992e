//! Leases of blobs and containers, end to end. Every state and action is a test of the service.

use tonic::{Code, Status};
use trestle_proto::blob::v1::{
    self as proto, AcquireLease, BlobConditions, BreakLease, ChangeLease, LeaseState, ReleaseLease,
    RenewLease, lease_blob_request::Action,
};
use trestle_tests::{CallError, Container, World, blob_scenario, seconds};

blob_scenario!(
    a_lease_protects_a_blob_until_it_is_released,
    a_lease_is_renewed_changed_and_broken,
    a_lease_that_cannot_change_so_is_reported_with_its_reason,
    a_leased_container_is_not_deleted,
    the_lease_of_a_container_is_compared_where_it_is_stated,
    rejects_lease_requests_past_their_bounds,
);

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

async fn a_lease_that_cannot_change_so_is_reported_with_its_reason(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let renew = || Action::Renew(RenewLease { lease_id: A.to_owned() });
    let change = || {
        let (lease_id, proposed_lease_id) = (A.to_owned(), B.to_owned());
        Action::Change(ChangeLease { lease_id, proposed_lease_id })
    };
    let end = |period| Action::Break(BreakLease { break_period: Some(seconds(period)) });
    let reason = async |action| lease(&logs, action).await.unwrap_err().reason;

    assert_eq!(reason(change()).await, "LEASE_NOT_PRESENT_WITH_LEASE_OPERATION");
    assert_eq!(reason(end(0)).await, "LEASE_NOT_PRESENT_WITH_LEASE_OPERATION");
    assert_eq!(reason(renew()).await, "LEASE_ID_MISMATCH_WITH_LEASE_OPERATION");
    lease(&logs, acquire(None, A)).await.unwrap();
    lease(&logs, end(60)).await.unwrap();
    assert_eq!(reason(acquire(None, A)).await, "LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED");
    assert_eq!(reason(acquire(None, B)).await, "LEASE_ALREADY_PRESENT");
    assert_eq!(reason(change()).await, "LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED");
    assert_eq!(reason(renew()).await, "LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED");
    lease(&logs, end(0)).await.unwrap();
    assert_eq!(reason(renew()).await, "LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED");
    lease(&logs, acquire(None, B)).await.unwrap();
}

async fn the_lease_of_a_container_is_compared_where_it_is_stated(world: &World) {
    let logs = world.container("logs").await;
    let update = async |lease_id: &str| {
        let lease_id = lease_id.to_owned();
        let conditions = Some(proto::ContainerConditions { lease_id, ..Default::default() });
        let container = logs.name();
        let request = proto::UpdateContainerRequest { container, conditions, ..Default::default() };
        logs.client().update_container(request).await.map(drop).map_err(CallError::from)
    };
    let precondition = |reason| (Code::FailedPrecondition, reason);
    let none = update(A).await.unwrap_err();
    assert_eq!(none.kind(), precondition("LEASE_NOT_PRESENT_WITH_CONTAINER_OPERATION"));
    let proposed_lease_id = A.to_owned();
    let acquire = AcquireLease { proposed_lease_id, ..Default::default() };
    let request = proto::LeaseContainerRequest {
        container: logs.name(),
        action: Some(proto::lease_container_request::Action::Acquire(acquire)),
        conditions: None,
    };
    logs.client().lease_container(request).await.unwrap();

    let other = update(B).await.unwrap_err();
    assert_eq!(other.kind(), precondition("LEASE_ID_MISMATCH_WITH_CONTAINER_OPERATION"));
    update(A).await.unwrap();
    update("").await.unwrap();
}

async fn a_leased_container_is_not_deleted(world: &World) {
    let logs = world.container("logs").await;
    let action = proto::lease_container_request::Action::Acquire(AcquireLease::default());
    let request = proto::LeaseContainerRequest {
        container: logs.name(),
        action: Some(action),
        conditions: None,
    };
    let leased = logs.client().lease_container(request).await.unwrap().into_inner();

    let error = logs.drop_container().await.unwrap_err();
    assert_eq!(error.kind(), (Code::FailedPrecondition, "LEASE_ID_MISSING"));
    logs.write("a", "the lease does not protect blobs").await.unwrap();
    let lease_id = leased.lease_id;
    let conditions = Some(proto::ContainerConditions { lease_id, ..Default::default() });
    let delete = proto::DeleteContainerRequest { container: logs.name(), conditions };
    logs.client().delete_container(delete).await.unwrap();
}

async fn rejects_lease_requests_past_their_bounds(world: &World) {
    let logs = world.container("logs").await;
    logs.write("a", "1").await.unwrap();
    let period = |period| Action::Break(BreakLease { break_period: Some(seconds(period)) });
    let renew = |id: &str| Action::Renew(RenewLease { lease_id: id.to_owned() });
    let wrong = [
        acquire(Some(14), ""),
        acquire(Some(61), ""),
        acquire(Some(-1), ""),
        acquire(None, "no-uuid"),
        period(61),
        period(-1),
        renew(""),
        renew("no-uuid"),
    ];
    for action in wrong {
        let error = lease(&logs, action).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_HEADER_VALUE"));
    }
    for duration in [15, 60] {
        lease(&logs, acquire(Some(duration), A)).await.unwrap();
    }
}
