//! Every rule against the tables of the specification, and ranges against the naive predicate.

pub(crate) mod ranges;

use std::sync::Arc;

use prost_types::Timestamp;
use trestle_identity::{
    bearer::Role,
    caller::{AccountGrant, Authority, Caller, KeyRange, Letters, PolicyRef, ResourceGrant},
    sas::START_SKEW,
    spec::TABLE,
};
use trestle_model::fault::{Fault, Reason, Violations};
use trestle_model::name::{AccountName, TableName};
use trestle_model::time::Ticks;
use trestle_proto::service::v1::AccessPolicy;

use super::{EntityAccess, EntityAction, TableAction, check};
use crate::entity::EntityKey;

const ACTIONS: [EntityAction; 5] = [
    EntityAction::Read,
    EntityAction::Insert,
    EntityAction::Update,
    EntityAction::Upsert,
    EntityAction::Delete,
];
const TABLE_ACTIONS: [TableAction; 8] = [
    TableAction::ListTables,
    TableAction::CreateTable,
    TableAction::DeleteTable,
    TableAction::AccessPolicies,
    TableAction::ReadProperties,
    TableAction::WriteProperties,
    TableAction::ReadStats,
    TableAction::ReadHottestPartitions,
];
const NOW: i64 = 1_800_000_000;

fn letters(text: &str) -> Letters {
    Letters::parse(text).expect("letters")
}

fn table(name: &str) -> TableName {
    TableName::parse(name.to_owned(), "", &mut Violations::default()).expect("a name")
}

pub(super) fn caller(authority: Authority) -> Arc<Caller> {
    Arc::new(Caller::new(AccountName::development(), authority))
}

fn account(services: &str, resource_types: &str, permissions: &str) -> Arc<Caller> {
    caller(Authority::Account(AccountGrant {
        services: letters(services),
        resource_types: letters(resource_types),
        permissions: letters(permissions),
    }))
}

fn grant(permissions: &str) -> ResourceGrant {
    let permissions = Some(letters(permissions));
    ResourceGrant { permissions, ..ResourceGrant::new(&TABLE, "", "orders") }
}

fn key(partition: &str, row: &str) -> EntityKey {
    EntityKey { partition_key: partition.to_owned(), row_key: row.to_owned() }
}

fn now() -> Ticks {
    Ticks::from_unix(NOW, 0).expect("in range")
}

fn reason(outcome: Result<(), Fault>) -> Option<Reason> {
    outcome.err().map(|fault| fault.reason)
}

/// The outcome of an action of a caller on one entity of the table `Orders`.
fn outcome(caller: Arc<Caller>, policies: &[AccessPolicy], action: EntityAction) -> Option<Reason> {
    let act = || {
        EntityAccess::new(caller)?
            .permissions(&table("Orders"), policies, now())?
            .check_entity(action, &key("p", ""))
    };
    reason(act())
}

#[test]
fn an_account_signature_permits_table_actions_by_its_letters() {
    let allowed: Vec<_> = TABLE_ACTIONS
        .into_iter()
        .flat_map(|action| "sco".chars().map(move |srt| (action, srt)))
        .flat_map(|(action, srt)| "rwdlacup".chars().map(move |sp| (action, srt, sp)))
        .filter(|(action, srt, sp)| {
            let caller = account("t", &srt.to_string(), &sp.to_string());
            check(&caller, *action).is_ok()
        })
        .collect();

    let expected = [
        (TableAction::ListTables, 's', 'l'),
        (TableAction::ListTables, 'c', 'l'),
        (TableAction::CreateTable, 'c', 'w'),
        (TableAction::CreateTable, 'c', 'c'),
        (TableAction::DeleteTable, 'c', 'd'),
        (TableAction::ReadProperties, 's', 'r'),
        (TableAction::WriteProperties, 's', 'w'),
        (TableAction::ReadStats, 's', 'r'),
        (TableAction::ReadHottestPartitions, 'o', 'r'),
    ];
    assert_eq!(allowed, expected);
}

#[test]
fn only_owners_access_policies_and_table_signatures_only_entities() {
    let widest = account("bqtf", "sco", "rwdlacup");
    let over_table = caller(Authority::Resource(grant("raud")));
    let owner = caller(Authority::Owner);

    for action in TABLE_ACTIONS {
        assert_eq!(reason(check(&owner, action)), None, "{action:?}");
        let never = Some(Reason::AuthorizationFailure);
        assert_eq!(reason(check(&over_table, action)), never, "{action:?}");
        let of_account = if action == TableAction::AccessPolicies { never } else { None };
        assert_eq!(reason(check(&widest, action)), of_account, "{action:?}");
    }
}

#[test]
fn each_entity_action_requires_its_permissions() {
    let required = |action| match action {
        EntityAction::Read => "r",
        EntityAction::Insert => "a",
        EntityAction::Update => "u",
        EntityAction::Upsert => "au",
        EntityAction::Delete => "d",
    };
    let sets = (0..16_u32).map(|set| {
        let chosen = "raud".chars().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
        chosen.map(|(_, letter)| letter).collect::<String>()
    });
    for granted in sets {
        for action in ACTIONS {
            let covers = required(action).chars().all(|letter| granted.contains(letter));
            let expected = (!covers).then_some(Reason::AuthorizationPermissionMismatch);
            let over_table = caller(Authority::Resource(grant(&granted)));
            assert_eq!(outcome(over_table, &[], action), expected, "{granted} {action:?}");
            let over_account = account("t", "o", &granted);
            assert_eq!(outcome(over_account, &[], action), expected, "{granted} {action:?}");
        }
    }
    for action in ACTIONS {
        assert_eq!(outcome(caller(Authority::Owner), &[], action), None);
    }
}

#[test]
fn reports_the_first_failed_check() {
    use Reason::{
        AuthorizationFailure as Failure, AuthorizationPermissionMismatch as Permission,
        AuthorizationResourceTypeMismatch as Type, AuthorizationServiceMismatch as Service,
    };
    for (services, types, permissions, expected) in [
        ("bqf", "sc", "w", Some(Service)),
        ("t", "sc", "w", Some(Type)),
        ("t", "o", "w", Some(Permission)),
        ("t", "o", "r", None),
    ] {
        let caller = account(services, types, permissions);
        assert_eq!(outcome(caller, &[], EntityAction::Read), expected);
    }
    for (services, types, permissions, expected) in [
        ("bqf", "so", "r", Some(Service)),
        ("t", "so", "r", Some(Type)),
        ("t", "c", "r", Some(Permission)),
        ("t", "c", "d", None),
    ] {
        let caller = account(services, types, permissions);
        assert_eq!(reason(check(&caller, TableAction::DeleteTable)), expected);
    }
    let elsewhere = KeyRange { start_partition_key: Some("q".into()), ..KeyRange::default() };
    for (permissions, range, expected) in [
        ("d", elsewhere.clone(), Some(Permission)),
        ("r", elsewhere, Some(Failure)),
        ("r", KeyRange::default(), None),
    ] {
        let grant = ResourceGrant { bounds: range.to_fields(), ..grant(permissions) };
        assert_eq!(outcome(caller(Authority::Resource(grant)), &[], EntityAction::Read), expected);
    }
}

#[test]
fn a_table_signature_covers_only_its_table_in_any_case() {
    let access = EntityAccess::new(caller(Authority::Resource(grant("raud")))).expect("entities");

    for (name, expected) in [
        ("orders", None),
        ("ORDERS", None),
        ("orders2", Some(Reason::AuthorizationFailure)),
        ("order", Some(Reason::AuthorizationFailure)),
    ] {
        let bounds = access.permissions(&table(name), &[], now());
        assert_eq!(reason(bounds.map(drop)), expected, "{name}");
    }
}

fn at(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

/// A policy `p` that states every field, and is valid now.
fn policy() -> AccessPolicy {
    AccessPolicy {
        id: "p".to_owned(),
        start_time: at(NOW - 1),
        expiry_time: at(NOW + 1),
        permissions: Some("r".to_owned()),
    }
}

/// A signature that takes everything from the policy `id`.
fn by_policy(id: &str) -> ResourceGrant {
    let policy = PolicyRef { id: id.to_owned(), has_start: false, has_expiry: false, denied: None };
    ResourceGrant { permissions: None, policy: Some(policy), ..grant("") }
}

#[test]
fn requires_expiry_and_permissions_exactly_once_and_start_at_most_once() {
    for bits in 0..64_u32 {
        let bit = |index: u32| bits & (1 << index) != 0;
        let stored = AccessPolicy {
            start_time: policy().start_time.filter(|_| bit(0)),
            expiry_time: policy().expiry_time.filter(|_| bit(1)),
            permissions: policy().permissions.filter(|_| bit(2)),
            ..policy()
        };
        let grant = ResourceGrant {
            permissions: bit(5).then(|| letters("r")),
            policy: Some(PolicyRef {
                id: "p".to_owned(),
                has_start: bit(3),
                has_expiry: bit(4),
                denied: None,
            }),
            ..grant("")
        };
        let once = !(bit(0) && bit(3)) && bit(1) != bit(4) && bit(2) != bit(5);

        let outcome = outcome(caller(Authority::Resource(grant)), &[stored], EntityAction::Read);

        let expected = (!once).then_some(Reason::AuthenticationFailed);
        assert_eq!(outcome, expected, "{bits:06b}");
    }
}

#[test]
fn empty_permissions_count_as_absent() {
    let empty = AccessPolicy { permissions: Some(String::new()), ..policy() };
    let stated = ResourceGrant { permissions: Some(letters("r")), ..by_policy("p") };
    let stated_empty = ResourceGrant { permissions: Some(letters("")), ..by_policy("p") };
    let nothing = ResourceGrant { policy: None, ..by_policy("p") };

    let failed = Some(Reason::AuthenticationFailed);
    for (grant, stored, expected) in [
        (by_policy("p"), empty.clone(), failed),
        (stated, empty, None),
        (stated_empty, policy(), None),
        (nothing, policy(), Some(Reason::AuthorizationPermissionMismatch)),
    ] {
        let stored = [stored];
        assert_eq!(
            outcome(caller(Authority::Resource(grant)), &stored, EntityAction::Read),
            expected
        );
    }
}

#[test]
fn a_policy_is_found_by_id_and_grants_its_permissions() {
    let other = AccessPolicy { id: "P".to_owned(), permissions: Some("d".to_owned()), ..policy() };
    let policies = [other, policy()];
    let act = |id, action| outcome(caller(Authority::Resource(by_policy(id))), &policies, action);

    assert_eq!(act("p", EntityAction::Read), None);
    assert_eq!(act("p", EntityAction::Delete), Some(Reason::AuthorizationPermissionMismatch));
    assert_eq!(act("P", EntityAction::Delete), None);
    for unknown in ["q", "", "p "] {
        assert_eq!(
            act(unknown, EntityAction::Read),
            Some(Reason::AuthenticationFailed),
            "{unknown}"
        );
    }
}

#[test]
fn a_policy_is_valid_from_its_start_less_skew_until_its_expiry() {
    let failed = Some(Reason::AuthenticationFailed);
    let skew = i64::try_from(START_SKEW.as_secs()).expect("minutes");
    for (start, expiry, expected) in [
        (NOW, NOW + 1, None),
        (NOW + skew, NOW + skew + 1, None),
        (NOW + skew + 1, NOW + skew + 2, failed),
        (NOW - 2, NOW, failed),
        (NOW - 2, NOW - 1, failed),
        (NOW + skew + 1, NOW - 1, failed),
    ] {
        let stored = [AccessPolicy { start_time: at(start), expiry_time: at(expiry), ..policy() }];
        let caller = caller(Authority::Resource(by_policy("p")));
        assert_eq!(outcome(caller, &stored, EntityAction::Read), expected, "{start} {expiry}");
    }
}

#[test]
fn a_role_permits_reads_or_writes_or_everything() {
    let permits = |reason: Option<Reason>| match reason {
        None => true,
        Some(reason) => {
            assert_eq!(reason, Reason::AuthorizationPermissionMismatch);
            false
        }
    };
    for action in TABLE_ACTIONS {
        let is_of_owner =
            matches!(action, TableAction::AccessPolicies | TableAction::WriteProperties);
        let is_read = matches!(
            action,
            TableAction::ListTables
                | TableAction::ReadProperties
                | TableAction::ReadStats
                | TableAction::ReadHottestPartitions
        );
        let permitted =
            Role::ALL.map(|role| permits(reason(check(&caller(Authority::Role(role)), action))));
        assert_eq!(permitted, [false, is_read, !is_of_owner, true], "{action:?}");
    }
    for action in ACTIONS {
        let permitted =
            Role::ALL.map(|role| permits(outcome(caller(Authority::Role(role)), &[], action)));
        assert_eq!(permitted, [false, action == EntityAction::Read, true, true], "{action:?}");
    }
}
