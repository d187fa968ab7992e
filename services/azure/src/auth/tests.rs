//! Credentials of requests: keys, and edges of shared access signatures.

use std::sync::Arc;

use http::{Method, Uri};
use tonic::body::Body;
use trestle_identity::{
    account::{Account, AccountKey, Accounts},
    caller::KeyRange,
    sas::{AddressRange, Protocol, Scope, Terms, Time, Version, mint},
    spec::{BLOB, QUEUE, TABLE},
};
use trestle_model::time::{Clock, ManualClock};
use trestle_rpc::{layer::Request, peer::Peer};

use super::*;

const NOW: &str = "Sat, 21 Nov 2026 12:00:00 GMT";
const PATH: &str = "/devstoreaccount1/mytable(PartitionKey='pk1',RowKey='a%20b')";

fn identity(account: Account) -> Identity {
    let now = Ticks::from_unix(1_795_262_400, 0).expect("in range");
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(now));
    Identity::new(Accounts::new([account]), clock, true)
}

fn head(target: &str, headers: &[(&'static str, &str)]) -> RequestHead {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = target.parse::<Uri>().expect("a target");
    for (name, value) in [("host", "127.0.0.1")].iter().chain(headers) {
        request.headers_mut().append(*name, value.parse().expect("a value"));
    }
    RequestHead::take(&mut request, "table").expect("a head")
}

/// The header of a request for `path`, signed with the development key.
fn signature(path: &str) -> String {
    let headers = [("x-ms-date".parse().expect("a name"), NOW.parse().expect("a value"))];
    let headers = headers.into_iter().collect();
    let (service, scheme, query) = (&TABLE, Scheme::Full, "");
    let signed = SignedRequest { service, scheme, method: "GET", headers: &headers, path, query };
    let made = signed.sign("devstoreaccount1", &AccountKey::development());
    format!("SharedKey devstoreaccount1:{}", STANDARD.encode(made))
}

fn reason(head: &RequestHead) -> Result<String, Reason> {
    let caller = caller(head, &TABLE, &identity(Account::development()));
    caller.map(|caller| caller.account.to_string()).map_err(|denied| denied.reason)
}

#[test]
fn a_signed_request_is_authenticated_as_the_owner() {
    let authorization = signature(PATH);
    let signed = [("x-ms-date", NOW), ("authorization", authorization.as_str())];
    let lower = [("date", NOW), ("authorization", authorization.as_str())];

    assert_eq!(reason(&head(PATH, &signed)), Ok("devstoreaccount1".to_owned()));
    assert_eq!(
        reason(&head(&format!("{PATH}?$select=a"), &signed)).as_deref(),
        Ok("devstoreaccount1")
    );
    assert_eq!(reason(&head(PATH, &lower)).as_deref(), Ok("devstoreaccount1"));
    // Another path, another date, another account in the path.
    let failed = Err(Reason::AuthenticationFailed);
    assert_eq!(reason(&head("/devstoreaccount1/other", &signed)), failed);
    assert_eq!(reason(&head("/acme/mytable", &signed)), failed);
    let late = [("x-ms-date", "Sat, 21 Nov 2026 12:15:01 GMT"), signed[1]];
    assert_eq!(reason(&head(PATH, &late)), failed);
    assert_eq!(reason(&head(PATH, &signed[1..])), failed);
}

#[test]
fn the_path_of_a_replica_is_signed_as_sent_or_as_that_of_the_account() {
    let path = "/devstoreaccount1-secondary/mytable";
    for signed in [path, "/devstoreaccount1/mytable"] {
        let authorization = signature(signed);
        let headers = [("x-ms-date", NOW), ("authorization", authorization.as_str())];
        assert!(reason(&head(path, &headers)).is_ok(), "{signed}");
    }
}

#[test]
fn malformed_credentials_have_another_error_than_wrong_ones() {
    let of = |value: &str| reason(&head(PATH, &[("x-ms-date", NOW), ("authorization", value)]));

    for value in ["SharedKey", "Bearer x", "Basic a:b", "SharedKey devstoreaccount1", ""] {
        assert_eq!(of(value), Err(Reason::InvalidAuthenticationInfo), "{value}");
    }
    for value in
        ["SharedKey devstoreaccount1:", "SharedKeyLite devstoreaccount1:AAAA", "SharedKey absent:x"]
    {
        assert_eq!(of(value), Err(Reason::AuthenticationFailed), "{value}");
    }
    let twice = [("authorization", "SharedKey a:b"), ("authorization", "SharedKey a:b")];
    assert_eq!(reason(&head(PATH, &twice)), Err(Reason::InvalidAuthenticationInfo));
    assert_eq!(reason(&head(PATH, &[])), Err(Reason::NoAuthenticationInformation));
}

#[test]
fn reports_a_disabled_account_only_to_its_owner() {
    let authorization = signature(PATH);
    let account = Account { is_disabled: true, ..Account::development() };
    let reason = |authorization: &str| {
        let head = head(PATH, &[("x-ms-date", NOW), ("authorization", authorization)]);
        caller(&head, &TABLE, &identity(account.clone())).expect_err("rejected").reason
    };

    assert_eq!(reason(&authorization), Reason::AccountIsDisabled);
    assert_eq!(reason("SharedKey devstoreaccount1:AAAA"), Reason::AuthenticationFailed);
}

#[test]
fn accepts_a_token_in_the_query_beside_other_parameters() {
    let token = "st=2026-01-01T00%3A00%3A00Z&se=2036-01-01T00%3A00%3A00Z&sp=raud\
                 &sv=2019-02-02&tn=MyTable&sig=V%2BPw4sMiRz%2BRn85tY8GqS7W2A40isFItVAjCjzruwO0%3D";
    let of = |query: String| reason(&head(&format!("/devstoreaccount1/MyTable?{query}"), &[]));

    assert_eq!(
        of(format!("$filter=a%20eq%201&{token}&timeout=5")).as_deref(),
        Ok("devstoreaccount1")
    );
    assert_eq!(of(token.replace("sp=raud", "sp=r")), Err(Reason::AuthenticationFailed));
    // A field without effect is rejected by its name.
    let delegated = head(&format!("/devstoreaccount1/MyTable?skoid=a&{token}"), &[]);
    let delegated = caller(&delegated, &TABLE, &identity(Account::development()));
    let delegated = delegated.expect_err("rejected");
    assert_eq!(delegated.reason, Reason::AuthenticationFailed);
    assert!(delegated.message.contains("skoid: must be in a token of a container"), "{delegated}");
    // A malformed signature is a wrong one.
    assert_eq!(of(format!("{token}&sp=raud")), Err(Reason::AuthenticationFailed));
}

/// The terms of a token for a table, valid from one hour before [`NOW`] to one hour after it.
fn terms() -> Terms {
    let time = |text: &str| Some(Time::parse("se", text.to_owned()).expect("a time"));
    Terms {
        version: Version::current(),
        permissions: "r".to_owned(),
        start: time("2026-11-21T11:00:00Z"),
        expiry: time("2026-11-21T13:00:00Z"),
        policy: None,
        addresses: None,
        protocol: None,
        delegation: None,
        scope: Scope::of_table("mytable", &KeyRange::default()),
    }
}

/// The query of a token with these terms.
fn token_of(terms: Terms) -> String {
    mint(terms, "devstoreaccount1", &AccountKey::development()).expect("terms").to_query()
}

/// The error of a token in a request over an unencrypted connection.
fn over_plain(query: &str) -> Result<(), Reason> {
    let mut head = head(&format!("/devstoreaccount1/mytable?{query}"), &[]);
    head.peer = Peer { tls: None, ..Peer::in_process() };
    reason(&head).map(drop)
}

#[test]
fn a_token_is_valid_from_its_start_up_to_its_expiry() {
    let time = |text: &str| Some(Time::parse("se", text.to_owned()).expect("a time"));
    let failed = Err(Reason::AuthenticationFailed);
    for (start, expiry, expected) in [
        (None, "2026-11-21T13:00:00Z", Ok(())),
        (time("2026-11-21T12:00:00Z"), "2026-11-21T13:00:00Z", Ok(())),
        (time("2026-11-21T13:00:00+01:00"), "2026-11-21T12:00:00.0000001Z", Ok(())),
        (time("2026-11-21"), "2026-11-22", Ok(())),
        (None, "2026-11-21T11:59:59.9999999Z", failed),
        (None, "2026-11-21", failed),
        (time("2026-11-22"), "2026-11-23", failed),
    ] {
        let query = token_of(Terms { start: start.clone(), expiry: time(expiry), ..terms() });
        assert_eq!(over_plain(&query), expected, "{start:?} {expiry}");
    }
}

#[test]
fn a_token_survives_other_orders_and_escapes_of_its_fields() {
    let query = token_of(terms());
    assert_eq!(over_plain(&query), Ok(()));
    let mut fields: Vec<_> = query.split('&').collect();
    fields.reverse();
    assert_eq!(over_plain(&fields.join("&")), Ok(()));
    // Python leaves `/` unescaped in the signature, others escape more than they have to.
    assert_eq!(over_plain(&query.replace("%2F", "/")), Ok(()));
    assert_eq!(over_plain(&query.replace("sp=r", "sp=%72")), Ok(()));
    assert_eq!(over_plain(&query.replace("tn=mytable", "tn=MYTABLE")), Ok(()));
    assert_eq!(over_plain(&format!("comp=list&{query}&timeout=5&api-version=2019-02-02")), Ok(()));
}

#[test]
fn a_token_with_a_changed_missing_or_added_field_is_rejected() {
    let query = token_of(terms());
    for changed in [
        query.replace("sp=r", "sp=raud"),
        query.replace("tn=mytable", "tn=other"),
        query.replace("13%3A00", "14%3A00").replace("13:00", "14:00"),
        query.replace("sp=r&", "").replace("&sp=r", ""),
        format!("{query}&spk=a"),
        format!("{query}&si=policy"),
        format!("{query}&sip=127.0.0.1"),
    ] {
        assert_ne!(changed, query);
        assert_eq!(over_plain(&changed), Err(Reason::AuthenticationFailed), "{changed}");
    }
    let unsigned: Vec<_> = query.split('&').filter(|field| !field.starts_with("sig=")).collect();
    let missing = Err(Reason::NoAuthenticationInformation);
    assert_eq!(over_plain(&unsigned.join("&")), missing);
}

#[test]
fn a_token_is_checked_for_its_protocol_and_its_addresses() {
    let secure = token_of(Terms { protocol: Some(Protocol::Https), ..terms() });
    assert_eq!(over_plain(&secure), Err(Reason::AuthorizationProtocolMismatch));
    let encrypted = head(&format!("/devstoreaccount1/mytable?{secure}"), &[]);
    assert!(reason(&encrypted).is_ok());

    for (range, expected) in [
        ("127.0.0.1", Ok(())),
        ("127.0.0.0-127.0.0.9", Ok(())),
        ("10.0.0.1-10.0.0.9", Err(Reason::AuthorizationSourceIpMismatch)),
    ] {
        let addresses = AddressRange::parse(range.to_owned()).ok();
        assert_eq!(over_plain(&token_of(Terms { addresses, ..terms() })), expected, "{range}");
    }
}

#[test]
fn a_token_of_a_queue_is_for_the_queue_of_its_address() {
    let scope = Scope::of_queue("jobs");
    let query = token_of(Terms { scope, ..terms() });
    let used = |path: &str| {
        let head = head(&format!("/devstoreaccount1{path}?{query}"), &[]);
        let caller = caller(&head, &QUEUE, &identity(Account::development()));
        caller.map(drop).map_err(|denied| denied.reason)
    };
    for path in ["/jobs", "/jobs/", "/jobs/messages", "/jobs/messages/an-id"] {
        assert_eq!(used(path), Ok(()), "{path}");
    }
    for path in ["/job", "/jobs2/messages", "/", "/other/jobs"] {
        assert_eq!(used(path), Err(Reason::AuthenticationFailed), "{path}");
    }
}

#[test]
fn a_key_takes_precedence_over_a_token() {
    let query = token_of(terms());
    let target = format!("/devstoreaccount1/mytable?{query}");
    let wrong = [("x-ms-date", NOW), ("authorization", "SharedKey devstoreaccount1:AAAA")];
    assert_eq!(reason(&head(&target, &wrong)), Err(Reason::AuthenticationFailed));
    let malformed = [("authorization", "Bearer x")];
    assert_eq!(reason(&head(&target, &malformed)), Err(Reason::InvalidAuthenticationInfo));
}

#[test]
fn a_website_is_for_every_visitor_of_an_account_that_is_not_disabled() {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = "/a?sig=x".parse::<Uri>().expect("a target");
    let host = "devstoreaccount1.web.localhost:10000".parse().expect("a value");
    request.headers_mut().append("host", host);
    request.headers_mut().append("authorization", "x".parse().expect("a value"));
    let head = RequestHead::take(&mut request, "blob").expect("a head");
    let visitor = |account: Account| {
        let caller = caller(&head, &BLOB, &identity(account));
        caller.map(|caller| caller.authority.clone()).map_err(|denied| denied.reason)
    };
    let private = Account { allows_public_access: false, ..Account::development() };
    assert_eq!(visitor(private), Ok(Authority::Anonymous));
    let disabled = Account { is_disabled: true, ..Account::development() };
    assert_eq!(visitor(disabled), Err(Reason::ResourceNotFound));
}
