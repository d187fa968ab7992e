//! User delegation keys, and the tokens that they sign: by REST, for each role, and what ends them.

use std::time::Duration;

use serde_json::json;
use trestle_identity::{
    account::AccountKey,
    sas::{Delegation, DelegationTerms, Scope, Terms, Time, Version, mint},
};
use trestle_model::time::{Clock as _, SystemClock, Ticks};
use trestle_tests::{
    BlobRest, HANG, RestRequest, RestResponse, Server, exchange, over_account, terms, token,
    try_exchange,
};

use crate::bearer::{Corp, ISSUER, KEY};

const OPERATION: &str = "/acme/?restype=service&comp=userdelegationkey";
/// Another key of an account.
const OTHER_KEY: &str =
    "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg==";

/// The time in `seconds`.
fn at(seconds: i64) -> Time {
    let now = SystemClock.now().to_unix().0;
    Time::at(Ticks::from_unix(now + seconds, 0).unwrap()).unwrap()
}

/// The body of a request for a key that ends in `seconds`.
fn key_info(seconds: i64) -> String {
    let (start, expiry) = (at(-60), at(seconds));
    format!("<KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>")
}

fn requested(service: char, body: &str) -> RestRequest {
    let request = match service {
        'q' => RestRequest::queue("POST", ""),
        _ => RestRequest::blob("POST", ""),
    };
    request.at(OPERATION).scheme(None).with("x-ms-version", "2025-07-05").body(body)
}

/// The response to a request for a key by a caller with this bearer token.
async fn key_of(address: &str, service: char, token: &str, body: &str) -> RestResponse {
    let authorization = format!("Bearer {token}");
    exchange(address, requested(service, body).with("authorization", &authorization)).await
}

/// A token over `scope` that lasts for an hour, signed with the key in a response.
fn signed(key: &RestResponse, scope: Scope, permissions: &str) -> String {
    let time = |field, name| Time::parse(field, key.only(name)).unwrap();
    let is_of_blobs = key.only("SignedService") == "b";
    let terms = Terms {
        version: Version::parse("2025-07-05".to_owned()).unwrap(),
        permissions: permissions.to_owned(),
        start: None,
        expiry: Some(at(3600)),
        policy: None,
        addresses: None,
        protocol: None,
        delegation: Some(Box::new(Delegation {
            key: DelegationTerms {
                user: key.only("SignedOid"),
                issuer: key.only("SignedTid"),
                start: time("skt", "SignedStart"),
                expiry: time("ske", "SignedExpiry"),
                service: key.only("SignedService"),
                version: Version::parse(key.only("SignedVersion")).unwrap(),
            },
            authorized_user: String::new(),
            correlation_id: if is_of_blobs { "c1".to_owned() } else { String::new() },
        })),
        scope,
    };
    let value = AccountKey::decode(&key.only("Value")).unwrap();
    mint(terms, "acme", &value).unwrap().to_query()
}

fn put(path: &str, token: &str) -> RestRequest {
    let request = RestRequest::blob("PUT", "").at(&format!("{path}?{token}")).scheme(None);
    request.with("x-ms-blob-type", "BlockBlob").body("new")
}

fn get(path: &str, token: &str) -> RestRequest {
    let separator = if path.contains('?') { '&' } else { '?' };
    RestRequest::blob("GET", "").at(&format!("{path}{separator}{token}")).scheme(None)
}

/// A server with a container `files` that has a blob `a`, and a queue `jobs`, of the account `acme`; the addresses of
/// its blobs and queues.
async fn filled() -> (Corp, Server, [String; 2]) {
    let corp = Corp::new();
    let server = corp.server();
    let addresses = ["azure_blob", "azure_queue"].map(|name| server.address(name));
    let [blobs, queues] = &addresses;
    let owner = format!("Bearer {}", corp.issuer.token("owner", 600));
    let send = async |address: &str, request: RestRequest| {
        let answer = exchange(address, request.scheme(None).with("authorization", &owner)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    };
    send(blobs, RestRequest::blob("PUT", "").at("/acme/files?restype=container")).await;
    let blob = RestRequest::blob("PUT", "").at("/acme/files/a").body("content");
    send(blobs, blob.with("x-ms-blob-type", "BlockBlob")).await;
    send(queues, RestRequest::queue("PUT", "").at("/acme/jobs")).await;
    (corp, server, addresses)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_role_gets_a_key_whose_tokens_permit_what_the_role_does() {
    let (corp, _server, [blobs, queues]) = filled().await;
    let (blobs, queues) = (&blobs, &queues);
    let denied = (403, "AuthorizationPermissionMismatch");
    for (role, reads, writes) in [
        ("delegator", false, false),
        ("reader", true, false),
        ("contributor", true, true),
        ("owner", true, true),
    ] {
        let token = corp.issuer.token(role, 600);
        let key = key_of(blobs, 'b', &token, &key_info(3600)).await;
        assert_eq!((key.status, key.only("SignedOid").as_str()), (200, "user-1"), "{role}");
        assert_eq!((key.only("SignedTid").as_str(), &*key.only("SignedService")), (ISSUER, "b"));
        assert_eq!(key.only("SignedVersion"), "2025-07-05");
        let check = |answer: RestResponse, is_permitted: bool| match is_permitted {
            true => assert!(matches!(answer.status, 200..=204), "{role}: {answer:?}"),
            false => assert_eq!(answer.failure(), denied, "{role}"),
        };
        let of_blob = signed(&key, Scope::of_blob("files/a"), "rw");
        check(exchange(blobs, get("/acme/files/a", &of_blob)).await, reads);
        check(exchange(blobs, put("/acme/files/a", &of_blob)).await, writes);
        let of_container = signed(&key, Scope::of_container("files"), "rwl");
        let list = "/acme/files?restype=container&comp=list";
        check(exchange(blobs, get(list, &of_container)).await, reads);
        check(exchange(blobs, put("/acme/files/b", &of_container)).await, writes);
        let narrow = signed(&key, Scope::of_container("files"), "l");
        check(exchange(blobs, get("/acme/files/a", &narrow)).await, false);

        let key = key_of(queues, 'q', &token, &key_info(3600)).await;
        assert_eq!(key.only("SignedService"), "q");
        let of_queue = signed(&key, Scope::of_queue("jobs"), "rap");
        let peek = get("/acme/jobs/messages?peekonly=true", &of_queue);
        check(exchange(queues, peek).await, reads);
        let receive = get("/acme/jobs/messages", &of_queue);
        check(exchange(queues, receive).await, writes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_only_for_callers_with_a_bearer_token_and_for_a_week() {
    let rest = BlobRest::start().await;
    let request = || requested('b', &key_info(60));
    let shared_key = RestRequest::blob("POST", "/?restype=service&comp=userdelegationkey");
    let failed = rest.send(shared_key.body(key_info(60))).await;
    assert_eq!(failed.failure(), (403, "AuthorizationFailure"));
    let sas = token(terms(over_account("b", "sco"), "rwdl"));
    let target = format!("{}&{sas}", OPERATION.replace("acme", "devstoreaccount1"));
    let failed = rest.send(request().at(&target)).await;
    assert_eq!(failed.failure(), (403, "AuthorizationFailure"));
    let failed = rest.send(request()).await;
    assert_eq!(failed.failure(), (401, "NoAuthenticationInformation"));

    let corp = Corp::new();
    let server = corp.server();
    let blobs = server.address("azure_blob");
    let owner = corp.issuer.token("owner", 600);
    let (week, day) = (7 * 24 * 3600, 24 * 3600);
    assert_eq!(key_of(&blobs, 'b', &owner, &key_info(week)).await.status, 200);
    for (body, code) in [
        (key_info(week + 600), "InvalidXmlNodeValue"),
        (key_info(-1), "InvalidXmlNodeValue"),
        (
            format!("<KeyInfo><Start>{}</Start><Expiry>{}</Expiry></KeyInfo>", at(day), at(60)),
            "InvalidXmlNodeValue",
        ),
        ("<KeyInfo><Expiry>never</Expiry></KeyInfo>".to_owned(), "InvalidXmlNodeValue"),
        ("<KeyInfo />".to_owned(), "MissingRequiredXmlNode"),
        (String::new(), "InvalidXmlDocument"),
    ] {
        let failed = key_of(&blobs, 'b', &owner, &body).await;
        assert_eq!(failed.failure(), (400, code), "{body}");
    }
    let unnamed = corp.issuer.token_of("owner", 600, &json!({}));
    let failed = key_of(&blobs, 'b', &unnamed, &key_info(60)).await;
    assert_eq!(failed.failure(), (403, "AuthorizationFailure"));
    assert!(failed.text().contains("`oid`"), "{failed:?}");
    let authorization = format!("Bearer {owner}");
    let early = request().with("x-ms-version", "2018-03-28").with("authorization", &authorization);
    assert_eq!(exchange(&blobs, early).await.failure(), (400, "InvalidHeaderValue"));
    let other = request().at(&OPERATION.replace("acme", "other"));
    let other = exchange(&blobs, other.with("authorization", &authorization)).await;
    assert_eq!(other.failure(), (403, "AuthorizationFailure"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_of_one_account_and_service_and_none_of_its_fields_can_be_changed() {
    let (corp, _server, [blobs, queues]) = filled().await;
    let (blobs, queues) = (&blobs, &queues);
    let reader = corp.issuer.token("reader", 600);
    let key = key_of(blobs, 'b', &reader, &key_info(3600)).await;
    let token = signed(&key, Scope::of_container("files"), "r");
    let read = async |token: &str| exchange(blobs, get("/acme/files/a", token)).await;
    assert_eq!(read(&token).await.text(), "content");

    for (from, to) in [
        ("skoid=user-1", "skoid=user-2"),
        ("&sp=r", "&sp=rw"),
        ("scid=c1", "scid=c2"),
        ("skv=2025-07-05", "skv=2026-10-06"),
        ("sv=2025-07-05&", "sv=2024-11-04&"),
        ("sktid=https", "sktid=http"),
    ] {
        let changed = token.replacen(from, to, 1);
        assert_ne!(changed, token);
        assert_eq!(read(&changed).await.failure(), (403, "AuthenticationFailed"), "{to}");
    }
    for (more, field) in [("&sduoid=u", "sduoid"), ("&si=p", "si"), ("&suoid=u", "suoid")] {
        let failed = read(&format!("{token}{more}")).await;
        assert_eq!(failed.failure(), (403, "AuthenticationFailed"));
        assert!(failed.text().contains(&format!("{field}: ")), "{failed:?}");
    }
    // The accounts have the same key.
    let other = exchange(blobs, get("/other/files/a", &token)).await;
    assert_eq!(other.failure(), (403, "AuthenticationFailed"));
    let of_queue = key_of(queues, 'q', &reader, &key_info(3600)).await;
    let of_queue = signed(&of_queue, Scope::of_queue("jobs"), "r");
    let elsewhere = read(&format!("{of_queue}&sr=c")).await;
    assert_eq!(elsewhere.failure(), (403, "AuthenticationFailed"));
    assert!(elsewhere.text().contains("sks: "), "{elsewhere:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_ends_with_its_key_the_key_of_its_account_and_its_issuer() {
    let (corp, server, [blobs, _]) = filled().await;
    let blobs = &blobs;
    let reader = corp.issuer.token("reader", 600);
    let read = async |token: &str| exchange(blobs, get("/acme/files/a", token)).await;
    let fails = async |token: &str, why: &str| {
        let deadline = tokio::time::Instant::now() + HANG;
        loop {
            // A revocation ends what it finds: the response, or its connection.
            let answer = try_exchange(blobs, get("/acme/files/a", token)).await.ok();
            let ended = |it: &RestResponse| it.text().contains("revoked during the call");
            let answer = answer.filter(|answer| answer.status != 200 && !ended(answer));
            if let Some(answer) = answer {
                assert_eq!(answer.failure(), (403, "AuthenticationFailed"));
                assert!(answer.text().contains(why), "{answer:?}");
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "still accepted: {why}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let key = async |seconds| {
        let key = key_of(blobs, 'b', &reader, &key_info(seconds)).await;
        signed(&key, Scope::of_blob("files/a"), "r")
    };
    let lasting = key(3600).await;

    fails(&key(2).await, "the user delegation key has expired").await;

    // The second key of the account derives what it derived as the first.
    corp.configure_keys(&[OTHER_KEY, KEY], &corp.section());
    server.hang_up();
    assert_eq!(read(&lasting).await.status, 200);
    let elsewhere = corp.section().replace("\"acme\"", "\"other\"");
    corp.configure_keys(&[OTHER_KEY, KEY], &elsewhere);
    server.hang_up();
    fails(&lasting, "the issuer of the user").await;
    corp.configure(&corp.section());
    server.hang_up();
    let deadline = tokio::time::Instant::now() + HANG;
    while read(&lasting).await.status != 200 {
        assert!(tokio::time::Instant::now() < deadline, "still rejected");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    corp.configure_keys(&[OTHER_KEY], &corp.section());
    server.hang_up();
    fails(&lasting, "the signature is wrong").await;
}
