//! Round trips of callers through headers, and invalid headers.

use super::{
    message::{AccountWire, BoundWire, DeniedWire, PolicyWire, ResourceWire},
    *,
};
use crate::{
    bearer::Role,
    caller::{AccountGrant, Authority, Letters, PolicyRef, ResourceGrant},
    spec::{QUEUE, TABLE},
};

fn letters(text: &str) -> Letters {
    Letters::parse(text).expect("letters")
}

fn sent(authority: Authority) -> HeaderMap {
    let account = AccountName::parse("acme").expect("a name");
    let mut headers = HeaderMap::new();
    write(&Caller::new(account, authority), &mut headers);
    headers
}

fn round_trip(authority: Authority) {
    let read = read(&MetadataMap::from_headers(sent(authority.clone()))).expect("a caller");
    assert_eq!((read.account.as_str(), read.authority), ("acme", authority));
}

fn policy(denied: Option<Fault>) -> Option<PolicyRef> {
    let denied = denied.map(Box::new);
    Some(PolicyRef { id: "readers é".into(), has_start: false, has_expiry: true, denied })
}

#[test]
fn every_authority_survives_a_round_trip() {
    round_trip(Authority::Owner);
    round_trip(Authority::Anonymous);
    for role in Role::ALL {
        round_trip(Authority::Role(role));
    }
    round_trip(Authority::Account(AccountGrant {
        services: letters("t"),
        resource_types: letters("co"),
        permissions: letters("rau"),
    }));
    let bounds = [("spk", ""), ("epk", "b\n"), ("erk", "9")].into_iter().collect();
    let table = ResourceGrant::new(&TABLE, "", "orders");
    round_trip(Authority::Resource(ResourceGrant { policy: policy(None), bounds, ..table }));
    let queue = ResourceGrant::new(&QUEUE, "", "jobs");
    let permissions = Some(letters("raup"));
    round_trip(Authority::Resource(ResourceGrant { permissions, ..queue.clone() }));
    round_trip(Authority::Resource(queue));
}

#[test]
fn an_error_that_depends_on_a_policy_survives_a_round_trip() {
    let message = "the signature is not for this address";
    let fault = Fault::new(Reason::AuthorizationSourceIpMismatch, message);
    let queue = ResourceGrant::new(&QUEUE, "", "jobs");

    round_trip(Authority::Resource(ResourceGrant { policy: policy(Some(fault)), ..queue }));
}

#[test]
fn the_authorization_of_a_source_survives_a_round_trip_beside_every_other() {
    let account = AccountName::parse("acme").expect("a name");
    let source = Authority::Resource(ResourceGrant::new(&QUEUE, "", "jobs"));
    for authority in [Authority::Owner, Authority::Anonymous, source.clone()] {
        let caller = Caller::new(account.clone(), authority).with_source(source.clone());
        let mut headers = HeaderMap::new();

        write(&caller, &mut headers);

        let read = read(&MetadataMap::from_headers(headers)).expect("a caller");
        assert_eq!(read, caller);
        assert_eq!(read.at_source(), Caller::new(account.clone(), source.clone()));
    }
    let owner = Caller::owner(account);
    assert_eq!(owner.at_source(), owner);
}

#[test]
fn a_source_has_less_than_full_access_and_no_source() {
    let account = || AccountName::parse("acme").expect("a name");
    let anonymous = || GrantWire { is_anonymous: true, ..GrantWire::default() };
    let with = |source| GrantWire { source: Some(Box::new(source)), ..GrantWire::default() };
    assert!(with(anonymous()).caller(account()).is_some());
    assert!(with(GrantWire::default()).caller(account()).is_none());
    assert!(with(with(anonymous())).caller(account()).is_none());
}

#[test]
fn rejects_a_grant_that_cannot_be_parsed() {
    let queue = || ResourceWire { service: "queue".into(), ..ResourceWire::default() };
    let resource = |resource| GrantWire { resource: Some(resource), ..GrantWire::default() };
    assert!(resource(queue()).caller(AccountName::development()).is_some());
    let bound = BoundWire { field: "epk".into(), value: "a".into() };
    let denied = Some(DeniedWire { reason: -1, message: String::new() });
    let policy = Some(PolicyWire { denied, ..PolicyWire::default() });
    let account = AccountWire { services: "T".into(), ..AccountWire::default() };
    for grant in [
        GrantWire::default(),
        GrantWire {
            account: Some(AccountWire::default()),
            resource: Some(queue()),
            ..GrantWire::default()
        },
        GrantWire { resource: Some(queue()), is_anonymous: true, ..GrantWire::default() },
        GrantWire { account: Some(account), ..GrantWire::default() },
        resource(ResourceWire::default()),
        resource(ResourceWire { permissions: Some("rr".into()), ..queue() }),
        resource(ResourceWire { bounds: vec![bound.clone(), bound], ..queue() }),
        resource(ResourceWire { policy, ..queue() }),
    ] {
        let bytes = grant.encode_to_vec();
        let mut metadata = MetadataMap::new();
        metadata.insert_bin(GRANT_HEADER, BinaryMetadataValue::from_bytes(&bytes));
        assert!(read(&metadata).is_err(), "{grant:?}");
    }
    let mut metadata = MetadataMap::new();
    metadata.insert_bin(GRANT_HEADER, BinaryMetadataValue::from_bytes(&[0xFF]));
    assert!(read(&metadata).is_err());
}

#[test]
fn rejects_two_grants() {
    let mut headers = sent(Authority::Resource(ResourceGrant::new(&QUEUE, "", "jobs")));
    let again = headers.get(GRANT_HEADER).expect("a grant").clone();
    headers.append(GRANT_HEADER, again);

    assert!(read(&MetadataMap::from_headers(headers)).is_err());
}
