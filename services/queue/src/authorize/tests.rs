//! Tests of authorization.

use prost_types::Timestamp;
use trestle_identity::{
    bearer::Role,
    caller::{AccountGrant, Letters, PolicyRef, ResourceGrant},
    spec::TABLE,
};
use trestle_model::fault::{Reason, Violations};

use super::*;

const NEEDS: [Need; 15] = [
    Need::ListQueues,
    Need::CreateQueue,
    Need::ReadQueue,
    Need::WriteQueue,
    Need::DeleteQueue,
    Need::AccessPolicies,
    Need::Add,
    Need::Process,
    Need::Peek,
    Need::Update,
    Need::Clear,
    Need::Redrive,
    Need::ReadProperties,
    Need::WriteProperties,
    Need::ReadStats,
];
const NOW: i64 = 1_800_000_000;

fn outcome(services: &str, resource_types: &str, permissions: &str, need: Need) -> Option<Reason> {
    let letters = |text| Letters::parse(text).expect("letters");
    let grant = AccountGrant {
        services: letters(services),
        resource_types: letters(resource_types),
        permissions: letters(permissions),
    };
    AccountNeed::check(need.of_account_grant(), &grant, &QUEUE).err().map(|fault| fault.reason)
}

#[test]
fn each_operation_requires_its_resource_type_and_its_permission() {
    let table = [
        (Need::ListQueues, "s", "l"),
        (Need::CreateQueue, "c", "c"),
        (Need::CreateQueue, "c", "w"),
        (Need::ReadQueue, "c", "r"),
        (Need::WriteQueue, "c", "w"),
        (Need::DeleteQueue, "c", "d"),
        (Need::Add, "o", "a"),
        (Need::Process, "o", "p"),
        (Need::Peek, "o", "r"),
        (Need::Update, "o", "u"),
        (Need::Clear, "o", "d"),
        (Need::Redrive, "o", "ap"),
        (Need::ReadProperties, "s", "r"),
        (Need::WriteProperties, "s", "w"),
        (Need::ReadStats, "s", "r"),
    ];
    for (need, resource_type, permission) in table {
        assert_eq!(outcome("q", resource_type, permission, need), None, "{need:?}");
        let other_types: String = "sco".replace(resource_type, "");
        let mismatch = Some(Reason::AuthorizationResourceTypeMismatch);
        assert_eq!(outcome("q", &other_types, permission, need), mismatch, "{need:?}");
        let others: String = "rwdlacup".chars().filter(|l| !permission.contains(*l)).collect();
        let mismatch = match need {
            Need::CreateQueue => None,
            _ => Some(Reason::AuthorizationPermissionMismatch),
        };
        assert_eq!(outcome("q", resource_type, &others, need), mismatch, "{need:?}");
        let mismatch = Some(Reason::AuthorizationServiceMismatch);
        assert_eq!(outcome("bt", resource_type, permission, need), mismatch, "{need:?}");
    }
    assert_eq!(
        outcome("q", "sco", "rwdlacup", Need::AccessPolicies),
        Some(Reason::AuthorizationFailure)
    );
}

#[test]
fn a_redrive_needs_both_permissions() {
    for permission in ["a", "p"] {
        let mismatch = Some(Reason::AuthorizationPermissionMismatch);
        assert_eq!(outcome("q", "o", permission, Need::Redrive), mismatch);
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::parse(name.to_owned(), "", &mut Violations::default()).expect("a name")
}

fn caller(authority: Authority) -> Arc<Caller> {
    Arc::new(Caller::new(AccountName::development(), authority))
}

fn over_queue(permissions: Option<&str>, policy: Option<PolicyRef>) -> Arc<Caller> {
    let permissions = permissions.map(|text| Letters::parse(text).expect("letters"));
    let grant = ResourceGrant::new(&QUEUE, "", "jobs");
    caller(Authority::Resource(ResourceGrant { permissions, policy, ..grant }))
}

/// The result of the authorization of a caller on the queue `name`, with these policies.
fn on(caller: &Arc<Caller>, need: Need, name: &str, policies: &[AccessPolicy]) -> Option<Reason> {
    let now = Ticks::from_unix(NOW, 0).expect("in range");
    let check = || QueueAccess::new(Arc::clone(caller), need)?.check(&queue(name), policies, now);
    check().err().map(|fault| fault.reason)
}

#[test]
fn a_queue_signature_grants_its_permissions_on_that_queue_only() {
    let allowed: Vec<_> = NEEDS
        .into_iter()
        .flat_map(|need| "raup".chars().map(move |letter| (need, letter)))
        .filter(|(need, letter)| {
            let caller = over_queue(Some(&letter.to_string()), None);
            assert_ne!(on(&caller, *need, "other", &[]), None, "{need:?}");
            on(&caller, *need, "jobs", &[]).is_none()
        })
        .collect();

    let expected = [
        (Need::ReadQueue, 'r'),
        (Need::Add, 'a'),
        (Need::Process, 'p'),
        (Need::Peek, 'r'),
        (Need::Update, 'u'),
    ];
    assert_eq!(allowed, expected);
    let all = over_queue(Some("raup"), None);
    let failure = Some(Reason::AuthorizationFailure);
    assert_eq!(on(&all, Need::Peek, "other", &[]), failure);
    for need in NEEDS.into_iter().filter(|need| need.of_queue_grant().is_none()) {
        assert_eq!(on(&all, need, "jobs", &[]), failure, "{need:?}");
    }
    let none = over_queue(None, None);
    let mismatch = Some(Reason::AuthorizationPermissionMismatch);
    assert_eq!(on(&none, Need::Peek, "jobs", &[]), mismatch);
}

#[test]
fn a_stored_policy_supplies_the_terms_that_its_signature_omits() {
    let reference =
        PolicyRef { id: "p".to_owned(), has_start: false, has_expiry: false, denied: None };
    let caller = over_queue(None, Some(reference));
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    let policy = AccessPolicy {
        id: "p".to_owned(),
        start_time: None,
        expiry_time: at(NOW + 1),
        permissions: Some("ap".to_owned()),
    };
    let outcome =
        |need, policy: &AccessPolicy| on(&caller, need, "jobs", std::slice::from_ref(policy));

    assert_eq!(outcome(Need::Add, &policy), None);
    assert_eq!(outcome(Need::Process, &policy), None);
    let mismatch = Some(Reason::AuthorizationPermissionMismatch);
    assert_eq!(outcome(Need::Peek, &policy), mismatch);
    let failed = Some(Reason::AuthenticationFailed);
    assert_eq!(on(&caller, Need::Add, "jobs", &[]), failed, "revoked");
    for broken in [
        AccessPolicy { id: "P".to_owned(), ..policy.clone() },
        AccessPolicy { expiry_time: at(NOW), ..policy.clone() },
        AccessPolicy { expiry_time: None, ..policy.clone() },
        AccessPolicy { start_time: at(NOW + 301), ..policy.clone() },
        AccessPolicy { permissions: None, ..policy.clone() },
    ] {
        assert_eq!(outcome(Need::Add, &broken), failed, "{broken:?}");
    }
    let twice = PolicyRef { id: "p".to_owned(), has_start: false, has_expiry: true, denied: None };
    let twice = over_queue(None, Some(twice));
    assert_eq!(on(&twice, Need::Add, "jobs", &[policy]), failed);
}

#[test]
fn an_owner_has_every_permission_and_a_table_signature_has_none() {
    let permissions = Letters::parse("raud");
    let table = ResourceGrant { permissions, ..ResourceGrant::new(&TABLE, "", "jobs") };
    let table = caller(Authority::Resource(table));
    for need in NEEDS {
        assert_eq!(on(&caller(Authority::Owner), need, "jobs", &[]), None, "{need:?}");
        let mismatch = Some(Reason::AuthorizationServiceMismatch);
        assert_eq!(on(&table, need, "jobs", &[]), mismatch, "{need:?}");
    }
}

#[test]
fn a_role_permits_reads_or_writes_or_everything() {
    for need in NEEDS {
        let permits = |role| match on(&caller(Authority::Role(role)), need, "jobs", &[]) {
            None => true,
            Some(reason) => {
                assert_eq!(reason, Reason::AuthorizationPermissionMismatch);
                false
            }
        };
        let is_of_owner = matches!(need, Need::AccessPolicies | Need::WriteProperties);
        let is_read = matches!(
            need,
            Need::ListQueues
                | Need::ReadQueue
                | Need::Peek
                | Need::ReadProperties
                | Need::ReadStats
        );
        assert_eq!(Role::ALL.map(permits), [false, is_read, !is_of_owner, true], "{need:?}");
    }
}
