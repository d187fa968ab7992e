//! CORS over gRPC-Web, by the rules of the service properties.

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version, header};
use prost::Message as _;
use tonic::Code;
use trestle_proto::service::v1::{Cors, CorsRule, ServiceProperties};
use trestle_proto::table::v1::{GetEntityRequest, ListTablesRequest, SetServicePropertiesRequest};
use trestle_tests::{
    BINARY, HANG, Server, TEXT, WebAnswer, World, framed, path_of, scenario, web_request,
};

scenario!(
    preflight_is_answered_by_the_first_matching_rule,
    no_rules_reject_every_origin,
    cors_headers_are_set_for_matching_origins_only,
    exposed_headers_are_listed_by_name,
    rejects_a_preflight_without_a_requested_method,
    changed_rules_apply,
);

/// A key of accounts made for a test: base64 of 32 bytes.
const KEY: &str = "dGhlIGtleSBvZiBhbiBhY2NvdW50IG9mIGEgdGVzdCE=";
/// Another, which no account has.
const WRONG: &str = "bm90IHRoZSBrZXkgb2YgYW55IGFjY291bnQsIGF0IGE=";

fn texts(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// A rule; its lists are separated by blanks.
fn rule(origins: &str, methods: &str, allowed: &str, exposed: &str, age: i64) -> CorsRule {
    CorsRule {
        allowed_origins: texts(origins),
        allowed_methods: texts(methods),
        allowed_headers: texts(allowed),
        exposed_headers: texts(exposed),
        max_age: Some(prost_types::Duration { seconds: age, nanos: 0 }),
    }
}

async fn set_rules(world: &World, rules: Vec<CorsRule>) {
    let cors = Some(Cors { rules });
    let change = ServiceProperties { cors, ..Default::default() };
    world.set_properties(change).await.unwrap();
}

/// A preflight.
async fn preflight(world: &World, headers: &[(&'static str, &str)]) -> Response<Bytes> {
    let mut request = Request::options(path_of("GetEntity")).body(Bytes::new()).unwrap();
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    world.http(Version::HTTP_11, request).await.unwrap()
}

async fn preflight_of(world: &World, origin: &str, method: &str, headers: &str) -> Response<Bytes> {
    let mut requested = vec![("origin", origin), ("access-control-request-method", method)];
    if !headers.is_empty() {
        requested.push(("access-control-request-headers", headers));
    }
    preflight(world, &requested).await
}

/// The headers of the response to a call of a page; the call itself fails, which does not matter.
async fn call_of(world: &World, origin: &str) -> HeaderMap {
    let mut request = web_request(&path_of("GetEntity"), BINARY, framed(b""));
    request.headers_mut().insert(header::ORIGIN, origin.parse().unwrap());
    world.web_body(Version::HTTP_11, request).await.headers
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

async fn preflight_is_answered_by_the_first_matching_rule(world: &World) {
    let rules = vec![
        rule("http://a http://A.example", "POST GET", "content-type x-grpc-web x-user-*", "", 60),
        rule("http://a", "POST PUT", "*", "", 0),
        rule("http://b", "GET", "*", "", 5),
        rule("*", "DELETE", "authorization", "", 7),
        rule("null https://c:8443", "MERGE POST", "", "", 1),
    ];
    set_rules(world, rules).await;
    for (origin, method, headers, age) in [
        ("http://a", "POST", "content-type,x-grpc-web", Some("60")),
        ("http://a", "POST", "", Some("60")),
        ("http://a", "GET", "Content-Type, X-Grpc-Web", Some("60")),
        ("http://A.example", "POST", "x-user-agent,X-USER-anything,x-user-", Some("60")),
        ("http://a", "POST", ", content-type ,,", Some("60")),
        // The first rule decides, although the second would allow it.
        ("http://a", "POST", "content-type,authorization", None),
        ("http://a", "POST", "x-user", None),
        ("http://a", "POST", "*", None),
        // Its method is only in the second.
        ("http://a", "PUT", "x-any,authorization", Some("0")),
        ("http://a", "put", "", None),
        ("http://a", "MERGE", "", None),
        // Origins count with case, scheme, port, and in whole.
        ("http://a.example", "POST", "", None),
        ("https://a", "POST", "", None),
        ("http://a:80", "POST", "", None),
        ("http://a/", "POST", "", None),
        ("http://a,http://b", "POST", "", None),
        ("http://b", "POST", "", None),
        ("http://b", "GET", "anything", Some("5")),
        ("http://elsewhere", "DELETE", "authorization", Some("7")),
        ("http://elsewhere", "DELETE", "x", None),
        ("null", "POST", "", Some("1")),
        ("null", "POST", "content-type", None),
        ("https://c:8443", "MERGE", "", Some("1")),
    ] {
        let answer = preflight_of(world, origin, method, headers).await;

        let (what, found) = (format!("{origin} {method} {headers}"), answer.headers());
        let shown = text(found, "access-control-allow-origin");
        match age {
            Some(age) => {
                assert_eq!(answer.status(), StatusCode::OK, "{what}");
                assert_eq!(shown, origin, "{what}");
                assert_eq!(text(found, "access-control-allow-methods"), method, "{what}");
                assert_eq!(text(found, "access-control-allow-headers"), headers, "{what}");
                assert_eq!(text(found, "access-control-max-age"), age, "{what}");
                let trusted = text(found, "access-control-allow-credentials");
                assert_eq!(trusted == "true", method != "DELETE", "{what}: not for any origin");
            }
            None => {
                assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{what}");
                assert_eq!(text(found, "x-ms-error-code"), "CorsPreflightFailure", "{what}");
                let granted = |name: &str| name.starts_with("access-control-");
                assert!(!found.keys().any(|name| granted(name.as_str())), "{what}");
                assert!(answer.body().starts_with(b"CorsPreflightFailure: "), "{what}");
            }
        }
    }
}

async fn no_rules_reject_every_origin(world: &World) {
    let answer = preflight_of(world, "http://a", "POST", "").await;
    let called = call_of(world, "http://a").await;

    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert_eq!(text(&called, "access-control-allow-origin"), "");
}

async fn cors_headers_are_set_for_matching_origins_only(world: &World) {
    let named = rule("http://a http://b", "POST", "", "x-request-id", 60);
    let any = rule("*", "POST", "", "x-request-id", 60);
    set_rules(world, vec![rule("http://c", "PUT", "", "", 60), named]).await;

    let shown = call_of(world, "http://b").await;
    assert_eq!(text(&shown, "access-control-allow-origin"), "http://b");
    assert_eq!(text(&shown, "access-control-allow-credentials"), "true");
    assert_eq!(text(&shown, "access-control-expose-headers"), "x-request-id");
    assert_eq!(text(&shown, "vary"), "origin");
    for origin in ["http://B", "http://c", "null"] {
        let unexposed = call_of(world, origin).await;
        assert_eq!(text(&unexposed, "access-control-allow-origin"), "", "{origin}");
        assert_eq!(text(&unexposed, "access-control-expose-headers"), "", "{origin}");
    }

    set_rules(world, vec![any]).await;
    let shown = until(async || {
        let shown = call_of(world, "http://elsewhere").await;
        shown.contains_key("access-control-allow-origin").then_some(shown)
    });
    let shown = shown.await;
    assert_eq!(text(&shown, "access-control-allow-origin"), "*");
    assert_eq!(text(&shown, "access-control-allow-credentials"), "");
    assert_eq!(text(&shown, "vary"), "");
}

async fn exposed_headers_are_listed_by_name(world: &World) {
    let exposed = "Grpc-Status x-request-* x-absent* no:name";
    set_rules(world, vec![rule("http://a", "POST", "", exposed, 0)]).await;

    let shown = call_of(world, "http://a").await;

    // A prefix is replaced by the matching headers of the response.
    assert_eq!(text(&shown, "access-control-expose-headers"), "grpc-status,x-request-id");
}

async fn rejects_a_preflight_without_a_requested_method(world: &World) {
    set_rules(world, vec![rule("*", "POST", "*", "", 0)]).await;
    let (origin, method) = (("origin", "http://a"), ("access-control-request-method", "POST"));
    for headers in [&[][..], &[origin], &[method]] {
        let answer = preflight(world, headers).await;

        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{headers:?}");
        assert_eq!(text(answer.headers(), "x-ms-error-code"), "InvalidHeaderValue", "{headers:?}");
    }
    // Lists may be several headers, and each counts.
    let part = |list| ("access-control-request-headers", list);
    let answer = preflight(world, &[origin, method, part("a"), part("b")]).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

async fn changed_rules_apply(world: &World) {
    let allowed =
        async || preflight_of(world, "http://a", "POST", "x").await.status() == StatusCode::OK;
    assert!(!allowed().await);

    set_rules(world, vec![rule("http://a", "POST", "x", "", 0)]).await;
    until(async || allowed().await.then_some(())).await;
    set_rules(world, Vec::new()).await;
    until(async || (!allowed().await).then_some(())).await;
}

/// Polls until the result is some.
async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < HANG, "not applied in time");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A gateway with two accounts, each with a rule for a site of its own, and none for others.
async fn world_of_two_accounts() -> World {
    let settings =
        [("TRESTLE__ACCOUNTS__ALPHA__KEY1", KEY), ("TRESTLE__ACCOUNTS__BETA__KEY1", KEY)];
    let world = World::of(Server::start(&["--ephemeral"], &settings)).await;
    for (account, origin) in [("alpha", "http://a"), ("beta", "http://b")] {
        let rules = vec![rule(origin, "POST", "authorization", "", 0)];
        let properties = ServiceProperties { cors: Some(Cors { rules }), ..Default::default() };
        let change = SetServicePropertiesRequest { properties: Some(properties) };
        let answer = signed(&world, (account, KEY), None, "SetServiceProperties", &change).await;
        assert_eq!(answer.trailers["grpc-status"], "0", "{:?}", answer.error());
    }
    world
}

/// A call with the key of an account, from a page or not.
async fn signed(
    world: &World,
    (account, key): (&str, &str),
    origin: Option<&str>,
    method: &str,
    message: &impl prost::Message,
) -> WebAnswer {
    let mut request = web_request(&path_of(method), BINARY, framed(&message.encode_to_vec()));
    let credentials = format!("Basic {}", STANDARD.encode(format!("{account}:{key}")));
    request.headers_mut().insert(header::AUTHORIZATION, credentials.parse().unwrap());
    if let Some(origin) = origin {
        request.headers_mut().insert(header::ORIGIN, origin.parse().unwrap());
    }
    world.web_body(Version::HTTP_11, request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_of_the_calling_account_apply() {
    let world = world_of_two_accounts().await;
    for (origin, status) in [
        ("http://a", StatusCode::OK),
        ("http://b", StatusCode::OK),
        ("http://c", StatusCode::FORBIDDEN),
    ] {
        // The account is not authenticated yet.
        let answer = preflight_of(&world, origin, "POST", "authorization").await;
        assert_eq!(answer.status(), status, "{origin}");
    }

    let list = ListTablesRequest::default();
    for (account, key, origin, code, shown) in [
        ("alpha", KEY, "http://a", Code::Ok, true),
        ("alpha", KEY, "http://b", Code::Ok, false),
        ("alpha", KEY, "http://c", Code::Ok, false),
        ("beta", KEY, "http://b", Code::Ok, true),
        ("beta", KEY, "http://a", Code::Ok, false),
        // Rejected before authentication: pages that any account allows may read the error.
        ("alpha", WRONG, "http://a", Code::Unauthenticated, true),
        ("alpha", WRONG, "http://b", Code::Unauthenticated, true),
        ("absent", KEY, "http://b", Code::Unauthenticated, true),
        ("alpha", WRONG, "http://c", Code::Unauthenticated, false),
    ] {
        let answer = signed(&world, (account, key), Some(origin), "ListTables", &list).await;

        let what = format!("{account} {origin} {code:?}");
        assert_eq!(answer.error().code, code, "{what}");
        let allowed = text(&answer.headers, "access-control-allow-origin");
        assert_eq!(allowed, if shown { origin } else { "" }, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_rules_reject_every_origin() {
    let table = Server::start(&["--roles", "table", "--ephemeral"], &[]);
    let endpoint = table.endpoint();
    let settings = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
    let world = World::of(Server::start(&["--roles", "gateway"], &settings)).await;
    set_rules(&world, vec![rule("*", "POST", "*", "", 60)]).await;
    table.kill();

    let answer = preflight_of(&world, "http://a", "POST", "").await;
    let message = GetEntityRequest::default().encode_to_vec();
    let mut request = web_request(&path_of("GetEntity"), BINARY, framed(&message));
    request.headers_mut().insert(header::ORIGIN, "http://a".parse().unwrap());
    let called = world.web_body(Version::HTTP_11, request).await;

    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert_ne!(called.trailers["grpc-status"], "0");
    assert!(!called.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_process_serves_no_cors() {
    let world = World::of(Server::start(&["--roles", "table", "--ephemeral"], &[])).await;

    let mut request = web_request(&path_of("ListTables"), TEXT, "AAAAAAA=");
    request.headers_mut().insert(header::ORIGIN, "http://a".parse().unwrap());
    for method in [Method::POST, Method::OPTIONS] {
        *request.method_mut() = method.clone();
        let answer = world.http(Version::HTTP_2, request.clone()).await;
        let shown =
            |answer: &Response<Bytes>| answer.headers().contains_key("access-control-allow-origin");
        assert!(!answer.as_ref().is_ok_and(shown), "{method}: {answer:?}");
    }
}
