//! The order of the checks of a SAS with a stored access policy: the policy before protocol and
//! address, and these before the operation.

use prost_types::Timestamp;
use tonic::Code;
use trestle_identity::{
    caller::KeyRange,
    sas::{AddressRange, Protocol, Scope, Terms},
};
use trestle_proto::service::v1::AccessPolicy;
use trestle_tests::{Queue, Table, World, entity, queue_scenario, terms_by_policy, text, token};

queue_scenario!(
    table_policy_is_checked_before_protocol_and_address_and_then_permissions,
    queue_policy_is_checked_before_protocol_and_address_and_then_permissions,
    protocol_and_address_are_checked_before_the_service,
);

const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");
const WRONG_ADDRESS: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_SOURCE_IP_MISMATCH");
const WRONG_PROTOCOL: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PROTOCOL_MISMATCH");
const WRONG_SERVICE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_SERVICE_MISMATCH");
const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const FAILURE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");

type Kind = (Code, &'static str);

/// The ways to reject the use of a SAS with a policy, and the next check if the use is valid.
/// Calls within a process count as encrypted.
fn uses(world: &World) -> [(Terms, Option<Kind>); 4] {
    let is_plain = world.address().is_some();
    let wrong_protocol = is_plain.then_some(WRONG_PROTOCOL);
    let bare = terms_by_policy(Scope::of_queue(""), "p");
    let addresses = Some(AddressRange::parse("10.9.9.9".to_owned()).unwrap());
    let elsewhere = Terms { addresses, ..bare.clone() };
    let encrypted = Terms { protocol: Some(Protocol::Https), ..bare.clone() };
    let both = Terms { protocol: Some(Protocol::Https), ..elsewhere.clone() };
    [
        (bare, None),
        (elsewhere, Some(WRONG_ADDRESS)),
        (encrypted, wrong_protocol),
        (both, wrong_protocol.or(Some(WRONG_ADDRESS))),
    ]
}

fn over_table() -> Scope {
    Scope::of_table("orders", &KeyRange::default())
}

fn over_queue() -> Scope {
    Scope::of_queue("jobs")
}

fn expiry() -> Option<Timestamp> {
    Some(Timestamp { seconds: 32_000_000_000, nanos: 0 })
}

/// The results of calls of every kind on tables: some that the policy allows, some that it does
/// not, some that no such SAS allows, and some that are invalid.
async fn on_tables(held: &World) -> Vec<(&'static str, Option<String>)> {
    let table = |name: &str| held.existing_table(name);
    let orders: Table = table("orders");
    let kind = |outcome: Result<(), trestle_tests::CallError>| {
        outcome.err().map(|error| error.kind().1.to_owned())
    };
    vec![
        ("allowed", kind(orders.get("p", "r").await.map(drop))),
        ("listed", kind(orders.query("").await.map(drop))),
        ("malformed", kind(orders.query("no filter").await.map(drop))),
        ("unpermitted", kind(orders.insert(entity("p", "s", [])).await.map(drop))),
        ("elsewhere", kind(table("others").get("p", "r").await.map(drop))),
        ("never", kind(held.create("more").await.map(drop))),
    ]
}

/// The result of a valid call of a holder.
const TABLES: [(&str, Option<Kind>); 6] = [
    ("allowed", None),
    ("listed", None),
    ("malformed", Some((Code::InvalidArgument, "INVALID_INPUT"))),
    ("unpermitted", Some(NO_PERMISSION)),
    ("elsewhere", Some(FAILURE)),
    ("never", Some(FAILURE)),
];

/// Each call is rejected with this error; none: with the error of the operation.
fn assert_all(
    results: Vec<(&'static str, Option<String>)>,
    rejected: Option<Kind>,
    own: &[(&'static str, Option<Kind>)],
) {
    assert_eq!(results.len(), own.len());
    for ((call, results), (own_call, own)) in results.into_iter().zip(own) {
        assert_eq!(call, *own_call);
        let expected = rejected.or(*own).map(|(_, reason)| reason.to_owned());
        assert_eq!(results, expected, "{call}");
    }
}

async fn table_policy_is_checked_before_protocol_and_address_and_then_permissions(world: &World) {
    let owner = world.table("orders").await;
    world.table("others").await;
    owner.insert(entity("p", "r", [])).await.unwrap();
    let policy = AccessPolicy {
        id: "p".to_owned(),
        expiry_time: expiry(),
        permissions: Some("r".to_owned()),
        ..Default::default()
    };
    let expired = AccessPolicy {
        expiry_time: Some(Timestamp { seconds: 1_000_000_000, nanos: 0 }),
        ..policy.clone()
    };

    for (stored, holds) in [(vec![], false), (vec![expired], false), (vec![policy], true)] {
        owner.set_policies(stored).await.unwrap();
        for (terms, rejected) in uses(world) {
            let held = world.signed(&token(Terms { scope: over_table(), ..terms }));
            let rejected = if holds { rejected } else { Some(NOT_AUTHENTIC) };
            assert_all(on_tables(&held).await, rejected, &TABLES);
        }
    }
    assert_eq!(owner.rows("").await.unwrap(), ["r"], "nothing was written");
}

async fn on_queues(held: &World) -> Vec<(&'static str, Option<String>)> {
    let jobs: Queue = held.existing_queue("jobs");
    let kind = |outcome: Result<(), trestle_tests::CallError>| {
        outcome.err().map(|error| error.kind().1.to_owned())
    };
    vec![
        ("allowed", kind(jobs.peek(1).await.map(drop))),
        ("malformed", kind(jobs.peek(1000).await.map(drop))),
        ("unpermitted", kind(jobs.send(text("x")).await.map(drop))),
        ("elsewhere", kind(held.existing_queue("others").peek(1).await.map(drop))),
        ("never", kind(jobs.clear().await.map(drop))),
    ]
}

const QUEUES: [(&str, Option<Kind>); 5] = [
    ("allowed", None),
    ("malformed", Some((Code::InvalidArgument, "OUT_OF_RANGE_QUERY_PARAMETER_VALUE"))),
    ("unpermitted", Some(NO_PERMISSION)),
    ("elsewhere", Some(FAILURE)),
    ("never", Some(FAILURE)),
];

async fn queue_policy_is_checked_before_protocol_and_address_and_then_permissions(world: &World) {
    let owner = world.queue("jobs").await;
    world.queue("others").await;
    let policy = AccessPolicy {
        id: "p".to_owned(),
        expiry_time: expiry(),
        permissions: Some("r".to_owned()),
        ..Default::default()
    };

    for (stored, holds) in [(vec![], false), (vec![policy], true)] {
        owner.set_policies(stored).await.unwrap();
        for (terms, rejected) in uses(world) {
            let token = token(Terms { scope: over_queue(), ..terms });
            let held = world.signed_for_queue(&token, "jobs");
            let rejected = if holds { rejected } else { Some(NOT_AUTHENTIC) };
            assert_all(on_queues(&held).await, rejected, &QUEUES);
        }
    }
    assert!(owner.peek(1).await.unwrap().is_empty(), "nothing was sent");
}

async fn protocol_and_address_are_checked_before_the_service(world: &World) {
    world.table("orders").await;
    world.queue("jobs").await;
    for (terms, rejected) in uses(world) {
        let rejected = rejected.unwrap_or(WRONG_SERVICE);
        let of_queue = token(Terms { scope: over_queue(), ..terms.clone() });
        let held = world.signed_for_queue(&of_queue, "jobs").existing_table("orders");
        assert_eq!(held.get("p", "r").await.unwrap_err().kind(), rejected);
        let of_table = token(Terms { scope: over_table(), ..terms });
        let held = world.signed(&of_table).existing_queue("jobs");
        assert_eq!(held.peek(1).await.unwrap_err().kind(), rejected);
    }
}
