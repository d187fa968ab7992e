//! The grant of a token, and the first check that it fails.

use std::{net::SocketAddr, sync::LazyLock};

use crate::{
    account::{Account, AccountKey, AccountSet},
    caller::{
        AccountGrant, Authority, Caller, GrantedResource, KeyRange, Letters, PolicyRef,
        ResourceGrant,
    },
    sas::{
        AddressRange, Check, Named, NamedResource, Outcome, Protocol, Scope, Terms, Time, Token,
        Use, VerifiedTokens, Version, explain, mint, verify,
    },
    spec::{BLOB, LOG, QUEUE, TABLE},
};
use trestle_model::{fault::Reason, name::AccountName, time::Ticks};
use trestle_rpc::peer::{Peer, PeerTls};

/// 2026-01-01T12:00:00Z.
const NOON: i64 = 1_767_268_800;

pub(super) fn at(seconds: i64) -> Ticks {
    Ticks::from_unix(NOON + seconds, 0).expect("in range")
}

fn time(text: &str) -> Option<Time> {
    Some(Time::parse("st", text.to_owned()).expect("a time"))
}

fn letters(text: &str) -> Letters {
    Letters::parse(text).expect("letters")
}

pub(super) fn peer(address: &str, is_encrypted: bool) -> Peer {
    let address: SocketAddr = address.parse().expect("an address");
    Peer { address, tls: is_encrypted.then(PeerTls::default) }
}

fn key(byte: u8) -> AccountKey {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode([byte; 64]);
    AccountKey::decode(&text).expect("a key")
}

pub(super) fn account(name: &str, byte: u8) -> Account {
    let name = AccountName::parse(name).expect("a name");
    Account {
        name,
        keys: vec![key(byte), key(byte + 100)],
        is_disabled: false,
        allows_public_access: false,
    }
}

pub(super) fn accounts() -> AccountSet {
    let disabled = Account { is_disabled: true, ..account("closed", 3) };
    [account("acme", 1), account("other", 2), disabled].into_iter().collect()
}

/// From ten in the morning to two in the afternoon, on a table.
pub(super) fn table_terms() -> Terms {
    Terms {
        version: Version::current(),
        permissions: "ra".to_owned(),
        start: time("2026-01-01T10:00Z"),
        expiry: time("2026-01-01T14:00Z"),
        policy: None,
        addresses: None,
        protocol: None,
        delegation: None,
        scope: Scope::of_table("Orders", &KeyRange::default()),
    }
}

pub(super) fn token(terms: Terms, account: &str, byte: u8) -> String {
    mint(terms, account, &key(byte)).expect("terms").to_query()
}

fn used(token: &str, seconds: i64, peer: &Peer) -> Result<Caller, (Check, Reason)> {
    let verified = verify(token, Some("acme"), &accounts(), at(seconds), peer);
    // Tests at other times and from other peers share the cache, which must never make a difference.
    static CACHE: LazyLock<VerifiedTokens> = LazyLock::new(VerifiedTokens::default);
    for attempt in ["verified before or not", "verified before, if it is valid"] {
        let cached =
            CACHE.verify(token, Some("acme").into(), &accounts(), &Use { now: at(seconds), peer });
        let cached = cached.map(|caller| Caller::clone(&caller));
        assert_eq!(cached, verified, "{attempt}: {token}");
    }
    verified.map_err(|denied| (denied.check, denied.reason))
}

fn at_noon(terms: Terms) -> Result<Caller, (Check, Reason)> {
    used(&token(terms, "acme", 1), 0, &Peer::in_process())
}

#[test]
fn a_token_of_a_table_has_its_own_grant_or_references_its_policy() {
    let range = KeyRange {
        start_partition_key: Some("a".to_owned()),
        end_partition_key: Some("b".to_owned()),
        ..KeyRange::default()
    };
    let scope = Scope::of_table("Orders", &range);
    let terms = Terms {
        scope,
        permissions: String::new(),
        start: None,
        policy: Some("readers".to_owned()),
        ..table_terms()
    };

    let caller = at_noon(terms).expect("a caller");

    assert_eq!(caller.account.as_str(), "acme");
    let policy =
        PolicyRef { id: "readers".to_owned(), has_start: false, has_expiry: true, denied: None };
    let resource = GrantedResource {
        service: "table".into(),
        resource_type: "".into(),
        name: "orders".to_owned(),
    };
    let bounds = [("spk", "a"), ("epk", "b")].into_iter().collect();
    let grant = ResourceGrant { resource, permissions: None, policy: Some(policy), bounds };
    assert_eq!(caller.authority, Authority::Resource(grant));
}

#[test]
fn a_token_of_a_queue_has_its_grant_on_the_named_queue() {
    let scope = Scope::of_queue("jobs");
    let signed = token(Terms { scope, permissions: "ap".to_owned(), ..table_terms() }, "acme", 1);
    let used = |queue: Option<&str>| {
        let resource = queue.map(|name| NamedResource::new(&QUEUE, name));
        let named = Named { account: Some("acme"), resource };
        let verified = verify(&signed, named, &accounts(), at(0), &Peer::in_process());
        verified.map_err(|denied| (denied.check, denied.reason))
    };

    let permissions = Some(letters("ap"));
    let grant = ResourceGrant { permissions, ..ResourceGrant::new(&QUEUE, "", "jobs") };
    assert_eq!(used(Some("jobs")).expect("a caller").authority, Authority::Resource(grant));
    let failed = Err((Check::Signature, Reason::AuthenticationFailed));
    assert_eq!(used(Some("other")), failed, "signed for another queue");
    assert_eq!(used(None), Err((Check::Form, Reason::InvalidAuthenticationInfo)));
    let other = NamedResource::new(&QUEUE, "other");
    let table = token(table_terms(), "acme", 1);
    let named = Named { account: Some("acme"), resource: Some(other) };
    let table = verify(&table, named, &accounts(), at(0), &Peer::in_process()).expect("a caller");
    let Authority::Resource(grant) = table.authority else { panic!("a grant over a resource") };
    assert!(grant.is_of(&TABLE), "the token contains its resource");
}

#[test]
fn a_token_of_a_log_stream_contains_its_stream() {
    let log_terms = |permissions: &str| {
        let scope = Scope::of_log("web.api");
        Terms { scope, permissions: permissions.to_owned(), ..table_terms() }
    };
    let signed = token(log_terms("ar"), "acme", 1);
    assert!(signed.contains("ln=web.api") && signed.contains("sp=ra&"), "{signed}");

    let caller = used(&signed, 0, &Peer::in_process()).expect("a caller");

    let permissions = Some(letters("ra"));
    let grant = ResourceGrant { permissions, ..ResourceGrant::new(&LOG, "", "web.api") };
    assert_eq!(caller.authority, Authority::Resource(grant));
    for changed in [signed.replace("ln=web.api", "ln=web"), signed.replace("sp=ra", "sp=rac")] {
        assert_ne!(changed, signed);
        let failed = Err((Check::Signature, Reason::AuthenticationFailed));
        assert_eq!(used(&changed, 0, &Peer::in_process()), failed, "{changed}");
    }
    for (name, permissions) in [("Web", "r"), ("", "r"), ("-a", "r"), ("web", "w")] {
        let scope = Scope::of_log(name);
        let terms = Terms { scope, permissions: permissions.to_owned(), ..table_terms() };
        assert!(mint(terms, "acme", &key(1)).is_err(), "{name} {permissions}");
    }
}

#[test]
fn no_token_of_a_queue_is_one_of_the_log_stream_with_its_name() {
    // Versions before 2015-02-21 sign the name without its service.
    for version in ["2014-02-14", "2015-04-05", "2026-02-06"] {
        let version = Version::parse(version.to_owned()).expect("a version");
        let terms = Terms { version, scope: Scope::of_queue("jobs"), ..table_terms() };
        let of_log = format!("ln=jobs&{}", token(terms, "acme", 1));

        let failed = used(&of_log, 0, &Peer::in_process()).expect_err("no caller");

        assert!(matches!(failed.0, Check::Form | Check::Signature), "{failed:?}: {of_log}");
    }
    let version = Version::parse("2014-02-14".to_owned()).expect("a version");
    let terms = Terms { version, scope: Scope::of_log("jobs"), ..table_terms() };
    let error = mint(terms, "acme", &key(1)).expect_err("an old version");
    assert_eq!((error.field, error.rule.as_str()), ("ln", "needs sv 2015-04-05 or newer"));
}

#[test]
fn a_token_of_an_account_has_the_grant_of_its_letters() {
    let scope = Scope::Account {
        services: "btl".to_owned(),
        resource_types: "co".to_owned(),
        encryption_scope: String::new(),
    };
    let caller = at_noon(Terms { scope, permissions: "wr".to_owned(), ..table_terms() });

    let (services, resource_types) = (letters("btl"), letters("co"));
    let grant = AccountGrant { services, resource_types, permissions: letters("rw") };
    assert_eq!(caller.expect("a caller").authority, Authority::Account(grant));
}

#[test]
fn only_a_key_of_the_account_signs_for_it_and_errors_do_not_disclose_the_cause() {
    let failed = Err((Check::Signature, Reason::AuthenticationFailed));
    let of =
        |account: &str, byte| used(&token(table_terms(), account, byte), 0, &Peer::in_process());

    assert!(of("acme", 1).is_ok() && of("acme", 101).is_ok(), "either key");
    assert_eq!(of("acme", 2), failed, "a key of another account");
    assert_eq!(of("other", 2), failed, "a token of another account");
    let signed = token(table_terms(), "acme", 1);
    for (old, new) in [("sp=ra", "sp=raud"), ("tn=Orders", "tn=Other"), ("T14%3A", "T15%3A")] {
        assert!(signed.contains(old), "{signed}");
        assert_eq!(used(&signed.replace(old, new), 0, &Peer::in_process()), failed, "{new}");
    }
    assert!(used(&signed.replace("tn=Orders", "tn=ORDERS"), 0, &Peer::in_process()).is_ok());

    let wrong = |account, byte| {
        let token = token(table_terms(), account, byte);
        let denied = verify(&token, Some(account), &accounts(), at(0), &Peer::in_process());
        denied.expect_err("denied")
    };
    assert_eq!(wrong("acme", 9), wrong("absent", 9));
}

#[test]
fn a_token_without_a_named_account_belongs_to_the_signing_account() {
    let used = |token: &str| verify(token, None, &accounts(), at(0), &Peer::in_process());

    let caller = used(&token(table_terms(), "other", 2)).expect("a caller");

    assert_eq!(caller.account.as_str(), "other");
    assert_eq!(used(&token(table_terms(), "acme", 2)).unwrap_err().check, Check::Signature);
    let many = (10..40).map(|byte| account(&format!("account{byte}"), byte));
    let many: AccountSet = many.collect();
    let token = token(table_terms(), "account20", 20);
    let unnamed = verify(&token, None, &many, at(0), &Peer::in_process()).unwrap_err();
    assert_eq!(unnamed.reason, Reason::InvalidAuthenticationInfo);
    assert!(verify(&token, Some("account20"), &many, at(0), &Peer::in_process()).is_ok());
}

#[test]
fn a_token_is_valid_from_a_little_before_its_start_to_exactly_its_expiry() {
    let signed = token(table_terms(), "acme", 1);
    let hour = 3600;
    let failed = Err((Check::Time, Reason::AuthenticationFailed));

    for seconds in [-2 * hour - 300, -2 * hour, 0, 2 * hour - 1] {
        assert!(used(&signed, seconds, &Peer::in_process()).is_ok(), "{seconds}");
    }
    for seconds in [-2 * hour - 301, 2 * hour, 3 * hour] {
        assert_eq!(used(&signed, seconds, &Peer::in_process()), failed, "{seconds}");
    }
}

#[test]
fn a_token_is_valid_over_its_protocol_and_from_its_addresses_only() {
    let address = |text: &str| Some(AddressRange::parse(text.to_owned()).expect("an address"));
    let terms = Terms {
        protocol: Some(Protocol::Https),
        addresses: address("10.0.0.5-10.0.1.5"),
        ..table_terms()
    };
    let signed = token(terms, "acme", 1);
    let from = |address: &str, is_encrypted| used(&signed, 0, &peer(address, is_encrypted));
    let wrong_address = Err((Check::Address, Reason::AuthorizationSourceIpMismatch));

    for address in ["10.0.0.5:1", "10.0.1.0:1", "10.0.1.5:1", "[::ffff:10.0.0.5]:1"] {
        assert!(from(address, true).is_ok(), "{address}");
    }
    for address in ["10.0.0.4:1", "10.0.1.6:1", "[::1]:1", "[fe80::1]:1"] {
        assert_eq!(from(address, true), wrong_address, "{address}");
    }
    let wrong_protocol = Err((Check::Protocol, Reason::AuthorizationProtocolMismatch));
    assert_eq!(from("10.0.0.5:1", false), wrong_protocol);
    assert_eq!(from("10.9.9.9:1", false), wrong_protocol, "the protocol is first");
}

#[test]
fn returns_the_first_check_that_fails() {
    let expired = Terms {
        expiry: time("2026-01-01T11:00Z"),
        protocol: Some(Protocol::Https),
        ..table_terms()
    };
    let plain = peer("10.0.0.5:1", false);
    let check = |terms: Terms, account: &str, byte| {
        let token = token(terms, account, byte);
        verify(&token, Some(account), &accounts(), at(0), &plain).expect_err("denied").check
    };

    assert_eq!(check(expired.clone(), "acme", 9), Check::Signature);
    assert_eq!(check(expired.clone(), "closed", 9), Check::Signature);
    assert_eq!(check(expired.clone(), "closed", 3), Check::Account);
    assert_eq!(check(expired.clone(), "acme", 1), Check::Time);
    assert_eq!(check(Terms { expiry: time("2026-01-02"), ..expired }, "acme", 1), Check::Protocol);
}

#[test]
fn checks_protocol_and_address_after_the_policy() {
    let addresses = |text: &str| Some(AddressRange::parse(text.to_owned()).expect("addresses"));
    let wrong_address = Terms { addresses: addresses("10.9.9.9"), ..table_terms() };
    let wrong_both = Terms { protocol: Some(Protocol::Https), ..wrong_address.clone() };
    let plain = peer("10.0.0.5:1", false);
    let verified = |terms: Terms, policy: Option<&str>, seconds| {
        let terms = Terms { policy: policy.map(str::to_owned), ..terms };
        let token = token(terms, "acme", 1);
        verify(&token, Some("acme"), &accounts(), at(seconds), &plain)
    };

    for (terms, reason) in [
        (wrong_address.clone(), Reason::AuthorizationSourceIpMismatch),
        (wrong_both, Reason::AuthorizationProtocolMismatch),
    ] {
        let denied = verified(terms.clone(), None, 0).expect_err("denied");
        let caller = verified(terms, Some("readers"), 0).expect("for the service to deny");
        let carried = caller.authority.denied().expect("carried");
        assert_eq!((denied.reason, &denied.message), (reason, &carried.message));
        assert_eq!(carried.reason, reason);
    }
    let fine = verified(table_terms(), Some("readers"), 0).expect("a caller");
    assert_eq!(fine.authority.denied(), None);
    let late = verified(wrong_address, Some("readers"), 3 * 3600).expect_err("denied");
    assert_eq!(late.check, Check::Time, "checked before the policy");
}

#[test]
fn an_explanation_matches_the_server_and_omits_the_signature() {
    let expired = Terms { expiry: time("2026-01-01T11:00Z"), ..table_terms() };
    let encrypted = Terms { protocol: Some(Protocol::Https), ..table_terms() };
    let plain = peer("10.0.0.5:1", false);
    for (terms, byte) in [(table_terms(), 1), (table_terms(), 9), (expired, 1), (encrypted, 1)] {
        let token = token(terms, "acme", byte);

        let explanation = explain(&token, None, accounts().get("acme"), at(0), Some(&plain));

        let denied = verify(&token, Some("acme"), &accounts(), at(0), &plain).err();
        let failed = explanation.first_failed();
        let found = failed.map(|finding| (finding.check, finding.outcome));
        let denied = denied.map(|denied| (denied.check, Outcome::Rejected(denied.reason)));
        assert_eq!(found, denied, "{explanation:?}");
        let signature = token.split("sig=").nth(1).expect("a signature");
        assert!(!format!("{explanation:?}").contains(signature), "{explanation:?}");
        let text = explanation.string_to_sign.expect("the account exists");
        assert!(text.contains("/table/acme/orders"), "{text}");
        assert!(explanation.findings.is_sorted_by_key(|finding| finding.check));
    }
}

#[test]
fn explain_without_key_or_connection_reports_their_checks_as_open() {
    let terms = Terms { protocol: Some(Protocol::Https), ..table_terms() };

    let explanation = explain(&token(terms, "acme", 1), None, None, at(0), None);

    let open = |finding: &&crate::sas::Finding| finding.outcome == Outcome::Open;
    let open: Vec<_> = explanation.findings.iter().filter(open).map(|f| f.check).collect();
    assert_eq!(open, [Check::Signature, Check::Protocol, Check::Operation]);
    assert_eq!(explanation.string_to_sign, None);
    let malformed = explain("sv=1", None, None, at(0), None);
    assert_eq!(malformed.first_failed().expect("rejected").check, Check::Form);
}

#[test]
fn tokens_with_invalid_terms_are_not_minted() {
    let rejected = |terms: Terms| mint(terms, "acme", &key(1)).expect_err("rejected").field;
    let range = KeyRange { end_partition_key: Some(String::new()), ..KeyRange::default() };
    let scope = Scope::of_table("orders", &range);

    assert_eq!(rejected(Terms { permissions: "rx".to_owned(), ..table_terms() }), "sp");
    assert_eq!(rejected(Terms { permissions: "rr".to_owned(), ..table_terms() }), "sp");
    assert_eq!(rejected(Terms { permissions: String::new(), ..table_terms() }), "sp");
    assert_eq!(rejected(Terms { expiry: table_terms().start, ..table_terms() }), "se");
    assert_eq!(rejected(Terms { expiry: None, ..table_terms() }), "se");
    assert_eq!(rejected(Terms { scope, ..table_terms() }), "epk");
    let minted = mint(Terms { permissions: "dr".to_owned(), ..table_terms() }, "acme", &key(1));
    assert_eq!(minted.expect("a token").terms.permissions, "rd");
    let now = Time::at(Ticks::new(at(0).get() + 7).expect("in range")).expect("a time");
    assert_eq!(now.as_str(), "2026-01-01T12:00:00Z");
    let read = Token::parse(&token(table_terms(), "acme", 1), None).expect("a token");
    assert_eq!(read.terms, table_terms());
}

#[test]
fn a_token_of_a_container_is_explained_for_each_of_its_blobs() {
    let scope = Scope::of_container("pictures");
    let token = token(Terms { scope, ..table_terms() }, "acme", 1);
    let signature = |path: &str| {
        let resource = Some(NamedResource::new(&BLOB, path));
        let explanation = explain(&token, resource, accounts().get("acme"), at(0), None);
        let finding = explanation.findings.into_iter().find(|it| it.check == Check::Signature);
        finding.expect("a finding about the signature").outcome
    };

    for path in ["pictures", "pictures/2026/a.png"] {
        assert_eq!(signature(path), Outcome::Passed, "{path}");
    }
    let rejected = Outcome::Rejected(Reason::AuthenticationFailed);
    assert_eq!(signature("others/2026/a.png"), rejected);
}
