//! Tokens that a user delegation key signs: their texts, and what no holder of such a key can do with it.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::checks::{account, at, peer};
use crate::{
    account::{Account, AccountKey, AccountSet},
    bearer::{Issuer, Issuers, KeyMisses, PublicKeys, Role, RoleValues},
    caller::{Authority, Letters},
    sas::{
        Check, Delegation, DelegationTerms, Denied, Named, NamedResource, Outcome, Scope, Terms,
        Time, Token, Use, VerifiedTokens, Version, expiry_of, explain, mint, string_to_sign,
    },
    spec::{BLOB, QUEUE, ServiceSpec},
};
use trestle_model::{fault::Reason, name::AccountName};
use trestle_rpc::peer::Peer;

const ISSUER: &str = "https://login.example.com";
/// The fields of the key of the vectors, whose value has the bytes `0123456789abcdef` twice.
const KEY: &str = "skoid=11111111-1111-1111-1111-111111111111&sktid=22222222-2222-2222-2222-222222222222\
                   &skt=2025-11-21T00:00:00Z&ske=2025-11-27T00:00:00Z&skv=2021-12-02";
const TIMES: &str = "st=2025-11-21T00:00:00Z&se=2025-11-26T00:00:00Z";

fn time(field: &'static str, text: &str) -> Time {
    Time::parse(field, text.to_owned()).expect("a time")
}

/// The text of a token for `path` with these fields after those of the key.
fn text(service: &'static ServiceSpec, path: &str, fields: &str) -> String {
    let signature = STANDARD.encode([0; 32]);
    let letter = service.letter;
    let fields = format!("{TIMES}&{KEY}&sks={letter}&{fields}&sig={signature}");
    let token = Token::parse(&fields, Some(NamedResource::new(service, path))).expect(&fields);
    string_to_sign(&token.terms, "devstoreaccount1")
}

/// The lines that texts have in common: up to the version of the key.
fn first_lines(permissions: &str, resource: &str, service: char) -> String {
    format!(
        "{permissions}\n2025-11-21T00:00:00Z\n2025-11-26T00:00:00Z\n/{resource}\n\
         11111111-1111-1111-1111-111111111111\n22222222-2222-2222-2222-222222222222\n\
         2025-11-21T00:00:00Z\n2025-11-27T00:00:00Z\n{service}\n2021-12-02\n"
    )
}

#[test]
fn texts_and_signatures_are_those_of_other_implementations() {
    let value = AccountKey::decode("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").expect("a key");
    let blob = first_lines("r", "blob/devstoreaccount1/logs/dir/a b.txt", 'b');
    let container = first_lines("rl", "blob/devstoreaccount1/logs", 'b');
    let id = "33333333-3333-3333-3333-333333333333";
    for (path, fields, expected, signature) in [
        (
            "logs/dir/a b.txt",
            "sp=r&sr=b&sv=2021-12-02".to_owned(),
            format!("{blob}\n\n\n\n\n2021-12-02\nb\n\n\n\n\n\n\n"),
            "s8Y/ZaJ5MuE9j4QvCS2f39SfOYoQi2uUBkYIgTsq4Uw=",
        ),
        (
            "logs/dir/a b.txt",
            "sp=r&sr=b&sv=2026-10-06".to_owned(),
            format!("{blob}\n\n\n\n\n\n\n2026-10-06\nb\n\n\n\n\n\n\n\n\n"),
            "e6YqubErVjQ23Osj4FB0MQ6jw3ktk1G686NFRcwQyMQ=",
        ),
        (
            "logs/any",
            format!("sp=rl&sr=c&sv=2026-10-06&scid={id}&rsct=text/plain"),
            format!("{container}\n\n{id}\n\n\n\n\n2026-10-06\nc\n\n\n\n\n\n\n\n\ntext/plain"),
            "8g9WhgmBRER/qlgfoTvOh1JZtoxhRkCRG6rljoydD9Y=",
        ),
    ] {
        let text = text(&BLOB, path, &fields);
        assert_eq!(text, expected);
        assert_eq!(STANDARD.encode(value.sign(&text)), signature, "{text}");
    }
    let queue = first_lines("raup", "queue/devstoreaccount1/orders", 'q');
    let queue = queue.replace("2021-12-02", "2025-07-05");
    let fields = "sp=raup&sv=2026-10-06";
    let text = text(&QUEUE, "orders", fields).replace("2021-12-02", "2025-07-05");
    assert_eq!(text, format!("{queue}\n\n\n\n2026-10-06"));
    let signature = STANDARD.encode(value.sign(&text));
    assert_eq!(signature, "FSpssHDkfThqTWgEmvb0A7nK63DiZ6Osuy9xhhylEIk=");
}

#[test]
fn each_version_signs_the_lines_of_its_layout() {
    let blob = first_lines("r", "blob/devstoreaccount1/logs/a", 'b');
    for (version, more, lines) in [
        ("2018-11-09", "", "\n\n2018-11-09\nb\n\n\n\n\n\n"),
        ("2020-02-09", "", "\n\n2020-02-09\nb\n\n\n\n\n\n"),
        ("2020-02-10", "&saoid=u&scid=c", "u\n\nc\n\n\n2020-02-10\nb\n\n\n\n\n\n"),
        ("2020-12-06", "&saoid=u&scid=c", "u\n\nc\n\n\n2020-12-06\nb\n\n\n\n\n\n\n"),
        ("2025-07-05", "&skdutid=&sduoid=", "\n\n\n\n\n\n\n2025-07-05\nb\n\n\n\n\n\n\n"),
        ("2026-04-06", "&srh=&srq=", "\n\n\n\n\n\n\n2026-04-06\nb\n\n\n\n\n\n\n\n\n"),
    ] {
        let text = text(&BLOB, "logs/a", &format!("sp=r&sr=b&sv={version}{more}"));
        assert_eq!(text, format!("{blob}{lines}"), "{version}");
    }
}

#[test]
fn what_a_key_cannot_sign_is_rejected_by_the_name_of_its_field() {
    let token =
        format!("{TIMES}&{KEY}&sks=b&sp=r&sr=b&sv=2026-10-06&sig={}", STANDARD.encode([0; 32]));
    let blob = || Some(NamedResource::new(&BLOB, "logs/a"));
    let of = |token: &str| Token::parse(token, blob()).map(drop).map_err(|error| error.to_string());
    assert_eq!(of(&token), Ok(()));
    for (from, to, expected) in [
        ("sp=r", "sp=r&suoid=u", "suoid: is not supported"),
        ("sp=r", "sp=r&skdutid=t", "skdutid: is not supported"),
        ("sp=r", "sp=r&sduoid=u", "sduoid: is not supported"),
        ("sp=r", "sp=r&srh=x-ms-meta", "srh: is not supported"),
        ("sp=r", "sp=r&srq=comp", "srq: is not supported"),
        ("sp=r", "sp=r&si=policy", "si: must not be in a token that a user delegation key signs"),
        ("&sp=r", "", "sp: required"),
        ("&se=2025-11-26T00:00:00Z", "", "se: required"),
        (
            "sktid=22222222-2222-2222-2222-222222222222",
            "sktid=",
            "sktid: required in a token that a user",
        ),
        ("&sks=b", "", "sks: required in a token that a user"),
        ("&skt=2025-11-21T00:00:00Z", "", "skt: required in a token that a user"),
        ("skt=2025-11-21T00:00:00Z", "skt=yesterday", "skt: must be a time"),
        ("ske=2025-11-27T00:00:00Z", "ske=2025-11-31", "ske: must be a time"),
        ("sks=b", "sks=q", "sks: must be `b`, the service of the token: value=`q`"),
        ("sks=b", "sks=bq", "sks: must be `b`"),
        ("skv=2021-12-02", "skv=new", "skv: must be a version"),
        ("skv=2021-12-02", "skv=2021-12-02&skv=2021-12-02", "skv: must not be repeated"),
        ("skoid=11111111-1111-1111-1111-111111111111", "skoid=", "skoid: required"),
        ("skoid=11111111-1111-1111-1111-111111111111&", "", "sks: does not belong"),
        ("skoid=1111", "skoid=a%0Ab", "skoid: must not have control characters"),
        ("sv=2026-10-06", "sv=2018-11-08", "skoid: needs sv 2018-11-09 or newer"),
        (
            "sp=r&sr=b&sv=2026-10-06",
            "sp=r&sr=b&sv=2020-02-09&saoid=u",
            "saoid: needs sv 2020-02-10",
        ),
        ("sp=r&sr=b&sv=2026-10-06", "sp=r&sr=b&sv=2019-12-12&scid=c", "scid: needs sv 2020-02-10"),
        ("sp=r&sr=b", "sp=r&ss=b&srt=o", "skoid: must be in a token of a container, a blob"),
        ("sp=r&sr=b", "sp=r&tn=orders", "skoid: must be in a token of a container, a blob"),
        ("sp=r&sr=b", "sp=r&ln=web", "skoid: must be in a token of a container, a blob"),
    ] {
        let changed = token.replace(from, to);
        assert_ne!(changed, token, "{from}");
        let error = of(&changed).expect_err(to);
        assert!(error.starts_with(expected), "{to}: {error}");
    }
    let queue = token.replace("sks=b", "sks=q").replace("&sr=b", "");
    let of = |token: &str| Token::parse(token, Some(NamedResource::new(&QUEUE, "jobs")));
    assert!(of(&queue).is_ok());
    let early = of(&queue.replace("2026-10-06", "2025-07-04")).expect_err("before the first");
    assert_eq!(early.to_string(), "skoid: needs sv 2025-07-05 or newer");
    let named = of(&queue.replace("sp=r", "sp=r&scid=c")).expect_err("not signed");
    assert_eq!(named.to_string(), "scid: does not belong to such a token");
}

/// An issuer for `acme` and `other`.
fn issuer() -> Issuer {
    let zeros = "A".repeat(43);
    let keys = format!(r#"{{"keys":[{{"kty":"EC","crv":"P-256","x":"{zeros}","y":"{zeros}"}}]}}"#);
    let role = |role: Role| role.as_str().to_owned();
    Issuer {
        name: "corp".to_owned(),
        issuer: ISSUER.to_owned(),
        audience: "trestle".to_owned(),
        keys: PublicKeys::parse(keys.as_bytes()).expect("a key set"),
        misses: KeyMisses::default(),
        clock_skew: Duration::from_secs(60),
        accounts: ["acme", "other"].map(|name| AccountName::parse(name).expect("a name")).into(),
        role_claim: "roles".to_owned(),
        roles: RoleValues {
            delegator: role(Role::Delegator),
            reader: role(Role::Reader),
            contributor: role(Role::Contributor),
            owner: role(Role::Owner),
        },
    }
}

/// The accounts `acme` and `other`, with the same keys.
fn accounts() -> AccountSet {
    set([account("acme", 1), account("other", 1)], vec![issuer()])
}

fn set<const N: usize>(accounts: [Account; N], issuers: Vec<Issuer>) -> AccountSet {
    accounts.into_iter().collect::<AccountSet>().with_issuers(Issuers::new(issuers))
}

/// A key from eleven in the morning to one in the afternoon.
fn key() -> DelegationTerms {
    DelegationTerms {
        user: "u1".to_owned(),
        issuer: ISSUER.to_owned(),
        start: time("skt", "2026-01-01T11:00:00Z"),
        expiry: time("ske", "2026-01-01T13:00:00Z"),
        service: "b".to_owned(),
        version: Version::current(),
    }
}

/// A token of the container `logs` that outlasts its key at both ends.
fn terms(key: DelegationTerms, permissions: &str) -> Terms {
    let (authorized_user, correlation_id) = ("u2".to_owned(), "c1".to_owned());
    Terms {
        version: Version::current(),
        permissions: permissions.to_owned(),
        start: Some(time("st", "2026-01-01T10:00:00Z")),
        expiry: Some(time("se", "2026-01-01T14:00:00Z")),
        policy: None,
        addresses: None,
        protocol: None,
        delegation: Some(Box::new(Delegation { key, authorized_user, correlation_id })),
        scope: Scope::of_container("logs"),
    }
}

/// A token with these terms, which the key of a user with a role signs.
fn signed(terms: Terms, role: Role) -> String {
    let key = terms.delegation.as_ref().map(|delegation| delegation.key.clone()).expect("a key");
    let value = key.value(&account("acme", 1), role).expect("an account with keys");
    signed_by(terms, &STANDARD.encode(value.reveal()))
}

fn signed_by(terms: Terms, value: &str) -> String {
    let value = AccountKey::decode(value).expect("32 bytes");
    mint(terms, "acme", &value).expect("terms").to_query()
}

fn used_in(
    accounts: &AccountSet,
    cache: &VerifiedTokens,
    token: &str,
    (name, seconds): (&str, i64),
) -> Result<Letters, Denied> {
    let resource = Some(NamedResource::new(&BLOB, "logs/a"));
    let named = Named { account: Some(name), resource };
    let usage = Use { now: at(seconds), peer: &Peer::in_process() };
    let caller = cache.verify(token, named, accounts, &usage)?;
    match &caller.authority {
        Authority::Resource(grant) if grant.policy.is_none() => {
            assert_eq!((caller.account.as_str(), grant.resource.name.as_str()), (name, "logs"));
            Ok(grant.permissions.expect("a token states them"))
        }
        other => panic!("no grant of a resource: {other:?}"),
    }
}

fn used(token: &str) -> Result<Letters, Denied> {
    used_in(&accounts(), &VerifiedTokens::default(), token, ("acme", 0))
}

fn check(token: &str) -> Option<Check> {
    used(token).err().map(|denied| denied.check)
}

#[test]
fn a_token_permits_what_both_it_and_the_role_of_its_user_do() {
    for (role, permissions, granted) in [
        (Role::Delegator, "rwl", ""),
        (Role::Reader, "rwdltf", "flr"),
        (Role::Reader, "w", ""),
        (Role::Contributor, "rw", "rw"),
        (Role::Owner, "rwdltf", "dflrtw"),
    ] {
        let token = signed(terms(key(), permissions), role);
        assert_eq!(
            used(&token).map(|letters| letters.to_string()),
            Ok(granted.to_owned()),
            "{role}"
        );
    }
}

#[test]
fn no_field_of_a_token_or_of_its_key_can_be_changed() {
    let token = signed(terms(key(), "r"), Role::Reader);
    assert_eq!(check(&token), None);
    for (from, to) in [
        ("skoid=u1", "skoid=u2"),
        ("sktid=https", "sktid=http"),
        ("skt=2026-01-01T11%3A00", "skt=2026-01-01T10%3A00"),
        ("ske=2026-01-01T13%3A00", "ske=2026-01-01T14%3A00"),
        ("ske=2026-01-01T13%3A00%3A00Z", "ske=2026-01-01T13%3A00%3A00.0000001Z"),
        ("ske=2026-01-01T13%3A00%3A00Z", "ske=2026-01-01T13%3A00Z"),
        ("skv=2021-12-02", "skv=2022-11-02"),
        ("skv=2021-12-02", "skv=2018-11-09"),
        ("sv=2021-12-02", "sv=2022-11-02"),
        ("sv=2021-12-02", "sv=2025-07-05"),
        ("saoid=u2", "saoid=u1"),
        ("saoid=u2", "saoid="),
        ("scid=c1", "scid=c2"),
        ("sp=r", "sp=rw"),
        ("st=2026-01-01T10", "st=2026-01-01T09"),
        ("se=2026-01-01T14", "se=2026-01-01T15"),
        ("sr=c", "sr=b"),
        ("sr=c", "sr=c&sip=127.0.0.1"),
        ("sr=c", "sr=c&rsct=text%2Fhtml"),
    ] {
        let changed = token.replacen(from, to, 1);
        assert_ne!(changed, token, "{from}");
        assert_eq!(check(&changed), Some(Check::Signature), "{to}");
    }
    // Without the fields of the key it is a token that a key of the account would have signed.
    let without: Vec<_> = token.split('&').filter(|field| !field.starts_with("sk")).collect();
    let without = without.join("&").replace("&saoid=u2&scid=c1", "");
    assert_eq!(check(&without), Some(Check::Signature));
}

#[test]
fn a_key_signs_only_with_the_terms_and_the_role_that_it_was_made_with() {
    let acme = account("acme", 1);
    let value = |key: &DelegationTerms, role| *key.value(&acme, role).expect("a key").reveal();
    let own = value(&key(), Role::Reader);
    let others = [
        value(&key(), Role::Delegator),
        value(&key(), Role::Contributor),
        value(&key(), Role::Owner),
        value(&DelegationTerms { user: "u2".into(), ..key() }, Role::Reader),
        value(&DelegationTerms { issuer: "i".into(), ..key() }, Role::Reader),
        value(&DelegationTerms { start: key().expiry, ..key() }, Role::Reader),
        value(&DelegationTerms { expiry: key().start, ..key() }, Role::Reader),
        value(&DelegationTerms { service: "q".into(), ..key() }, Role::Reader),
        value(
            &DelegationTerms {
                version: Version::parse("2022-11-02".into()).expect("one"),
                ..key()
            },
            Role::Reader,
        ),
        *key().value(&account("other", 1), Role::Reader).expect("a key").reveal(),
        *key().value(&account("acme", 2), Role::Reader).expect("a key").reveal(),
    ];
    for (index, other) in others.iter().enumerate() {
        assert_ne!(own, *other, "{index}");
        assert!(!others[..index].contains(other), "{index}");
    }
    // A name that continues in the next field is another one.
    let moved = |user: &str, issuer: &str| DelegationTerms {
        user: user.into(),
        issuer: issuer.into(),
        ..key()
    };
    let moved = [moved("b", "ai"), moved("ib", "a")].map(|key| value(&key, Role::Reader));
    assert_ne!(moved[0], moved[1]);
    // The role is that of the derivation: the same token by the key of a reader is one of a reader.
    let token = signed_by(terms(key(), "rw"), &STANDARD.encode(own));
    assert_eq!(used(&token).map(|letters| letters.to_string()), Ok("r".to_owned()));
    assert_eq!(format!("{:?}", key().value(&acme, Role::Owner)), "Some(DelegationValue(redacted))");
    assert!(key().value(&Account { keys: Vec::new(), ..acme }, Role::Owner).is_none());
}

#[test]
fn a_key_of_the_account_does_not_sign_for_a_user_and_no_delegation_key_for_the_account() {
    let raw = STANDARD.encode([1; 64]);
    assert_eq!(check(&signed_by(terms(key(), "r"), &raw)), Some(Check::Signature));
    let value = key().value(&account("acme", 1), Role::Owner).expect("a key");
    let of_account = Terms { delegation: None, ..terms(key(), "r") };
    let value = STANDARD.encode(value.reveal());
    assert_eq!(check(&signed_by(of_account.clone(), &value)), Some(Check::Signature));
    assert_eq!(check(&signed_by(of_account, &raw)), None);
    // What a key is derived from is no text that the account signs: the value of a key would be its signature.
    for text in ["acme\nr\nb\nsco\n\n2036-01-01\n\n\n2019-02-02\n", ""] {
        let key = &account("acme", 1).keys[0];
        assert_ne!(key.delegated(text), key.sign(text), "{text:?}");
    }
}

#[test]
fn a_token_ends_with_its_key_and_does_not_begin_before_it() {
    let (accounts, cache) = (accounts(), VerifiedTokens::default());
    let token = signed(terms(key(), "r"), Role::Reader);
    let at = |seconds| {
        let used = used_in(&accounts, &cache, &token, ("acme", seconds));
        used.map(drop).map_err(|denied| (denied.check, denied.message))
    };
    let fails = |text: &str| Err((Check::Time, text.to_owned()));
    assert_eq!(at(0), Ok(()));
    assert_eq!(at(3599), Ok(()));
    let expired = "the user delegation key has expired: ske=`2026-01-01T13:00:00Z`";
    assert_eq!(at(3600), fails(expired));
    assert_eq!(at(-3600 - 300), Ok(()), "the clock of the client may be five minutes fast");
    let early = "the user delegation key is not valid yet: skt=`2026-01-01T11:00:00Z`";
    assert_eq!(at(-3600 - 301), fails(early));
    assert_eq!(at(7200), fails(expired), "the token has expired too");
    assert_eq!(at(0), Ok(()));
    // The expiry of a stream, too, is that of what ends first.
    let container = || Some(NamedResource::new(&BLOB, "logs"));
    assert_eq!(expiry_of(&token, container()), Some(key().expiry.ticks()));
    let brief = Terms { expiry: Some(time("se", "2026-01-01T12:00:01Z")), ..terms(key(), "r") };
    let brief = signed(brief, Role::Reader);
    assert_eq!(expiry_of(&brief, container()), Some(super::checks::at(1)));
    let used = used_in(&accounts, &cache, &brief, ("acme", 1)).expect_err("expired");
    assert_eq!(used.message, "the signature has expired: se=`2026-01-01T12:00:01Z`");
}

#[test]
fn a_time_of_the_key_may_be_written_in_another_form_but_not_moved() {
    let requested = key().value(&account("acme", 1), Role::Reader).expect("a key");
    let token = |start: &str, expiry: &str| {
        let (start, expiry) = (time("skt", start), time("ske", expiry));
        let terms = terms(DelegationTerms { start, expiry, ..key() }, "r");
        signed_by(terms, &STANDARD.encode(requested.reveal()))
    };
    for (start, expiry, expected) in [
        ("2026-01-01T11:00Z", "2026-01-01T13:00:00.0000000Z", None),
        ("2026-01-01T12:00:00+01:00", "2026-01-01T08:00:00-05:00", None),
        ("2026-01-01T11:00:00Z", "2026-01-01T13:00:00.0000001Z", Some(Check::Signature)),
        ("2026-01-01T11:00:00Z", "2026-01-01T13:00:00-00:01", Some(Check::Signature)),
        ("2026-01-01", "2026-01-01T13:00:00Z", Some(Check::Signature)),
    ] {
        assert_eq!(check(&token(start, expiry)), expected, "{start} {expiry}");
    }
}

#[test]
fn a_token_ends_with_the_key_of_the_account_its_issuer_and_its_account() {
    let token = signed(terms(key(), "r"), Role::Reader);
    let (acme, cache) = (account("acme", 1), VerifiedTokens::default());
    let [first, second] = [acme.keys[0].clone(), acme.keys[1].clone()];
    let with = |keys| Account { keys, ..acme.clone() };
    let check = |accounts: &AccountSet| {
        let used = used_in(accounts, &cache, &token, ("acme", 0));
        used.err().map(|denied| denied.check)
    };
    let of = |account| set([account], vec![issuer()]);
    assert_eq!(check(&of(acme.clone())), None);
    assert_eq!(check(&of(with(vec![second.clone(), first.clone()]))), None, "in any order");
    assert_eq!(check(&of(with(vec![first]))), None);
    assert_eq!(check(&of(with(vec![second]))), Some(Check::Signature), "the key was replaced");
    let disabled = Account { is_disabled: true, ..acme.clone() };
    assert_eq!(check(&of(disabled)), Some(Check::Account));
    assert_eq!(check(&set([acme.clone()], Vec::new())), Some(Check::Account), "no issuer");
    let elsewhere = Issuer { accounts: vec![account("other", 1).name], ..issuer() };
    assert_eq!(check(&set([acme.clone()], vec![elsewhere])), Some(Check::Account));
    let renamed = Issuer { name: "new".to_owned(), ..issuer() };
    assert_eq!(check(&set([acme], vec![renamed])), None);
}

#[test]
fn a_token_of_one_account_is_none_of_another_with_the_same_keys() {
    let token = signed(terms(key(), "r"), Role::Owner);
    for name in ["other", "absent"] {
        let used = used_in(&accounts(), &VerifiedTokens::default(), &token, (name, 0));
        let denied = used.expect_err("another account");
        assert_eq!((denied.check, denied.reason), (Check::Signature, Reason::AuthenticationFailed));
    }
    let peer = peer("10.0.0.1:4", false);
    let unnamed = Named { account: None, resource: Some(NamedResource::new(&BLOB, "logs/a")) };
    let usage = Use { now: at(0), peer: &peer };
    let caller = VerifiedTokens::default().verify(&token, unnamed, &accounts(), &usage);
    assert_eq!(caller.expect("found").account.as_str(), "acme");
}

#[test]
fn an_explanation_names_the_user_and_the_role() {
    let token = signed(terms(key(), "r"), Role::Reader);
    let explained = |account: &Account| {
        let resource = Some(NamedResource::new(&BLOB, "logs"));
        explain(&token, resource, Some(account), at(0), None)
    };
    let own = explained(&account("acme", 1));
    let stated = |name| own.terms.iter().find(|(term, _)| *term == name).map(|(_, text)| &**text);
    assert_eq!((stated("user"), stated("issuer")), (Some("u1"), Some(ISSUER)));
    assert_eq!(stated("key expiry"), Some("2026-01-01T13:00:00Z"));
    let signature = own.findings.iter().find(|finding| finding.check == Check::Signature);
    assert!(signature.is_some_and(|it| it.text.ends_with("role=`reader`")), "{own:?}");
    let failed = explained(&account("acme", 2));
    let failed = failed.first_failed().expect("another key");
    assert_eq!(failed.outcome, Outcome::Rejected(Reason::AuthenticationFailed));
}
