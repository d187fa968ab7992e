use trestle_identity::{
    caller::{AccountGrant, Letters, ResourceGrant},
    spec::QUEUE,
};
use trestle_service::fault::Reason;

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
    let caller = Caller { account: AccountName::development(), authority };
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
        assert_eq!(access(account("b", resource_type, permissions), need), Ok(()), "{need:?}");
        let of_queue = access(account("q", resource_type, permissions), need);
        assert_eq!(of_queue, Err(Reason::AuthorizationServiceMismatch), "{need:?}");
        for other in ["s", "c", "o"].into_iter().filter(|other| *other != resource_type) {
            let of_type = access(account("b", other, permissions), need);
            assert_eq!(of_type, Err(Reason::AuthorizationResourceTypeMismatch), "{need:?}");
        }
        for permission in permissions.chars() {
            let less: String = "racwdl".chars().filter(|other| *other != permission).collect();
            let outcome = access(account("b", resource_type, &less), need);
            // Another letter of the same need suffices.
            let suffices = matches!(need, LogNeed::Create | LogNeed::Append)
                || (need == LogNeed::AppendOrCreate);
            assert_eq!(outcome.is_ok(), suffices, "{need:?} without {permission}");
        }
    }
    assert!(access(account("b", "o", "a"), LogNeed::AppendOrCreate).is_err());
}

#[test]
fn a_signature_of_a_resource_is_never_enough() {
    for need in ALL {
        let grant = ResourceGrant::new(&QUEUE, "", "jobs");
        assert!(access(Authority::Resource(grant), need).is_err(), "{need:?}");
    }
}
