//! Preflight requests, and the headers of responses to pages, by the rules of two accounts.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use prost::Message;
use tonic::{Status, body::Body};
use tower::service_fn;
use trestle_model::name::{ACCOUNT_HEADER, AccountName};
use trestle_proto::{
    service::v1::{Cors, CorsRule, ServiceProperties},
    table::v1::GetServicePropertiesResponse,
};
use trestle_rpc::{cors::Lookup, upstream::Upstream};

use super::{service_cors::ERROR_CODE, *};
use crate::web::tests::stack;

const SERVICE: &str = "trestle.table.v1.TableService";
const PATH: &str = "/trestle.table.v1.TableService/GetTable";
/// The page that the rules of the account `acme` allow, and that of `beta`.
const PAGE: &str = "https://acme.example";
const PAGE_OF_BETA: &str = "https://beta.example";

/// The rules of an account: its own page may call with POST and the header `x-own`.
fn rules_of(account: &str) -> GetServicePropertiesResponse {
    let rule = CorsRule {
        allowed_origins: vec![format!("https://{account}.example")],
        allowed_methods: vec!["POST".to_owned()],
        allowed_headers: vec!["x-own".to_owned()],
        exposed_headers: vec!["x-shown".to_owned()],
        // Seven seconds: the number is the first field of a duration.
        max_age: Message::decode(&[0x08, 7][..]).ok(),
    };
    let cors = Some(Cors { rules: vec![rule] });
    let properties = Some(ServiceProperties { cors, ..Default::default() });
    GetServicePropertiesResponse { properties }
}

/// The service that stores the rules.
fn rules() -> Upstream {
    Upstream::local(service_fn(|request: Request| async move {
        let account = request.headers()[ACCOUNT_HEADER].to_str().expect("a name").to_owned();
        let message = rules_of(&account).encode_to_vec();
        let mut body = BytesMut::new();
        body.put_u8(0);
        body.put_u32(message.len().try_into().expect("short"));
        body.extend_from_slice(&message);
        let mut answer = Status::ok("").into_http::<Body>();
        *answer.body_mut() = Body::new(Full::from(body.freeze()));
        Ok::<_, Infallible>(answer)
    }))
}

/// The gateway of browsers before a service that authenticates each call as this account.
fn gateway_of(account: Option<&'static str>) -> CallService {
    let calls = service_fn(move |request: Request| -> ResponseFuture {
        if let Some((page, account)) = request.extensions().get::<PageAccount>().zip(account) {
            page.0.get_or_init(|| AccountName::parse(account).expect("a name"));
        }
        let mut answer: Response = Status::not_found("no such table").into_http();
        answer.headers_mut().insert("x-shown", HeaderValue::from_static("1"));
        Box::pin(async move { Ok(answer) })
    });
    let stores = vec![CorsStore { service: SERVICE, lookup: Lookup::new(SERVICE, rules()) }];
    let names = ["acme", "beta"].map(|name| AccountName::parse(name).expect("a name"));
    let names: AccountNames = Arc::new(move || names.to_vec());
    cors(&stack(), CallService::new(calls), stores, &names)
}

async fn send(
    account: Option<&'static str>,
    method: Method,
    path: &'static str,
    headers: &[(&'static str, &'static str)],
) -> (StatusCode, HeaderMap, Bytes) {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from_static(path);
    for (name, value) in headers {
        request.headers_mut().append(*name, HeaderValue::from_static(value));
    }
    let Ok(answer) = gateway_of(account).call(request).await;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    (parts.status, parts.headers, body)
}

/// The origin that may read the response to a call of a page.
async fn reader(account: Option<&'static str>, page: &'static str) -> Option<HeaderValue> {
    let headers = [("content-type", "application/grpc-web"), ("origin", page)];
    let (_, headers, _) = send(account, Method::POST, PATH, &headers).await;
    headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN).cloned()
}

const REQUESTED_METHOD: &str = "access-control-request-method";

#[tokio::test]
async fn a_preflight_request_is_allowed_by_the_rules_of_any_account() {
    for page in [PAGE, PAGE_OF_BETA] {
        let sent = [
            ("origin", page),
            (REQUESTED_METHOD, "POST"),
            ("access-control-request-headers", "X-Own"),
        ];

        let (status, headers, _) = send(None, Method::OPTIONS, PATH, &sent).await;

        assert_eq!(status, StatusCode::OK, "{page}");
        assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], page);
        assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_METHODS], "POST");
        assert_eq!(headers[header::ACCESS_CONTROL_MAX_AGE], "7");
        assert!(!headers.contains_key("grpc-status"), "no call");
    }
}

#[tokio::test]
async fn rejects_preflight_requests_that_no_rule_allows() {
    let other = "/trestle.queue.v1.QueueService/GetQueue";
    for (path, sent) in [
        (PATH, vec![("origin", "https://other.example"), (REQUESTED_METHOD, "POST")]),
        (PATH, vec![("origin", "https://ACME.example"), (REQUESTED_METHOD, "POST")]),
        (PATH, vec![("origin", PAGE), (REQUESTED_METHOD, "GET")]),
        (
            PATH,
            vec![
                ("origin", PAGE),
                (REQUESTED_METHOD, "POST"),
                ("access-control-request-headers", "x-a"),
            ],
        ),
        (other, vec![("origin", PAGE), (REQUESTED_METHOD, "POST")]),
        ("/", vec![("origin", PAGE), (REQUESTED_METHOD, "POST")]),
    ] {
        let (status, headers, body) = send(None, Method::OPTIONS, path, &sent).await;

        assert_eq!(status, StatusCode::FORBIDDEN, "{path} {sent:?}");
        assert_eq!(headers[ERROR_CODE], "CorsPreflightFailure", "{sent:?}");
        assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "{sent:?}");
        assert!(body.starts_with(b"CorsPreflightFailure: "), "{body:?}");
    }
}

#[tokio::test]
async fn a_preflight_request_without_its_headers_is_malformed() {
    for sent in [vec![], vec![("origin", PAGE)], vec![(REQUESTED_METHOD, "POST")]] {
        let (status, headers, _) = send(None, Method::OPTIONS, PATH, &sent).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{sent:?}");
        assert_eq!(headers[ERROR_CODE], "InvalidHeaderValue", "{sent:?}");
    }
}

#[tokio::test]
async fn only_pages_of_the_authenticated_account_may_read_its_responses() {
    assert_eq!(reader(Some("acme"), PAGE).await, Some(HeaderValue::from_static(PAGE)));
    assert_eq!(reader(Some("acme"), PAGE_OF_BETA).await, None);
    let beta = Some(HeaderValue::from_static(PAGE_OF_BETA));
    assert_eq!(reader(Some("beta"), PAGE_OF_BETA).await, beta);
    // Rejected before authentication: the rules of every account count.
    assert_eq!(reader(None, PAGE_OF_BETA).await, beta);
    assert_eq!(reader(None, "https://other.example").await, None);
}

#[tokio::test]
async fn a_page_may_read_the_exposed_headers_and_another_client_gets_no_header_of_cors() {
    let kind = ("content-type", "application/grpc-web");
    let (_, page, _) = send(Some("acme"), Method::POST, PATH, &[kind, ("origin", PAGE)]).await;
    assert_eq!(page[header::ACCESS_CONTROL_EXPOSE_HEADERS], "x-shown");
    assert_eq!(page["x-shown"], "1");

    let (status, other, _) = send(Some("acme"), Method::POST, PATH, &[kind]).await;
    assert_eq!(status, StatusCode::OK);
    assert!(other.keys().all(|name| !name.as_str().starts_with("access-control-")));
}
