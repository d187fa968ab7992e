//! A service that is added: its declarations are all that it needs.

use std::sync::Arc;

use crate::{
    account::{Account, AccountKey},
    authorize::{check_all_of, check_resource, not_authorized},
    caller::{Authority, Caller, ResourceGrant},
    field_values::FieldValues,
    sas::{Named, NamedResource, Scope, Terms, Time, Version, mint, verify},
    shared_key::all_headers,
    spec::{FieldSpec, ResourceType, ServiceSpec},
};
use trestle_model::{fault::Reason, time::Ticks};
use trestle_rpc::peer::Peer;

/// Logs: streams below a container, bounded by a prefix of their names.
const LOGS: ServiceSpec = ServiceSpec {
    name: "log",
    letter: 'g',
    is_served: true,
    permissions: &[('r', "read"), ('k', "tail")],
    orders_permissions: false,
    name_field: None,
    name_header: None,
    is_name: |text| !text.is_empty(),
    ignores_case: false,
    has_paths: true,
    container: "log",
    objects: "streams",
    resource_types: &[ResourceType {
        code: "",
        since: "2012-02-12",
        name_in: |path, _| path.split('/').next().map(str::to_owned),
        covers_below: true,
    }],
    fields: &[FieldSpec {
        name: "pfx",
        signed_since: Some("2012-02-12"),
        is_new: false,
        is_bound: true,
        of_request: &[],
        header: None,
        of_types: &[],
    }],
    delegation: None,
    normalize: |_| Ok(()),
    describe: |_| String::new(),
    signed_texts: all_headers::texts,
    ambiguity: |_| None,
};

fn terms(prefix: &str) -> Terms {
    let time = |field, text: &str| Some(Time::parse(field, text.to_owned()).expect("a time"));
    let fields: FieldValues = [("pfx", prefix)].into_iter().collect();
    Terms {
        version: Version::current(),
        permissions: "kr".to_owned(),
        start: None,
        expiry: time("se", "2036-01-01"),
        policy: None,
        addresses: None,
        protocol: None,
        delegation: None,
        scope: Scope::of_resource(&LOGS, "audit", fields),
    }
}

/// The caller of a call on `path`, as another process receives it.
fn forwarded(token: &str, path: &str) -> Option<Arc<Caller>> {
    let accounts = [Account::development()].into_iter().collect();
    let named = Named {
        account: Some("devstoreaccount1"),
        resource: Some(NamedResource::new(&LOGS, path)),
    };
    let now = Ticks::from_unix(1_800_000_000, 0).expect("in range");
    let caller = verify(token, named, &accounts, now, &Peer::in_process()).ok()?;
    let mut request = tonic::Request::new(());
    let mut headers = http::HeaderMap::new();
    trestle_rpc::forwarded::Forwarded::write(&caller, &mut headers);
    *request.metadata_mut() = tonic::metadata::MetadataMap::from_headers(headers);
    Some(Caller::of(&request).expect("a caller"))
}

/// What the service decides about a read of a stream.
fn authorize(grant: &ResourceGrant, letter: &str, path: &str) -> Option<Reason> {
    let check = || {
        check_resource(grant, &LOGS, path)?;
        check_all_of(grant.permissions.unwrap_or_default(), letter)?;
        let stream = path.split_once('/').map_or("", |(_, stream)| stream);
        let is_within = stream.starts_with(grant.bounds.get("pfx").unwrap_or_default());
        if is_within { Ok(()) } else { Err(not_authorized("the stream has another prefix")) }
    };
    check().err().map(|fault| fault.reason)
}

#[test]
fn a_service_is_added_by_its_declarations() {
    let token = mint(terms("eu-"), "devstoreaccount1", &AccountKey::development());
    let token = token.expect("terms").to_query();
    assert!(token.contains("&pfx=eu-&sp=rk&"), "{token}");

    let caller = forwarded(&token, "audit/eu-1").expect("a caller");

    let Authority::Resource(grant) = &caller.authority else { panic!("a grant over a resource") };
    assert_eq!(authorize(grant, "r", "audit/eu-1"), None);
    assert_eq!(authorize(grant, "k", "audit/eu-2/x"), None);
    let failure = Some(Reason::AuthorizationFailure);
    assert_eq!(authorize(grant, "r", "audit/us-1"), failure);
    assert_eq!(authorize(grant, "r", "audits/eu-1"), failure);
    let mismatch = Some(Reason::AuthorizationPermissionMismatch);
    assert_eq!(authorize(grant, "d", "audit/eu-1"), mismatch);
    assert!(forwarded(&token, "other/eu-1").is_none(), "signed for another resource");
    assert!(forwarded(&token.replace("pfx=eu-", "pfx=us-"), "audit/eu-1").is_none());
    assert!(forwarded(&token.replace("pfx=eu-&", ""), "audit/eu-1").is_none());
}
