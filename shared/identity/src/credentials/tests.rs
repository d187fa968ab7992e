//! Every form of credentials, and every malformed one.

use std::net::SocketAddr;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, header::ORIGIN};
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt as _;
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::{headers::AUTHORIZATION_BYTES_MAX, *};
use crate::{
    account::{Account, AccountKey, AccountSet, DEVELOPMENT_KEY},
    caller::{Authority, Caller},
    sas::{Denied, VerifiedTokens},
};
use trestle_model::fault::Reason;
use trestle_model::name::AccountName;
use trestle_model::time::{SystemClock, Ticks};
use trestle_rpc::peer::PeerTls;

/// 2026-01-01T12:00:00Z.
const NOON: i64 = 1_767_268_800;

fn key(byte: u8) -> String {
    STANDARD.encode([byte; 64])
}

fn account(name: &str, keys: &[u8], is_disabled: bool) -> Account {
    let name = AccountName::parse(name).expect("a name");
    let keys = keys.iter().map(|byte| AccountKey::decode(&key(*byte)).expect("a key"));
    Account { name, keys: keys.collect(), is_disabled, allows_public_access: false }
}

fn accounts() -> AccountSet {
    let accounts =
        [Account::development(), account("acme", &[1, 2], false), account("closed", &[3], true)];
    accounts.into_iter().collect()
}

fn basic_of(account: &str, key: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{account}:{key}")))
}

fn call<'a>(headers: &'a HeaderMap, peer: &'a Peer, is_open: bool) -> Call<'a> {
    Call { headers, peer, is_open, allows_plaintext_keys: false, path: "" }
}

/// Credentials sent from an address.
fn sent_from(address: &str, headers: &[(&'static str, &str)]) -> Result<Caller, Denied> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
    }
    let address: SocketAddr = address.parse().expect("an address");
    let peer = Peer { address, tls: Some(PeerTls::default()) };
    let call = call(&map, &peer, true);
    let now = Ticks::from_unix(NOON, 0).expect("in range");
    call.caller(&accounts(), &VerifiedTokens::default(), now).map(|caller| Caller::clone(&caller))
}

fn sent(headers: &[(&'static str, &str)]) -> Result<Caller, Denied> {
    sent_from("203.0.113.9:4711", headers)
}

fn reason(headers: &[(&'static str, &str)]) -> Option<Reason> {
    sent(headers).err().map(|denied| denied.reason)
}

#[test]
fn either_key_authenticates_the_owner_of_its_account() {
    for byte in [1, 2] {
        let value = basic_of("acme", &key(byte));
        let caller = sent(&[("authorization", &value)]).expect("a caller");
        assert_eq!(caller, Caller::owner(AccountName::parse("acme").expect("a name")));
    }
    let value = basic_of("acme", &key(1)).replace("Basic", "bAsIc");
    assert!(sent(&[("authorization", &value), ("trestle-account", "acme")]).is_ok());
}

#[test]
fn a_key_in_plain_text_from_another_machine_is_rejected_unless_allowed() {
    let denied = |address: &str, tls: Option<PeerTls>, allows_plaintext_keys, value: &str| {
        let headers: HeaderMap =
            [(AUTHORIZATION, HeaderValue::from_str(value).expect("a value"))].into_iter().collect();
        let peer = Peer { address: address.parse().expect("an address"), tls };
        let call = Call { allows_plaintext_keys, ..call(&headers, &peer, true) };
        let now = Ticks::from_unix(NOON, 0).expect("in range");
        call.caller(&accounts(), &VerifiedTokens::default(), now).err()
    };
    let (there, own) = ("203.0.113.9:1", basic_of("acme", &key(1)));
    let tls = || Some(PeerTls::default());

    let rejected = denied(there, None, false, &own).expect("denied");

    assert_eq!(rejected.reason, Reason::AuthorizationProtocolMismatch);
    assert!(rejected.message.contains("gateway.allow_plaintext_keys"), "{rejected}");
    let wrong = basic_of("acme", &key(9));
    assert_eq!(denied(there, None, false, &wrong), Some(rejected), "the key is not checked");
    for (address, tls, is_allowed) in [
        (there, tls(), false),
        (there, None, true),
        ("127.0.0.1:1", None, false),
        ("[::1]:1", None, false),
    ] {
        assert_eq!(denied(address, tls, is_allowed, &own), None, "{address}");
    }
    let signature = denied(there, None, false, "SharedAccessSignature sv=1&sig=x").expect("denied");
    assert_ne!(signature.reason, Reason::AuthorizationProtocolMismatch, "no key is sent");
}

#[test]
fn errors_do_not_disclose_which_accounts_exist() {
    let denied = |account: &str, byte| {
        sent(&[("authorization", &basic_of(account, &key(byte)))]).expect_err("denied")
    };

    let wrong_key = denied("acme", 9);

    assert_eq!(wrong_key.reason, Reason::AuthenticationFailed);
    assert_eq!(wrong_key, denied("absent", 9));
    assert_eq!(wrong_key, denied("closed", 9), "a wrong key of a disabled account");
    assert_eq!(wrong_key, denied("Not A Name", 1));
    let elsewhere = basic_of("acme", &key(1));
    let named = sent(&[("authorization", &elsewhere), ("trestle-account", "absent")]);
    assert_eq!(wrong_key, named.expect_err("denied"));
    assert_eq!(denied("closed", 3).reason, Reason::AccountIsDisabled);
}

#[test]
fn calls_without_credentials_are_the_development_account_from_loopback_only() {
    let development = Caller::owner(AccountName::development());
    for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert_eq!(sent_from(address, &[]).as_ref(), Ok(&development), "{address}");
    }
    for address in ["203.0.113.9:1", "[2001:db8::1]:1", "0.0.0.0:1", "[::]:1"] {
        let denied = sent_from(address, &[]).expect_err(address);
        assert_eq!(denied.reason, Reason::NoAuthenticationInformation, "{address}");
    }
    let local = |name: &str| sent_from("127.0.0.1:1", &[("trestle-account", name)]);
    assert_eq!(local("devstoreaccount1"), Ok(development));
    assert_eq!(local("acme").expect_err("denied").reason, Reason::NoAuthenticationInformation);
}

#[test]
fn rejects_calls_without_credentials_when_they_are_required() {
    let (headers, peer) = (HeaderMap::new(), Peer::in_process());
    let is_accepted = |is_open, accounts: &AccountSet| {
        let now = Ticks::from_unix(NOON, 0).expect("in range");
        call(&headers, &peer, is_open).caller(accounts, &VerifiedTokens::default(), now).is_ok()
    };
    let others: AccountSet = [account("acme", &[1], false)].into_iter().collect();

    assert!(is_accepted(true, &accounts()));
    assert!(!is_accepted(false, &accounts()));
    assert!(!is_accepted(true, &others), "the development account does not exist");
}

#[test]
fn rejects_malformed_headers_without_repeating_them() {
    let long = format!("SharedAccessSignature {}", "a".repeat(AUTHORIZATION_BYTES_MAX));
    let bad_key = basic_of("acme", "not base64!");
    let no_colon = format!("Basic {}", STANDARD.encode("acme"));
    let not_text = format!("Basic {}", STANDARD.encode([0xFF, b':', 0xFE]));
    for value in [
        "",
        " ",
        "secret",
        "Basic",
        "Basic ",
        "Basic %%%",
        "Bearer secret",
        "SharedKey acme:secret",
        "SharedAccessSignature",
        "SharedAccessSignature ",
        "SharedAccessSignature secret",
        "SharedAccessSignature sv=2019-02-02&sig=secret",
        "SharedAccessSignaturé secret",
        &long,
        &bad_key,
        &no_colon,
        &not_text,
    ] {
        // From loopback too: wrong credentials are not treated as absent ones.
        let denied = sent_from("127.0.0.1:1", &[("authorization", value)]).expect_err(value);
        assert_eq!(denied.reason, Reason::InvalidAuthenticationInfo, "{value}");
        assert!(!denied.message.contains("secret"), "{}", denied.message);
    }
    let good = basic_of("acme", &key(1));
    let twice = [("authorization", good.as_str()), ("authorization", good.as_str())];
    assert_eq!(reason(&twice), Some(Reason::InvalidAuthenticationInfo));
    for name in ["", "ab", "Acme", "ac me", "acmé", &"a".repeat(25)] {
        let named = [("authorization", good.as_str()), ("trestle-account", name)];
        assert_eq!(reason(&named), Some(Reason::InvalidAuthenticationInfo), "{name}");
    }
    let named = ("trestle-account", "acme");
    let named = [("authorization", good.as_str()), named, named];
    assert_eq!(reason(&named), Some(Reason::InvalidAuthenticationInfo));
}

#[test]
fn a_token_authenticates_a_caller_of_the_account_that_signed_it() {
    // The signature of other implementations for these fields.
    let token = "st=2026-01-01T00%3A00%3A00Z&se=2036-01-01T00%3A00%3A00Z&sp=raud&sv=2019-02-02\
                 &tn=MyTable&sig=V%2BPw4sMiRz%2BRn85tY8GqS7W2A40isFItVAjCjzruwO0%3D";
    let value = format!("SharedAccessSignature {token}");

    let caller = sent(&[("authorization", &value)]).expect("a caller");

    assert_eq!(caller.account, AccountName::development());
    assert!(matches!(caller.authority, Authority::Resource(_)), "{caller:?}");
    let named = |name| reason(&[("authorization", &value), ("trestle-account", name)]);
    assert_eq!(named("devstoreaccount1"), None);
    assert_eq!(named("acme"), Some(Reason::AuthenticationFailed));
    assert_eq!(named("absent"), Some(Reason::AuthenticationFailed));
}

#[tokio::test]
async fn public_key_and_no_key_do_not_count_for_pages_and_public_hosts() {
    let accounts = Accounts::new([Account::development(), account("acme", &[1], false)]);
    let identity = Identity::new(accounts, Arc::new(SystemClock), true);
    let served = |_: Request| -> ResponseFuture { Box::pin(async { Ok(Response::default()) }) };
    let service = layer(identity).layer(service_fn(served));
    let call = async |headers: &[(&'static str, &str)], page: Option<AllowedPage>| {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::POST;
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header value"));
        }
        if let Some(page) = page {
            request.extensions_mut().insert(page);
        }
        let Ok(answer) = service.clone().oneshot(request).await;
        Status::from_header_map(answer.headers()).map_or(Code::Ok, |status| status.code())
    };
    let public = basic_of("devstoreaccount1", DEVELOPMENT_KEY);
    let own = basic_of("acme", &key(1));
    let (local, foreign) = (("host", "localhost:50051"), ("host", "evil.example:50051"));
    let (public, own) = (("authorization", &*public), ("authorization", &*own));
    let page = ("origin", "https://app.example");

    for credentials in [&[][..], &[public]] {
        let with = |more: &[(&'static str, &'static str)]| [credentials, more].concat();
        assert_eq!(call(&with(&[local]), None).await, Code::Ok);
        assert_eq!(call(&with(&[local, page]), Some(AllowedPage)).await, Code::Ok);
        for denied in [with(&[foreign]), with(&[local, page]), with(&[local, ("via", "1.1 a")])] {
            assert_eq!(call(&denied, None).await, Code::Unauthenticated, "{denied:?}");
        }
        let denied = with(&[foreign, page]);
        assert_eq!(call(&denied, Some(AllowedPage)).await, Code::Unauthenticated);
    }
    assert_eq!(call(&[own, foreign, page, ("via", "1.1 a")], None).await, Code::Ok);
}

#[tokio::test]
async fn caller_headers_of_a_client_are_replaced() {
    let name = AccountName::parse("acme").expect("a name");
    let key = STANDARD.encode([7; 64]);
    let keys = vec![AccountKey::decode(&key).expect("a key")];
    let account =
        Account { name: name.clone(), keys, is_disabled: false, allows_public_access: false };
    let accounts = Accounts::new([account]);
    let identity = Identity::new(accounts, Arc::new(SystemClock), false);
    let service = layer(identity).layer(service_fn(|request: Request| -> ResponseFuture {
        let request = request.map(|_body| ());
        let headers = request.headers().clone();
        let caller = Caller::of(&tonic::Request::from_http(request)).expect("a caller");
        let mut answer = Response::new(Body::empty());
        *answer.headers_mut() = headers;
        answer.extensions_mut().insert(caller);
        Box::pin(async { Ok(answer) })
    }));
    let call = async |headers: &[(&'static str, &str)]| {
        let mut request = Request::new(Body::empty());
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).expect("a header value");
            request.headers_mut().insert(*name, value);
        }
        let Ok(answer) = service.clone().oneshot(request).await;
        answer
    };

    let credentials = format!("Basic {}", STANDARD.encode(format!("acme:{key}")));
    let grant = ("trestle-grant-bin", "AAAA");
    let claims = [("trestle-account", "acme"), grant, ("authorization", credentials.as_str())];
    let response = call(&claims).await;
    let without = call(&[grant]).await;
    let without = Status::from_header_map(without.headers()).expect("a status");

    let caller = response.extensions().get::<Arc<Caller>>().map(|caller| &**caller);
    assert_eq!(caller, Some(&Caller::owner(name)));
    assert_eq!(without.code(), Code::Unauthenticated);
    let reason = without.get_error_details().error_info().map(|info| info.reason.clone());
    assert_eq!(reason.as_deref(), Some("NO_AUTHENTICATION_INFORMATION"));
    assert!(claims.iter().all(|(name, _)| !response.headers().contains_key(*name)));
}

#[tokio::test]
async fn the_account_of_a_rejected_page_is_known_and_that_of_a_wrong_key_is_not() {
    let accounts = Accounts::new([Account::development()]);
    let identity = Identity::new(accounts, Arc::new(SystemClock), true);
    let inner = service_fn(|_| -> ResponseFuture { Box::pin(async { Ok(Response::default()) }) });
    let service = layer(identity).layer(inner);
    let page_account = async |authorization: Option<&'static str>| {
        let page = PageAccount::default();
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::POST;
        request.headers_mut().insert(ORIGIN, HeaderValue::from_static("http://a.example"));
        if let Some(value) = authorization {
            request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static(value));
        }
        request.extensions_mut().insert(page.clone());
        let Ok(answer) = service.clone().oneshot(request).await;
        assert_eq!(answer.headers()["grpc-status"], "16", "{authorization:?}");
        page.0.get().cloned()
    };

    assert_eq!(page_account(None).await, Some(AccountName::development()));
    assert_eq!(page_account(Some("Basic YWNtZTprZXk=")).await, None);
}

#[test]
fn only_reads_of_blobs_of_an_account_that_allows_it_need_no_credentials() {
    let open = Account { allows_public_access: true, ..account("open", &[1], false) };
    let disabled = Account { is_disabled: true, ..account("disabled", &[1], false) };
    let disabled = Account { allows_public_access: true, ..disabled };
    let accounts: AccountSet = [open, disabled, account("acme", &[1], false)].into_iter().collect();
    let peer = Peer { address: "203.0.113.9:1".parse().expect("an address"), tls: None };
    let caller = |named: Option<&str>, path: &str| {
        let mut headers = HeaderMap::new();
        if let Some(named) = named {
            headers.insert("trestle-account", named.parse().expect("a value"));
        }
        let call = Call { path, ..call(&headers, &peer, true) };
        call.caller(&accounts, &VerifiedTokens::default(), SystemClock.now()).ok()
    };
    let read = "/trestle.blob.v1.BlobService/ReadBlob";
    let found = caller(Some("open"), read).expect("permitted");
    assert_eq!((found.account.as_str(), &found.authority), ("open", &Authority::Anonymous));
    for (named, path) in [
        (None, read),
        (Some("acme"), read),
        (Some("disabled"), read),
        (Some("absent"), read),
        (Some("open"), "/trestle.blob.v1.BlobService/WriteBlob"),
        (Some("open"), "/trestle.blob.v1.BlobService/Absent"),
        (Some("open"), "/trestle.blob.v1.BlobServiceX/ReadBlob"),
        (Some("open"), "/trestle.table.v1.TableService/GetEntity"),
        (Some("open"), "/trestle.queue.v1.QueueService/PeekMessages"),
        (Some("open"), ""),
    ] {
        assert_eq!(caller(named, path), None, "{named:?} {path}");
    }
}
