//! Where the public key of the development account counts, and where no key does: over sockets, with every header.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderName, Request, Version, header::AUTHORIZATION};
use prost::Message as _;
use tonic::{Code, transport::Endpoint};
use trestle_identity::{
    account::{AccountKey, DEVELOPMENT_KEY},
    shared_key::{Scheme, SignedRequest},
    spec::{BLOB, QUEUE, TABLE},
};
use trestle_proto::service::v1::{Cors, CorsRule, ServiceProperties};
use trestle_proto::table::v1::{
    CreateTableRequest, Table, table_service_client::TableServiceClient,
};
use trestle_tests::{
    BINARY, CallError, Ended, RestRequest, Server, World, bare_command, exchange, framed,
    over_account, path_of, terms, token, web_request,
};

/// Base64 of 32 bytes.
const KEY: &str = "dGhlIGtleSBvZiBhbiBhY2NvdW50IG9mIGEgdGVzdCE=";
const ACME: (&str, &str) = ("TRESTLE__ACCOUNTS__ACME__KEY1", KEY);
/// The development account beside another one.
const ON: (&str, &str) = ("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "loopback");
const HOSTS: &str = "TRESTLE__GATEWAY__DEVELOPMENT_HOSTS";
const DEVELOPMENT: &str = "devstoreaccount1";
const PAGE: &str = "http://page.example";

type SentHeader = (&'static str, &'static str);

/// How many headers are first of requests to a rebound name and through proxies.
const ROUTES: usize = 4;
/// These, then those of pages that no rule allows.
const FOREIGN: [SentHeader; 8] = [
    ("host", "evil.example"),
    ("x-forwarded-for", "203.0.113.7"),
    ("via", "1.1 proxy"),
    ("forwarded", "for=203.0.113.7"),
    ("origin", "http://other.example"),
    ("origin", "null"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-site", "same-site"),
];

fn start(settings: &[(&str, &str)]) -> Server {
    Server::start(&["--ephemeral"], &[&[ACME, ON], settings].concat())
}

fn basic(account: &str, key: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{account}:{key}")))
}

/// No key, and the public one.
fn public_credentials() -> [String; 2] {
    [String::new(), basic(DEVELOPMENT, DEVELOPMENT_KEY)]
}

/// The account of the client allows pages of an origin to write tables.
async fn allow(client: &World, origin: &str) {
    let (allowed_origins, allowed_methods) = (vec![origin.to_owned()], vec!["POST".to_owned()]);
    let max_age = Some(prost_types::Duration::default());
    let rule = CorsRule { allowed_origins, allowed_methods, max_age, ..CorsRule::default() };
    let cors = Some(Cors { rules: vec![rule] });
    client.set_properties(ServiceProperties { cors, ..Default::default() }).await.unwrap();
}

fn creation(name: &str) -> CreateTableRequest {
    CreateTableRequest { table: Some(Table { name: name.to_owned(), ..Table::default() }) }
}

/// Creates a table by gRPC-Web with credentials and another header.
async fn create(world: &World, name: &str, credentials: &str, header: SentHeader) -> CallError {
    let body = framed(&creation(name).encode_to_vec());
    let mut request = web_request(&path_of("CreateTable"), BINARY, body);
    request.headers_mut().insert(header.0, header.1.parse().unwrap());
    if !credentials.is_empty() {
        request.headers_mut().insert(AUTHORIZATION, credentials.parse().unwrap());
    }
    world.web_body(Version::HTTP_11, request).await.error()
}

/// The error has the header, and the table `stolen` does not exist.
async fn is_rejected(world: &World, error: CallError, (name, value): SentHeader) {
    let kind = (Code::Unauthenticated, "AUTHENTICATION_FAILED");
    assert_eq!(error.kind(), kind, "{name}: {value}");
    assert!(error.message.contains(&format!("{name}=`{value}`")), "{error:?}");
    assert_eq!(world.describe("stolen").await.unwrap_err().code, Code::NotFound, "{name}: {value}");
}

async fn foreign_calls_write_nothing(world: &World) {
    for credentials in public_credentials() {
        for header in FOREIGN {
            is_rejected(world, create(world, "stolen", &credentials, header).await, header).await;
        }
    }
}

const EDGES: [&str; 2] = ["azure_table", "azure_queue"];

/// Creates a table or a queue, with a query.
fn write(edge: &str, account: &str, name: &str, query: &str) -> RestRequest {
    if edge == "azure_queue" {
        return RestRequest::queue("PUT", "").at(&format!("/{account}/{name}?{query}"));
    }
    let body = format!(r#"{{"TableName":"{name}"}}"#);
    RestRequest::json("POST", "", &body).at(&format!("/{account}/Tables?{query}"))
}

/// Signs a request with the Shared Key of acme.
fn signed_by_acme(edge: &str, request: RestRequest) -> RestRequest {
    let (parts, _) = request.clone().to_http("localhost").into_parts();
    let (method, headers, scheme) = (parts.method.as_str(), &parts.headers, Scheme::Full);
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let service = match edge {
        "azure_blob" => &BLOB,
        "azure_queue" => &QUEUE,
        _ => &TABLE,
    };
    let signed = SignedRequest { service, scheme, method, headers, path, query };
    let signature = AccountKey::decode(KEY).unwrap().sign(&signed.string_to_sign("acme"));
    let credentials = format!("SharedKey acme:{}", STANDARD.encode(signature));
    let date = headers["x-ms-date"].to_str().unwrap();
    request.scheme(None).with("x-ms-date", date).with("authorization", &credentials)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_with_a_foreign_authority_needs_a_configured_account() {
    let server = start(&[]);
    let endpoint = Endpoint::from_shared(server.endpoint()).unwrap();
    let endpoint = endpoint.origin("http://evil.example:50051".parse().unwrap());
    let channel = endpoint.connect().await.unwrap();
    let world = World::of(server).await;
    let create = async |name: &str, credentials: &str| {
        let mut request = tonic::Request::new(creation(name));
        if !credentials.is_empty() {
            request.metadata_mut().insert("authorization", credentials.parse().unwrap());
        }
        let created = TableServiceClient::new(channel.clone()).create_table(request).await;
        created.map(drop).map_err(CallError::from)
    };
    for credentials in public_credentials() {
        let error = create("stolen", &credentials).await.unwrap_err();
        is_rejected(&world, error, ("host", "evil.example:50051")).await;
    }
    assert_eq!(create("ours", &basic("acme", KEY)).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_web_of_foreign_pages_writes_nothing_whatever_other_accounts_allow() {
    for is_allowed_by_acme in [false, true] {
        let world = World::of(start(&[])).await;
        if is_allowed_by_acme {
            allow(&world.with_header(AUTHORIZATION, &basic("acme", KEY)), "*").await;
        }
        let preflight = Request::options(path_of("CreateTable")).header("origin", PAGE);
        let preflight = preflight.header("access-control-request-method", "POST");
        let answer = world.http(Version::HTTP_11, preflight.body(Bytes::new()).unwrap()).await;
        assert_eq!(answer.unwrap().status() == 200, is_allowed_by_acme);
        foreign_calls_write_nothing(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_web_of_a_page_is_written_by_a_rule_of_the_development_account() {
    let world = World::of(start(&[])).await;
    allow(&world, PAGE).await;
    for (index, credentials) in public_credentials().into_iter().enumerate() {
        let name = format!("page{index}");
        let answer = create(&world, &name, &credentials, ("origin", PAGE)).await;
        assert_eq!(answer.code, Code::Ok, "{answer:?}");
        assert!(world.describe(&name).await.is_ok(), "{name}");
    }
    foreign_calls_write_nothing(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_requests_by_a_shared_key_or_sas_of_the_public_key_write_nothing() {
    let sas = token(terms(over_account("tq", "sco"), "wlc"));
    for (edge, sas) in EDGES.into_iter().flat_map(|edge| [(edge, ""), (edge, sas.as_str())]) {
        let server = start(&[]);
        let scheme = sas.is_empty().then_some(Scheme::Full);
        let address = server.address(edge);
        let send = |request: RestRequest| exchange(&address, request.scheme(scheme));
        for (name, value) in FOREIGN {
            let answer = send(write(edge, DEVELOPMENT, "stolen", sas).with(name, value)).await;
            assert_eq!(answer.failure(), (403, "AuthenticationFailed"), "{edge} {name}: {value}");
            assert!(answer.text().contains(&format!("{name}=`{value}`")), "{answer:?}");
        }
        for (name, value) in FOREIGN.into_iter().skip(ROUTES) {
            let list = || match edge {
                "azure_queue" => RestRequest::queue("GET", &format!("/?comp=list&{sas}")),
                _ => RestRequest::table("GET", &format!("/Tables?{sas}")),
            };
            let refused = send(list().with(name, value)).await;
            let is_of_other_site = name == "sec-fetch-site";
            assert_eq!(refused.status == 403, is_of_other_site, "{edge} {name}: {refused:?}");
            let list = list().with("referer", "http://localhost:3000/");
            let read = send(list.with(name, value)).await;
            assert_eq!(read.status, 200, "{edge} {name}: {value}: {read:?}");
            assert!(!read.text().contains("stolen"), "{read:?}");
            let mut names = read.headers.keys().map(HeaderName::as_str);
            assert!(!names.any(|name| name.starts_with("access-control-")), "{read:?}");
        }
        if edge == "azure_queue" {
            let receive = RestRequest::queue("GET", &format!("/absent/messages?{sas}"));
            let receive = receive.with("sec-fetch-site", "cross-site");
            let received = send(receive.with("referer", "http://localhost:3000/")).await;
            assert_eq!(received.status, 403, "it hides messages: {received:?}");
        }
        let local = send(write(edge, DEVELOPMENT, "local", sas)).await;
        assert_eq!(local.status, 201, "without such a header: {local:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_of_a_configured_account_counts_with_every_header() {
    let server = start(&[]);
    let addresses = EDGES.map(|edge| (edge, server.address(edge)));
    let world = World::of(server).await;
    for (index, header) in FOREIGN.into_iter().enumerate() {
        let web = create(&world, &format!("web{index}"), &basic("acme", KEY), header).await;
        assert_eq!(web.code, Code::Ok, "{header:?}: {web:?}");
        for (edge, address) in &addresses {
            let request = write(edge, "acme", &format!("rest{index}"), "");
            let request = signed_by_acme(edge, request.with(header.0, header.1));
            let answer = exchange(address, request).await;
            assert_eq!(answer.status, 201, "{header:?}: {answer:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_key_counts_for_the_hosts_of_the_setting() {
    let server = start(&[(HOSTS, "Trestle.example, 192.0.2.1")]);
    for edge in EDGES {
        for (name, host, status) in [
            ("first", "TRESTLE.example:10002", 201),
            ("second", "192.0.2.1:10002", 201),
            ("third", "sub.trestle.example", 403),
        ] {
            let request = write(edge, DEVELOPMENT, name, "").with("host", host);
            let answer = exchange(&server.address(edge), request).await;
            assert_eq!(answer.status, status, "{edge} {host}: {answer:?}");
        }
    }
}

#[test]
fn rejects_a_host_of_the_setting_with_a_port_or_a_scheme_at_start() {
    for host in ["trestle.example:10002", "http://trestle.example", "localhost, two words"] {
        let mut command = bare_command(&["serve", "--ephemeral", "--listen", "127.0.0.1:0"]);
        command.env(HOSTS, host);
        let ended = Ended::of(command);
        assert!(ended.code.is_some_and(|code| code != 0), "{host}: {ended:?}");
        assert!(ended.errors.contains("gateway.development_hosts"), "{host}: {ended:?}");
        assert_eq!(ended.output, "", "not ready");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_page_has_no_origin_that_is_of_other_accounts_too() {
    const POLICY: &str = "content-security-policy";
    for (settings, is_on) in [(&[ACME, ON][..], true), (&[ACME], false)] {
        let server = Server::start(&["--ephemeral"], settings);
        let address = server.address("azure_blob");
        let send = async |account: &str, request: RestRequest| match account {
            DEVELOPMENT => exchange(&address, request).await,
            _ => exchange(&address, signed_by_acme("azure_blob", request)).await,
        };
        for account in ["acme", DEVELOPMENT].iter().take(if is_on { 2 } else { 1 }) {
            let at = |method, path| RestRequest::blob(method, "/").at(&format!("/{account}{path}"));
            assert_eq!(send(account, at("PUT", "/pages?restype=container")).await.status, 201);
            for (media, is_page) in [
                ("text/html; charset=utf-8", true),
                ("application/xhtml+xml", true),
                ("image/svg+xml", true),
                ("text/XML", true),
                ("text/plain", false),
                ("application/octet-stream", false),
                ("image/png", false),
            ] {
                let put = at("PUT", "/pages/a").with("x-ms-blob-type", "BlockBlob").body("<p>");
                let put = put.with("x-ms-blob-content-type", media);
                assert_eq!(send(account, put).await.status, 201);
                let page = send(account, at("GET", "/pages/a")).await;
                assert_eq!((page.status, page.text()), (200, "<p>"));
                let policy = page.header(POLICY);
                assert_eq!(policy.starts_with("sandbox"), is_page, "{account}: {media}: {policy}");
                assert!(!policy.contains("same-origin"), "{policy}");
            }
        }
    }
}
