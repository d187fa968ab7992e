//! Requests on leases that are rejected.

use super::*;

blob_scenario!(
    a_lease_that_cannot_change_so_is_reported_with_its_reason,
    a_leased_container_is_not_deleted,
    the_lease_of_a_container_is_compared_where_it_is_stated,
    rejects_lease_requests_past_their_bounds,
);

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
