use trestle_identity::{
    bearer::Role,
    caller::{AccountGrant, Letters, PolicyRef, ResourceGrant},
    spec::QUEUE,
};
use trestle_model::fault::Reason;

use super::*;

const ALL: [LogNeed; 8] = [
    LogNeed::List,
    LogNeed::Create,
    LogNeed::ReadStream,
    LogNeed::WriteStream,
    LogNeed::Delete,
    LogNeed::Append,
    LogNeed::AppendOrCreate,
    LogNeed::Read,
];

fn access(authority: Authority, need: LogNeed) -> Result<(), Reason> {
    let caller = Caller::new(AccountName::development(), authority);
    LogAccess::new(Arc::new(caller), need).map(drop).map_err(|fault| fault.reason)
}

fn account(services: &str, resource_types: &str, permissions: &str) -> Authority {
    let letters = |text| Letters::parse(text).expect("letters");
    Authority::Account(AccountGrant {
        services: letters(services),
        resource_types: letters(resource_types),
        permissions: letters(permissions),
    })
}

#[test]
fn an_owner_may_do_everything_and_a_caller_without_credentials_nothing() {
    for need in ALL {
        assert_eq!(access(Authority::Owner, need), Ok(()), "{need:?}");
        let denied = Err(Reason::NoAuthenticationInformation);
        assert_eq!(access(Authority::Anonymous, need), denied, "{need:?}");
    }
}

#[test]
fn an_account_signature_needs_service_type_and_permission() {
    for (need, resource_type, permissions) in [
        (LogNeed::List, "s", "l"),
        (LogNeed::Create, "c", "c"),
        (LogNeed::ReadStream, "c", "r"),
        (LogNeed::WriteStream, "c", "w"),
        (LogNeed::Delete, "c", "d"),
        (LogNeed::Append, "o", "a"),
        (LogNeed::AppendOrCreate, "o", "ac"),
        (LogNeed::Read, "o", "r"),
    ] {
        assert_eq!(access(account("l", resource_type, permissions), need), Ok(()), "{need:?}");
        let elsewhere = access(account("bqtf", resource_type, permissions), need);
        assert_eq!(elsewhere, Err(Reason::AuthorizationServiceMismatch), "{need:?}");
        for other in ["s", "c", "o"].into_iter().filter(|other| *other != resource_type) {
            let of_type = access(account("l", other, permissions), need);
            assert_eq!(of_type, Err(Reason::AuthorizationResourceTypeMismatch), "{need:?}");
        }
        for permission in permissions.chars() {
            let less: String = "racwdl".chars().filter(|other| *other != permission).collect();
            let outcome = access(account("l", resource_type, &less), need);
            // Another letter of the same need suffices.
            let suffices = matches!(need, LogNeed::Create | LogNeed::Append)
                || (need == LogNeed::AppendOrCreate);
            assert_eq!(outcome.is_ok(), suffices, "{need:?} without {permission}");
        }
    }
    assert!(access(account("l", "o", "a"), LogNeed::AppendOrCreate).is_err());
}

/// A signature over a stream.
fn stream(name: &str, permissions: &str) -> ResourceGrant {
    let permissions = Letters::parse(permissions);
    ResourceGrant { permissions, ..ResourceGrant::new(&LOG, "", name) }
}

#[test]
fn a_signature_of_a_stream_needs_the_permission() {
    for (need, letter) in [
        (LogNeed::Create, Some('c')),
        (LogNeed::ReadStream, Some('r')),
        (LogNeed::Read, Some('r')),
        (LogNeed::Append, Some('a')),
        (LogNeed::AppendOrCreate, Some('a')),
        (LogNeed::List, None),
        (LogNeed::WriteStream, None),
        (LogNeed::Delete, None),
    ] {
        for granted in ['r', 'a', 'c'] {
            let outcome = access(Authority::Resource(stream("web", &granted.to_string())), need);
            let expected = match letter {
                Some(letter) if letter == granted => Ok(()),
                Some(_) => Err(Reason::AuthorizationPermissionMismatch),
                None => Err(Reason::AuthorizationFailure),
            };
            assert_eq!(outcome, expected, "{need:?} with {granted}");
        }
    }
}

#[test]
fn a_signature_of_a_stream_is_for_this_stream_only() {
    let access = |authority| {
        let caller = Caller::new(AccountName::development(), authority);
        LogAccess::new(Arc::new(caller), LogNeed::AppendOrCreate).unwrap()
    };
    let name = |name: &str| StreamName::stored(name.to_owned());
    let reason = |fault: Fault| fault.reason;

    let held = access(Authority::Resource(stream("web", "a")));
    assert_eq!(held.account_of(&name("web")), Ok(&AccountName::development()));
    for other in ["web.traces", "we", "api"] {
        let denied = held.account_of(&name(other)).map(drop).map_err(reason);
        assert_eq!(denied, Err(Reason::AuthorizationFailure), "{other}");
    }
    let denied = held.check_create().map_err(reason);
    assert_eq!(denied, Err(Reason::AuthorizationPermissionMismatch));
    assert!(access(Authority::Resource(stream("web", "ac"))).check_create().is_ok());
    for wide in [Authority::Owner, account("l", "o", "ac")] {
        let wide = access(wide);
        assert!(wide.account_of(&name("any")).is_ok() && wide.check_create().is_ok());
    }
}

#[test]
fn a_signature_of_another_resource_or_with_a_policy_is_never_enough() {
    let policy =
        PolicyRef { id: "daily".to_owned(), has_start: false, has_expiry: true, denied: None };
    let by_policy = ResourceGrant { policy: Some(policy), ..stream("web", "rac") };
    for need in ALL {
        let queue = ResourceGrant {
            permissions: Letters::parse("rac"),
            ..ResourceGrant::new(&QUEUE, "", "web")
        };
        let denied = access(Authority::Resource(queue), need);
        assert_eq!(denied, Err(Reason::AuthorizationServiceMismatch), "{need:?}");
        let denied = access(Authority::Resource(by_policy.clone()), need);
        assert_eq!(denied, Err(Reason::AuthorizationFailure), "{need:?}");
    }
}

#[test]
fn a_role_permits_reads_or_everything() {
    for need in ALL {
        let permits = |role| access(Authority::Role(role), need);
        let is_read = matches!(need, LogNeed::List | LogNeed::ReadStream | LogNeed::Read);
        let nothing = Err(Reason::AuthorizationPermissionMismatch);
        let reads = if is_read { Ok(()) } else { nothing };
        assert_eq!(Role::ALL.map(permits), [nothing, reads, Ok(()), Ok(())], "{need:?}");
    }
}
