//! Every rule against the tables of the specification, and ranges against the naive predicate.

pub(crate) mod ranges;

use std::sync::Arc;

use prost_types::Timestamp;
use trestle_identity::{
    caller::{AccountGrant, Authority, Caller, KeyRange, Letters, PolicyRef, TableGrant},
    sas::START_SKEW,
};
use trestle_proto::table::v1::AccessPolicy;
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason, Violations},
    name::{AccountName, TableName},
};

use super::{Access, Action, Need, check};
use crate::entity::EntityKey;

const ACTIONS: [Action; 5] =
    [Action::Read, Action::Insert, Action::Update, Action::Upsert, Action::Delete];
const NEEDS: [Need; 7] = [
    Need::ListTables,
    Need::CreateTable,
    Need::DeleteTable,
    Need::AccessPolicies,
    Need::ReadProperties,
    Need::WriteProperties,
    Need::ReadStats,
];
const NOW: i64 = 1_800_000_000;

fn letters(text: &str) -> Letters {
    Letters::parse(text).expect("letters")
}

fn table(name: &str) -> TableName {
    TableName::parse(name.to_owned(), "", &mut Violations::default()).expect("a name")
}

pub(super) fn caller(authority: Authority) -> Arc<Caller> {
    Arc::new(Caller { account: AccountName::development(), authority })
}

fn account(services: &str, resource_types: &str, permissions: &str) -> Arc<Caller> {
    caller(Authority::Account(AccountGrant {
        services: letters(services),
        resource_types: letters(resource_types),
        permissions: letters(permissions),
    }))
}

fn grant(permissions: &str) -> TableGrant {
    TableGrant {
        table: "orders".into(),
        permissions: Some(letters(permissions)),
        policy: None,
        range: KeyRange::default(),
    }
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

/// What becomes of an action of a caller on one entity of the table `Orders`.
fn outcome(caller: Arc<Caller>, policies: &[AccessPolicy], action: Action) -> Option<Reason> {
    let act = || {
        Access::new(caller)?.bounds(&table("Orders"), policies, now())?.allow(action, &key("p", ""))
    };
    reason(act())
}

#[test]
fn an_account_signature_allows_what_its_letters_say_beside_entities() {
    let allowed: Vec<_> = NEEDS
        .into_iter()
        .flat_map(|need| "sco".chars().map(move |srt| (need, srt)))
        .flat_map(|(need, srt)| "rwdlacup".chars().map(move |sp| (need, srt, sp)))
        .filter(|(need, srt, sp)| {
            let caller = account("t", &srt.to_string(), &sp.to_string());
            check(&caller, *need).is_ok()
        })
        .collect();

    let expected = [
        (Need::ListTables, 's', 'l'),
        (Need::ListTables, 'c', 'l'),
        (Need::CreateTable, 'c', 'w'),
        (Need::CreateTable, 'c', 'c'),
        (Need::DeleteTable, 'c', 'd'),
        (Need::ReadProperties, 's', 'r'),
        (Need::WriteProperties, 's', 'w'),
        (Need::ReadStats, 's', 'r'),
    ];
    assert_eq!(allowed, expected);
}

#[test]
fn only_an_owner_may_touch_access_policies_and_a_table_signature_nothing_beside_entities() {
    let widest = account("bqtf", "sco", "rwdlacup");
    let over_table = caller(Authority::Table(grant("raud")));
    let owner = caller(Authority::Owner);

    for need in NEEDS {
        assert_eq!(reason(check(&owner, need)), None, "{need:?}");
        let never = Some(Reason::AuthorizationFailure);
        assert_eq!(reason(check(&over_table, need)), never, "{need:?}");
        let of_account = if need == Need::AccessPolicies { never } else { None };
        assert_eq!(reason(check(&widest, need)), of_account, "{need:?}");
    }
}

#[test]
fn every_action_needs_its_own_permissions_and_an_upsert_two() {
    let needed = |action| match action {
        Action::Read => "r",
        Action::Insert => "a",
        Action::Update => "u",
        Action::Upsert => "au",
        Action::Delete => "d",
    };
    let sets = (0..16_u32).map(|set| {
        let chosen = "raud".chars().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
        chosen.map(|(_, letter)| letter).collect::<String>()
    });
    for granted in sets {
        for action in ACTIONS {
            let covers = needed(action).chars().all(|letter| granted.contains(letter));
            let expected = (!covers).then_some(Reason::AuthorizationPermissionMismatch);
            let over_table = caller(Authority::Table(grant(&granted)));
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
fn what_is_missing_first_is_what_is_reported() {
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
        assert_eq!(outcome(caller, &[], Action::Read), expected);
    }
    for (services, types, permissions, expected) in [
        ("bqf", "so", "r", Some(Service)),
        ("t", "so", "r", Some(Type)),
        ("t", "c", "r", Some(Permission)),
        ("t", "c", "d", None),
    ] {
        let caller = account(services, types, permissions);
        assert_eq!(reason(check(&caller, Need::DeleteTable)), expected);
    }
    let elsewhere = KeyRange { start_partition_key: Some("q".into()), ..KeyRange::default() };
    for (permissions, range, expected) in [
        ("d", elsewhere.clone(), Some(Permission)),
        ("r", elsewhere, Some(Failure)),
        ("r", KeyRange::default(), None),
    ] {
        let grant = TableGrant { range, ..grant(permissions) };
        assert_eq!(outcome(caller(Authority::Table(grant)), &[], Action::Read), expected);
    }
}

#[test]
fn a_table_signature_is_for_its_table_in_any_case_and_for_no_other() {
    let access = Access::new(caller(Authority::Table(grant("raud")))).expect("entities");

    for (name, expected) in [
        ("orders", None),
        ("ORDERS", None),
        ("orders2", Some(Reason::AuthorizationFailure)),
        ("order", Some(Reason::AuthorizationFailure)),
    ] {
        let bounds = access.bounds(&table(name), &[], now());
        assert_eq!(reason(bounds.map(drop)), expected, "{name}");
    }
}

fn at(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

/// A policy `p` that states everything, and holds now.
fn policy() -> AccessPolicy {
    AccessPolicy {
        id: "p".to_owned(),
        start_time: at(NOW - 1),
        expiry_time: at(NOW + 1),
        permissions: Some("r".to_owned()),
    }
}

/// A signature that leaves everything to the policy `id`.
fn by_policy(id: &str) -> TableGrant {
    let policy = PolicyRef { id: id.to_owned(), has_start: false, has_expiry: false, denied: None };
    TableGrant { permissions: None, policy: Some(policy), ..grant("") }
}

#[test]
fn expiry_and_permissions_must_each_be_stated_once_and_a_start_at_most_once() {
    for bits in 0..64_u32 {
        let bit = |place: u32| bits & (1 << place) != 0;
        let stored = AccessPolicy {
            start_time: policy().start_time.filter(|_| bit(0)),
            expiry_time: policy().expiry_time.filter(|_| bit(1)),
            permissions: policy().permissions.filter(|_| bit(2)),
            ..policy()
        };
        let grant = TableGrant {
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

        let outcome = outcome(caller(Authority::Table(grant)), &[stored], Action::Read);

        let expected = (!once).then_some(Reason::AuthenticationFailed);
        assert_eq!(outcome, expected, "{bits:06b}");
    }
}

#[test]
fn empty_permissions_are_not_stated() {
    let empty = AccessPolicy { permissions: Some(String::new()), ..policy() };
    let stated = TableGrant { permissions: Some(letters("r")), ..by_policy("p") };
    let stated_empty = TableGrant { permissions: Some(letters("")), ..by_policy("p") };
    let nothing = TableGrant { policy: None, ..by_policy("p") };

    let failed = Some(Reason::AuthenticationFailed);
    for (grant, stored, expected) in [
        (by_policy("p"), empty.clone(), failed),
        (stated, empty, None),
        (stated_empty, policy(), None),
        (nothing, policy(), Some(Reason::AuthorizationPermissionMismatch)),
    ] {
        let stored = [stored];
        assert_eq!(outcome(caller(Authority::Table(grant)), &stored, Action::Read), expected);
    }
}

#[test]
fn a_policy_is_found_by_its_id_and_states_the_permissions() {
    let other = AccessPolicy { id: "P".to_owned(), permissions: Some("d".to_owned()), ..policy() };
    let policies = [other, policy()];
    let act = |id, action| outcome(caller(Authority::Table(by_policy(id))), &policies, action);

    assert_eq!(act("p", Action::Read), None);
    assert_eq!(act("p", Action::Delete), Some(Reason::AuthorizationPermissionMismatch));
    assert_eq!(act("P", Action::Delete), None);
    for unknown in ["q", "", "p "] {
        assert_eq!(act(unknown, Action::Read), Some(Reason::AuthenticationFailed), "{unknown}");
    }
}

#[test]
fn a_policy_holds_from_a_little_before_its_start_until_before_its_expiry() {
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
        let caller = caller(Authority::Table(by_policy("p")));
        assert_eq!(outcome(caller, &stored, Action::Read), expected, "{start} {expiry}");
    }
}
