//! Tables of accepted and rejected key sets and tokens. Keys of ES256 are made by the tests; the RSA key and its token
//! are from OpenSSL.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    account::{Account, AccountSet},
    authorize::AccountNeed,
    caller::Authority,
    sas::{Check, Denied},
};
use std::{sync::Arc, time::Duration};
use trestle_model::{fault::Reason, name::AccountName, time::Ticks};

const NOW: i64 = 1_795_262_400;
const ISSUER: &str = "https://login.example.com";

/// An RSA modulus of 2048 bits, and a token that its key signed with OpenSSL.
const RSA_MODULUS: &str = "\
     pQZErCHZCxcPmD4c_EwUY-seaH64dchJMg3HJ0OMx24jP-In5MbvB7-fAS-iHhxHQWZz6wVgooFDveHHxQD_qQqXzo9EmY5ozphr\
     h9GzxBLqtzuQGU6dtFGJ_1opYM8S3x4UsZlLFzSEhYnda2BCURmXJRYsqslLQL9fG5pPbVPhRemtIizbQkfTn6WeuppZcJF1xVzb\
     xuHKT-6KDowxqnK2f05xn-8oZH57L7xAonZ03TGX78KuVfgevrt1zSMc83fhCw4JyMEzPym1v2B22tfidXJyQom-B-\
     YPtGFLJ1vUR5koWuSjVudl9qMjCeUADTa99qJTWBDV_30EdtYgZw";
const RSA_TOKEN: &str = "\
     eyJhbGciOiAiUlMyNTYiLCAia2lkIjogInIxIn0.eyJpc3MiOiAiaHR0cHM6Ly9sb2dpbi5leGFtcGxlLmNvbSIsICJhdWQiOiBb\
     Im90aGVyIiwgInRyZXN0bGUiXSwgImV4cCI6IDQxMDI0NDQ4MDAsICJuYmYiOiAxNzAwMDAwMDAwLjUsICJyb2xlcyI6IFsieCIs\
     ICJyZWFkZXIiXX0.emt2KrSoFeRkDzLhnBDjby6M7NB2lq-AeuSS6zK-\
     ne4n4CG8rASndZ_kwP577kJnqZre6eenzvOiBA99Uao2Xyxh_aoCDX60c6kOXEXmc48FkVYFQQ-\
     OXljEdmFwcY1ChuclwoJlsIBoBTPTXGHqVXwtGCnuFWkobO48G62uxs9GW3JQAzt5a_9SIZ0yFB4frEZ-\
     UyA7I3HfYawjJnQn0DD7okNXgYfr5W2giJK4FcHeDj7N-fs-\
     gLwajf82TrgM6JxROLCobrNmWc5KvNOm7h6eVaCVaI3mzAvzXppm08vqA5L3prOoFHB5LSGxJ1vcc2a-jVcvYIUFCgMU0ZWICA";

struct Signer {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signer {
    fn new() -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).expect("a key");
        Self { key, random }
    }

    fn jwk(&self, id: &str) -> Value {
        let point = self.key.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
        json!({"kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": x, "y": y})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let text = unsigned(header, claims);
        let signature = self.key.sign(&self.random, text.as_bytes()).expect("a signature");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn token(&self, claims: &Value) -> String {
        self.sign(&json!({"alg": "ES256", "kid": "k1"}), claims)
    }
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    format!("{header}.{claims}")
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "trestle", "exp": NOW + 600, "nbf": NOW - 600, "roles": "owner"})
}

/// The claims with one replaced, or removed where the value is null.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => claims.as_object_mut().expect("an object").remove(name),
        value => claims.as_object_mut().expect("an object").insert(name.to_owned(), value),
    };
    claims
}

fn account(name: &str) -> AccountName {
    AccountName::parse(name).expect("a name")
}

fn issuer(name: &str, issuer: &str, keys: &[Value]) -> Issuer {
    let set = json!({ "keys": keys }).to_string();
    Issuer {
        name: name.to_owned(),
        issuer: issuer.to_owned(),
        audience: "trestle".to_owned(),
        keys: PublicKeys::parse(set.as_bytes()).expect("a key set"),
        misses: KeyMisses::default(),
        clock_skew: Duration::from_secs(60),
        accounts: vec![account("acme"), account("closed"), account("absent")],
        role_claim: "roles".to_owned(),
        roles: RoleValues {
            delegator: "delegator".to_owned(),
            reader: "reader".to_owned(),
            contributor: "contributor".to_owned(),
            owner: "owner".to_owned(),
        },
    }
}

fn accounts(issuers: Vec<Issuer>) -> AccountSet {
    let accounts = ["acme", "closed", "other"].map(|name| Account {
        name: account(name),
        is_disabled: name == "closed",
        ..Account::development()
    });
    accounts.into_iter().collect::<AccountSet>().with_issuers(Issuers::new(issuers))
}

/// The role of a caller in `acme`.
fn role_at(accounts: &AccountSet, token: &str, seconds: i64) -> Result<Role, Denied> {
    let now = Ticks::from_unix(seconds, 0).expect("in range");
    let caller = accounts.issuers().caller(token, Some("acme"), accounts, now)?;
    match caller.authority {
        Authority::Role(role) => Ok(role),
        ref other => panic!("no role: {other:?}"),
    }
}

fn role(accounts: &AccountSet, token: &str) -> Result<Role, Denied> {
    role_at(accounts, token, NOW)
}

#[test]
fn a_valid_token_has_the_highest_role_of_its_claim() {
    let signer = Signer::new();
    let accounts = accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1")])]);

    for (roles, expected) in [
        (json!("reader"), Role::Reader),
        (json!("contributor"), Role::Contributor),
        (json!(["other", "owner", "reader"]), Role::Owner),
    ] {
        let token = signer.token(&with("roles", roles));
        assert_eq!(role(&accounts, &token), Ok(expected));
        assert_eq!(role(&accounts, &token), Ok(expected), "from the cache");
    }
    let by_only_key = signer.sign(&json!({"alg": "ES256"}), &claims());
    assert_eq!(role(&accounts, &by_only_key), Ok(Role::Owner));
}

#[test]
fn a_token_of_openssl_is_valid() {
    let key = json!({"kty": "RSA", "alg": "RS256", "kid": "r1", "n": RSA_MODULUS, "e": "AQAB"});
    let accounts = accounts(vec![issuer("a", ISSUER, &[key])]);
    assert_eq!(role(&accounts, RSA_TOKEN), Ok(Role::Reader));

    let (signed, signature) = RSA_TOKEN.rsplit_once('.').expect("parts");
    let forged = format!("{signed}.{}", signature.replacen("emt2", "emt3", 1));
    assert_eq!(rule(&accounts, &forged), "the signature is wrong");
}

/// The rule that a token violates.
fn rule(accounts: &AccountSet, token: &str) -> String {
    let denied = role(accounts, token).expect_err("an invalid token");
    assert_eq!(denied.reason, Reason::InvalidAuthenticationInfo, "{denied}");
    assert!(token.is_empty() || !denied.message.contains(token), "repeats the token");
    denied.message.trim_start_matches("authorization: bearer token: ").to_owned()
}

#[test]
fn rejects_invalid_headers_and_signatures() {
    let (signer, stranger) = (Signer::new(), Signer::new());
    let accounts =
        accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1"), Signer::new().jwk("k2")])]);
    let es256 = |extra: Value| {
        let mut header = json!({"alg": "ES256", "kid": "k1"});
        let fields = header.as_object_mut().expect("an object");
        fields.extend(extra.as_object().expect("an object").clone());
        header
    };
    let none = format!("{}.", unsigned(&es256(json!({"alg": "none"})), &claims()));
    let text = unsigned(&es256(json!({"alg": "HS256"})), &claims());
    let public = signer.key.public_key().as_ref();
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, public), text.as_bytes());
    let symmetric = format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac));
    let valid = signer.token(&claims());
    let other_claims = signer.token(&with("roles", json!("reader")));
    let [header, body, _] = valid.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    let spliced = format!("{header}.{body}.{}", other_claims.rsplit('.').next().expect("a part"));

    const ALGORITHM: &str = "`alg` must be RS256 or ES256";
    const FORM: &str = "must be a JSON Web Token, three parts of base64url separated by dots";
    const KEY: &str = "`kid` must be a key of its issuer";
    const WRONG: &str = "the signature is wrong";
    for (token, expected) in [
        (none, ALGORITHM),
        (symmetric, ALGORITHM),
        (signer.sign(&es256(json!({"alg": "es256"})), &claims()), ALGORITHM),
        (signer.sign(&es256(json!({"alg": "RS256"})), &claims()), WRONG),
        (stranger.token(&claims()), WRONG),
        (spliced, WRONG),
        (format!("{header}.{body}."), WRONG),
        (signer.sign(&es256(json!({"kid": "k2"})), &claims()), WRONG),
        (signer.sign(&es256(json!({"kid": "k3"})), &claims()), KEY),
        (signer.sign(&json!({"alg": "ES256"}), &claims()), KEY),
        (
            signer.sign(&es256(json!({"crit": ["b64"], "b64": false})), &claims()),
            "the header must have no `crit`, since no extension is supported",
        ),
        (
            signer.sign(&es256(json!({"crit": null})), &claims()),
            "the header must have no `crit`, since no extension is supported",
        ),
        (signer.sign(&json!({"kid": "k1"}), &claims()), "the header must be JSON with `alg`"),
        (String::new(), FORM),
        ("a.b".to_owned(), FORM),
        (format!("{header}.{body}"), FORM),
        (format!("{valid}="), FORM),
        (
            format!("{header}.{valid}"),
            "the claims must be JSON with texts `iss` and `aud`, and a number `exp`",
        ),
        (signer.token(&with("more", json!("x".repeat(8192)))), "must have at most 8192 bytes"),
    ] {
        assert_eq!(rule(&accounts, &token), expected, "{token}");
    }
    assert_eq!(role(&accounts, &valid), Ok(Role::Owner));
}

#[test]
fn rejects_invalid_claims() {
    const CLAIMS: &str = "the claims must be JSON with texts `iss` and `aud`, and a number `exp`";
    const AUDIENCE: &str = "`aud` must have the audience of gateway.issuers";
    const TIMES: &str = "`exp` and `nbf` must be seconds since 1970";
    const EXPIRED: &str = "the token expired: `exp` must be in the future";
    let signer = Signer::new();
    let accounts = accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1")])]);
    for (name, value, expected) in [
        ("iss", Value::Null, CLAIMS),
        ("iss", json!("https://login.example.com/"), "`iss` must be an issuer in gateway.issuers"),
        ("aud", Value::Null, CLAIMS),
        ("aud", json!("trestle2"), AUDIENCE),
        ("aud", json!(["other"]), AUDIENCE),
        ("aud", json!([]), AUDIENCE),
        ("exp", Value::Null, CLAIMS),
        ("exp", json!("9999999999"), CLAIMS),
        ("exp", json!(1e300), TIMES),
        ("exp", json!(-1), EXPIRED),
        ("exp", json!(NOW - 60), EXPIRED),
        ("exp", json!(9.5e299), TIMES),
        ("nbf", json!(1.7e300), TIMES),
        ("nbf", json!("1"), CLAIMS),
        ("nbf", json!(NOW + 61), "the token is not valid yet: `nbf` is in the future"),
    ] {
        let token = signer.token(&with(name, value.clone()));
        assert_eq!(rule(&accounts, &token), expected, "{name}: {value}");
    }
    for (name, value) in [("exp", json!(NOW - 59)), ("nbf", json!(NOW + 60)), ("nbf", Value::Null)]
    {
        let token = signer.token(&with(name, value.clone()));
        assert_eq!(role(&accounts, &token), Ok(Role::Owner), "{name}: {value}");
    }
}

#[test]
fn a_token_without_a_role_is_denied() {
    let signer = Signer::new();
    let accounts = accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1")])]);
    for roles in [Value::Null, json!("Owner"), json!([]), json!(["own", 1]), json!({"owner": true})]
    {
        let denied = role(&accounts, &signer.token(&with("roles", roles))).expect_err("no role");
        assert_eq!(denied.reason, Reason::AuthorizationPermissionMismatch);
    }
}

#[test]
fn the_time_is_checked_again_in_every_call() {
    let signer = Signer::new();
    let accounts = accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1")])]);
    let token = signer.token(&claims());
    assert_eq!(role_at(&accounts, &token, NOW + 659), Ok(Role::Owner));
    assert_eq!(role_at(&accounts, &token, NOW + 660).expect_err("expired").check, Check::Time);
}

#[test]
fn the_keys_of_one_issuer_verify_no_token_of_another() {
    let (ours, theirs) = (Signer::new(), Signer::new());
    let accounts = accounts(vec![
        issuer("a", ISSUER, &[ours.jwk("k1")]),
        issuer("b", "https://b.example.com", &[theirs.jwk("k1")]),
    ]);
    let of_b = with("iss", json!("https://b.example.com"));

    assert_eq!(role(&accounts, &theirs.token(&of_b)), Ok(Role::Owner));
    assert_eq!(rule(&accounts, &ours.token(&of_b)), "the signature is wrong");
    assert_eq!(rule(&accounts, &theirs.token(&claims())), "the signature is wrong");
}

#[test]
fn a_token_acts_for_the_accounts_of_its_issuer_only() {
    let signer = Signer::new();
    let one =
        Issuer { accounts: vec![account("acme")], ..issuer("a", ISSUER, &[signer.jwk("k1")]) };
    let (several, one) =
        (accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1")])]), accounts(vec![one]));
    let (token, now) = (signer.token(&claims()), Ticks::from_unix(NOW, 0).expect("in range"));
    let reason = |set: &AccountSet, named| {
        let caller = set.issuers().caller(&token, named, set, now);
        caller.map(|caller| caller.account.to_string()).map_err(|denied| denied.reason)
    };

    assert_eq!(reason(&one, None), Ok("acme".to_owned()));
    assert_eq!(reason(&several, None), Err(Reason::InvalidAuthenticationInfo));
    assert_eq!(reason(&several, Some("closed")), Err(Reason::AccountIsDisabled));
    for stranger in ["other", "absent"] {
        assert_eq!(reason(&several, Some(stranger)), Err(Reason::AuthorizationFailure));
    }
}

#[test]
fn a_replaced_key_ends_the_validity_of_a_cached_token() {
    let signer = Signer::new();
    let before = accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1")])]);
    let token = signer.token(&claims());
    assert_eq!(role(&before, &token), Ok(Role::Owner));

    let after = before.clone().with_issuers(Issuers::new(vec![issuer(
        "a",
        ISSUER,
        &[Signer::new().jwk("k1")],
    )]));
    assert_ne!(before, after);
    assert_eq!(rule(&after, &token), "the signature is wrong");
    let none = before.with_issuers(Issuers::default());
    assert_eq!(rule(&none, &token), "`iss` must be an issuer in gateway.issuers");
}

#[test]
fn rejects_key_sets_that_are_malformed_or_have_no_key_for_signatures() {
    let key = Signer::new().jwk("k1");
    let changed = |name: &str, value: Value| {
        let mut key = key.clone();
        key.as_object_mut().expect("an object").insert(name.to_owned(), value);
        json!({ "keys": [key] }).to_string()
    };
    let of = |document: &str| PublicKeys::parse(document.as_bytes()).map(drop);
    let invalid = |index, rule| Err(JwksError::Key { index, rule });

    assert_eq!(of(&json!({ "keys": [key] }).to_string()), Ok(()));
    for empty in [
        json!({"keys": []}).to_string(),
        json!({"keys": [{"kty": "oct", "k": "AAAA"}]}).to_string(),
        changed("use", json!("enc")),
        changed("alg", json!("ES384")),
        changed("crv", json!("P-384")),
    ] {
        assert_eq!(of(&empty), Err(JwksError::Empty), "{empty}");
    }
    assert_eq!(of(&changed("x", json!("AAAA"))), invalid(0, "`x` must be base64url of 32 bytes"));
    let twice = json!({ "keys": [key, key] }).to_string();
    assert_eq!(of(&twice), invalid(1, "`kid` must differ from that of every other key"));
    let short = json!({"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}).to_string();
    assert_eq!(of(&short), invalid(0, "`n` must be base64url of 2048 to 8192 bits"));
    assert_eq!(of(&json!({ "keys": vec![key.clone(); 33] }).to_string()), Err(JwksError::Count));
    assert_eq!(of(&" ".repeat(JWKS_BYTES_MAX + 1)), Err(JwksError::Size));
    assert!(matches!(of("[]"), Err(JwksError::Form(_))));
}

#[test]
fn each_role_permits_more_than_the_one_before_it() {
    let need = |resource_types, permissions| Some(AccountNeed { resource_types, permissions });
    for (need, permitted) in [
        (need("o", &["r"]), &Role::ALL[1..]),
        (need("cs", &["l"]), &Role::ALL[1..]),
        (need("s", &["r"]), &Role::ALL[1..]),
        (need("o", &["aw"]), &Role::ALL[2..]),
        (need("o", &["r", "t"]), &Role::ALL[2..]),
        (need("c", &["cw"]), &Role::ALL[2..]),
        (need("o", &["p"]), &Role::ALL[2..]),
        (need("s", &["w"]), &Role::ALL[3..]),
        (None, &Role::ALL[3..]),
    ] {
        for role in Role::ALL {
            assert_eq!(role.check(need).is_ok(), permitted.contains(&role), "{role}: {need:?}");
        }
    }
    for role in Role::ALL {
        assert_eq!(role.check_letters("r").is_ok(), role != Role::Delegator);
        assert_eq!(role.check_letters("au").is_ok(), role > Role::Reader);
        assert_eq!(Role::parse(role.as_str()), Some(role));
    }
}

#[test]
fn the_user_of_a_token_is_its_object_id_or_its_subject() {
    let signer = Signer::new();
    let accounts = accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1")])]);
    let user = |claims: &Value| {
        let user = accounts.issuers().user(&signer.token(claims));
        user.map(|user| {
            assert_eq!((user.issuer.as_str(), user.role), (ISSUER, Role::Owner));
            user.id
        })
    };
    let mut both = with("sub", json!("s"));
    assert_eq!(user(&both).as_deref(), Ok("s"));
    both["oid"] = json!("o");
    assert_eq!(user(&both).as_deref(), Ok("o"));
    assert_eq!(user(&with("sub", json!("x".repeat(256)))).map(|id| id.len()), Ok(256));
    // A claim with another type is not an absent one.
    both["oid"] = json!(["o"]);
    let invalid = ["", "a b", "a\nb", "\u{e9}", &"x".repeat(257)];
    for claims in invalid.map(|id| with("sub", json!(id))).iter().chain([&both, &claims()]) {
        let denied = user(claims).expect_err("no user");
        assert_eq!(denied.reason, Reason::AuthorizationFailure, "{claims}");
        assert!(role(&accounts, &signer.token(claims)).is_ok(), "a caller all the same: {claims}");
    }
    assert_eq!(accounts.issuers().user("a.b.c").expect_err("none").check, Check::Form);
    for (issuer, account, acts) in
        [(ISSUER, "acme", true), (ISSUER, "other", false), ("https://other", "acme", false)]
    {
        assert_eq!(accounts.issuers().acts_for(issuer, account), acts, "{issuer} {account}");
    }
}

#[test]
fn the_debug_text_of_issuers_has_no_token() {
    let signer = Signer::new();
    let accounts = Arc::new(accounts(vec![issuer("a", ISSUER, &[signer.jwk("k1")])]));
    let token = signer.token(&claims());
    assert!(role(&accounts, &token).is_ok());
    assert!(!format!("{accounts:?}").contains(&token));
}
