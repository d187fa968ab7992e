use trestle_identity::{
    caller::{AccountGrant, PolicyRef},
    field_values::FieldValues,
};
use trestle_model::fault::Reason;

use super::*;

const ALL: [BlobNeed; 18] = [
    BlobNeed::ListContainers,
    BlobNeed::CreateContainer,
    BlobNeed::ReadContainer,
    BlobNeed::WriteContainer,
    BlobNeed::DeleteContainer,
    BlobNeed::AccessPolicies,
    BlobNeed::ListBlobs,
    BlobNeed::Read,
    BlobNeed::Write,
    BlobNeed::Delete,
    BlobNeed::ReadService,
    BlobNeed::WriteService,
    BlobNeed::ListTags,
    BlobNeed::Find,
    BlobNeed::FindInAccount,
    BlobNeed::FindInContainer,
    BlobNeed::BreakLease,
    BlobNeed::BreakContainerLease,
];

fn letters(text: &str) -> Letters {
    Letters::parse(text).expect("letters")
}

fn access(authority: Authority, need: BlobNeed) -> Result<BlobAccess, Reason> {
    access_by_policy(authority, None, need)
}

fn access_by_policy(
    authority: Authority,
    by_policy: Option<Letters>,
    need: BlobNeed,
) -> Result<BlobAccess, Reason> {
    let caller = Caller::new(AccountName::development(), authority);
    BlobAccess::new(Arc::new(caller), by_policy, need).map_err(|fault| fault.reason)
}

fn account(services: &str, resource_types: &str, permissions: &str) -> Authority {
    Authority::Account(AccountGrant {
        services: letters(services),
        resource_types: letters(resource_types),
        permissions: letters(permissions),
    })
}

fn resource(resource_type: &'static str, name: &str, permissions: &str) -> Authority {
    let grant = ResourceGrant::new(&BLOB, resource_type, name);
    Authority::Resource(ResourceGrant { permissions: Some(letters(permissions)), ..grant })
}

#[test]
fn an_owner_may_do_everything() {
    for need in ALL {
        let access = access(Authority::Owner, need).expect("permitted");
        assert_eq!(access.check("any/blob", &[], Ticks::MIN), Ok(()));
    }
}

#[test]
fn an_account_signature_needs_service_resource_type_and_permission() {
    for need in ALL {
        let found = access(account("b", "sco", "rwdlactf"), need);
        let expected = need != BlobNeed::AccessPolicies;
        assert_eq!(found.is_ok(), expected, "{need:?}");
    }
    let read = |services, types, permissions| {
        access(account(services, types, permissions), BlobNeed::Read).map(drop)
    };
    assert_eq!(read("b", "o", "r"), Ok(()));
    assert_eq!(read("qt", "o", "r"), Err(Reason::AuthorizationServiceMismatch));
    assert_eq!(read("b", "sc", "r"), Err(Reason::AuthorizationResourceTypeMismatch));
    assert_eq!(read("b", "o", "wdl"), Err(Reason::AuthorizationPermissionMismatch));
}

#[test]
fn finding_blobs_and_breaking_leases_need_less_than_it_seems_or_more() {
    use BlobNeed as N;
    for (need, types, permissions, is_permitted) in [
        (N::FindInAccount, "s", "f", true),
        (N::FindInAccount, "co", "f", false),
        (N::FindInContainer, "c", "f", true),
        (N::FindInContainer, "so", "f", false),
        (N::ListTags, "c", "t", true),
        (N::ListTags, "so", "t", false),
        (N::BreakLease, "o", "d", true),
        (N::BreakLease, "o", "w", true),
        (N::BreakLease, "o", "rac", false),
        (N::BreakContainerLease, "c", "d", true),
        (N::BreakContainerLease, "o", "dw", false),
    ] {
        let found = access(account("b", types, permissions), need);
        assert_eq!(found.is_ok(), is_permitted, "{need:?} {types} {permissions}");
    }
}

#[test]
fn a_container_signature_covers_its_blobs_and_nothing_else() {
    for (need, is_permitted) in ALL.map(|need| (need, need.of_resource_grant().is_some())) {
        assert_eq!(access(resource("c", "logs", "rwdltf"), need).is_ok(), is_permitted, "{need:?}");
    }
    let read = access(resource("c", "logs", "r"), BlobNeed::Read).expect("permitted");
    for (name, is_permitted) in
        [("logs", true), ("logs/a", true), ("logs/a/b", true), ("logs2/a", false), ("log", false)]
    {
        assert_eq!(read.check(name, &[], Ticks::MIN).is_ok(), is_permitted, "{name}");
    }
    assert_eq!(
        access(resource("c", "logs", "r"), BlobNeed::Write).map(drop),
        Err(Reason::AuthorizationPermissionMismatch)
    );
}

#[test]
fn a_blob_signature_covers_that_blob_alone() {
    let read = access(resource("b", "logs/a", "r"), BlobNeed::Read).expect("permitted");

    for (name, is_permitted) in [("logs/a", true), ("logs/a/b", false), ("logs", false)] {
        assert_eq!(read.check(name, &[], Ticks::MIN).is_ok(), is_permitted, "{name}");
    }
}

#[test]
fn a_stored_access_policy_decides_when_it_is_read() {
    let policy =
        PolicyRef { id: "readers".to_owned(), has_start: false, has_expiry: true, denied: None };
    let grant = ResourceGrant::new(&BLOB, "c", "logs");
    let grant = ResourceGrant { policy: Some(policy), ..grant };
    let authority = Authority::Resource(grant);
    let permitted = |letters_of: &str, need| {
        access_by_policy(authority.clone(), Some(letters(letters_of)), need)
    };
    let read = permitted("r", BlobNeed::Read).expect("permitted so far");
    assert_eq!(
        read.also(BlobNeed::Tags).map(drop).map_err(|it| it.reason),
        Err(Reason::AuthorizationPermissionMismatch)
    );
    assert!(permitted("rt", BlobNeed::Read).expect("permitted").also(BlobNeed::Tags).is_ok());
    assert_eq!(
        permitted("w", BlobNeed::Read).map(drop),
        Err(Reason::AuthorizationPermissionMismatch)
    );
    let stored = |permissions: &str| AccessPolicy {
        id: "readers".to_owned(),
        permissions: Some(permissions.to_owned()),
        ..Default::default()
    };
    let check = |policies: &[AccessPolicy]| {
        read.check("logs/a", policies, Ticks::MIN).map_err(|fault| fault.reason)
    };

    assert!(read.is_by_policy());
    assert_eq!(check(&[stored("r")]), Ok(()));
    assert_eq!(check(&[stored("w")]), Err(Reason::AuthorizationPermissionMismatch));
    assert_eq!(check(&[]), Err(Reason::AuthenticationFailed));
}

#[test]
fn a_caller_without_credentials_reads_what_the_container_opened() {
    let levels = [PublicAccess::None, PublicAccess::Blobs, PublicAccess::Container];
    for need in ALL {
        let needed = match need {
            BlobNeed::Read => 1,
            BlobNeed::ReadContainer | BlobNeed::ListBlobs => 2,
            _ => usize::MAX,
        };
        match access(Authority::Anonymous, need) {
            Err(reason) => {
                assert_eq!((reason, needed), (Reason::NoAuthenticationInformation, usize::MAX));
            }
            Ok(access) => {
                assert!(access.is_anonymous() && access.also(BlobNeed::FindInAccount).is_err());
                for (index, level) in levels.into_iter().enumerate() {
                    let is_allowed = access.check_public(level).is_ok();
                    assert_eq!(is_allowed, index >= needed, "{need:?} {level:?}");
                }
            }
        }
    }
    let owner = access(Authority::Owner, BlobNeed::Read).expect("permitted");
    assert_eq!(owner.check_public(PublicAccess::None), Ok(()));
}

#[test]
fn a_signature_for_a_snapshot_or_a_version_is_for_calls_that_name_it() {
    let of_state = |resource_type, time: &str| {
        let grant = ResourceGrant::new(&BLOB, resource_type, "logs/a");
        let bounds = FieldValues::from_iter([(SNAPSHOT, time)]);
        let grant = ResourceGrant { permissions: Some(letters("rx")), bounds, ..grant };
        access(Authority::Resource(grant), BlobNeed::Read).expect("permitted so far")
    };
    let (one, other) = ("2025-11-21T00:00:00.0000001Z", "2025-11-21T00:00:00.0000002Z");
    for (resource_type, snapshot, version_id, is_permitted) in [
        ("bs", one, "", true),
        ("bs", other, "", false),
        ("bs", "", one, false),
        ("bs", "", "", false),
        ("bv", "", one, true),
        ("bv", "", other, false),
        ("bv", one, "", false),
        ("bv", "", "", false),
    ] {
        let read = of_state(resource_type, one).to_state(snapshot, version_id);
        let checked = read.check("logs/a", &[], Ticks::MIN);
        assert_eq!(checked.is_ok(), is_permitted, "{resource_type} {snapshot} {version_id}");
        assert!(read.check("logs/b", &[], Ticks::MIN).is_err());
    }
    let of_blob = access(resource("b", "logs/a", "r"), BlobNeed::Read).expect("permitted");
    assert_eq!(of_blob.to_state(one, "").check("logs/a", &[], Ticks::MIN), Ok(()));
}

#[test]
fn the_permission_to_create_is_not_one_to_write() {
    for authority in [account("b", "o", "c"), resource("c", "logs", "c")] {
        let create = access(authority, BlobNeed::Create).expect("permitted");
        assert_eq!(create.check("logs/a", &[], Ticks::MIN), Ok(()));
        let write = create.also(BlobNeed::Write).map(drop).map_err(|it| it.reason);
        assert_eq!(write, Err(Reason::AuthorizationPermissionMismatch));
    }
}
