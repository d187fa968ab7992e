//! Headers of calls through the layers of a gateway, as gRPC, as gRPC-Web and from pages, and
//! through those of a role that trusts its gateway: with any headers the response is no server
//! error, no call succeeds without credentials, and no grant is widened.
#![no_main]

use arbitrary::Arbitrary;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use libfuzzer_sys::fuzz_target;
use trestle_fuzz::{Gateway, PAGE, WebResponse};

const HEADERS: [&str; 17] = [
    "grpc-timeout",
    "traceparent",
    "tracestate",
    "trestle-queue",
    "trestle-account",
    "trestle-grant-bin",
    "authorization",
    "origin",
    "access-control-request-method",
    "access-control-request-headers",
    "x-request-id",
    "host",
    "grpc-encoding",
    "grpc-accept-encoding",
    "x-grpc-web",
    "accept",
    "baggage",
];
const VALUES: [&str; 16] = [
    "1S",
    "99999999H",
    "0n",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "devstoreaccount1",
    "que",
    PAGE,
    "http://a.example",
    "null",
    "POST",
    "content-type,x-grpc-web",
    "gzip",
    // A grant over a table, one over a queue, and one that was denied.
    "EhkKBXRhYmxlGgN0YWIiAXIyCAoDc3BrEgFh",
    "Eg8KBXF1ZXVlGgNxdWUiAXI",
    "EhsKBXF1ZXVlGgNxdWUiAXIqCgoBcCIFCE4SAW0",
    "SharedAccessSignature sv=2021-12-02&sp=r&sig=AAAA",
];
const TYPES: [&str; 8] = [
    "application/grpc",
    "application/grpc+proto",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
    "application/grpc-web+json",
    "text/plain",
    "application/json",
];
const PATHS: [&str; 8] = [
    "/trestle.table.v1.TableService/GetTableAccessPolicies",
    "/trestle.table.v1.TableService/StreamEntities",
    "/trestle.table.v1.TableService/GetServiceStats",
    "/trestle.queue.v1.QueueService/PeekMessages",
    "/trestle.queue.v1.QueueService/GetQueueAccessPolicies",
    "/trestle.table.v1.TableService/None",
    "/none/None",
    "/",
];

#[derive(Debug, Arbitrary)]
struct Input {
    path: u8,
    kind: u8,
    method: How,
    headers: Vec<(u8, Value)>,
    /// Bytes instead of a well-framed message.
    body: Option<Vec<u8>>,
    is_http1: bool,
}

#[derive(Debug, Arbitrary)]
enum How {
    Call,
    Preflight,
    Get,
    /// Without a gateway.
    Behind,
}

#[derive(Debug, Arbitrary)]
enum Value {
    Predefined(u8),
    Free(Vec<u8>),
    Base64(Vec<u8>),
    Limit(u32, u8),
}

impl Value {
    fn header(&self) -> Option<HeaderValue> {
        match self {
            Self::Predefined(index) => {
                Some(HeaderValue::from_static(VALUES[usize::from(*index) % VALUES.len()]))
            }
            Self::Free(bytes) => HeaderValue::from_bytes(bytes).ok(),
            Self::Base64(bytes) => trestle_fuzz::base64(bytes).parse().ok(),
            Self::Limit(number, unit) => {
                let unit = char::from(b"HMSmunx"[usize::from(*unit) % 7]);
                format!("{number}{unit}").parse().ok()
            }
        }
    }
}

/// Whether the protocol allows these time limits.
fn is_limit(headers: &HeaderMap) -> bool {
    let values: Vec<_> = headers.get_all("grpc-timeout").iter().collect();
    let is_well_formed = |value: &HeaderValue| {
        let (unit, digits) = value.as_bytes().split_last().unwrap_or((&b' ', &[]));
        (1..=8).contains(&digits.len())
            && digits.iter().all(u8::is_ascii_digit)
            && b"HMSmun".contains(unit)
    };
    values.len() <= 1 && values.into_iter().all(is_well_formed)
}

fuzz_target!(|input: Input| {
    let path = PATHS[usize::from(input.path) % PATHS.len()];
    let kind = TYPES[usize::from(input.kind) % TYPES.len()];
    let mut headers = HeaderMap::new();
    for (name, value) in input.headers.iter().take(24) {
        if let Some(value) = value.header() {
            let name = HEADERS[usize::from(*name) % HEADERS.len()];
            headers.append(HeaderName::from_static(name), value);
        }
    }
    let sent = headers.clone();
    let gateway = Gateway::new();
    if matches!(input.method, How::Behind) {
        let response = gateway.behind(path, headers);
        assert!(response.code.is_some(), "{input:?}: {response:?}");
        assert!(!response.is_defect(), "{input:?}: {response:?}");
        if sent.contains_key("trestle-grant-bin") && path.ends_with("AccessPolicies") {
            assert_ne!(response.code.as_deref(), Some("0"), "{input:?}: the owner's alone");
        }
        if !is_limit(&sent) {
            assert_eq!(response.code.as_deref(), Some("3"), "{input:?}: {response:?}");
        }
        return;
    }
    headers.insert("content-type", HeaderValue::from_static(kind));
    let method = match input.method {
        How::Preflight => Method::OPTIONS,
        How::Get => Method::GET,
        How::Call | How::Behind => Method::POST,
    };
    let is_call = method == Method::POST && matches!(input.kind % 8, 0 | 1) && !input.is_http1;
    let is_preflight = method == Method::OPTIONS;

    let version = if input.is_http1 { Version::HTTP_11 } else { Version::HTTP_2 };
    let response = gateway.call((method, path, version), headers, input.body.as_deref());

    let WebResponse { status, code, page, .. } = &response;
    assert!(*status < 500, "{input:?}: {response:?}");
    assert!(!is_call || code.is_some(), "{input:?}: {response:?}");
    if input.body.is_none() {
        assert!(!response.is_defect(), "{input:?}: {response:?}");
    }
    assert_ne!(code.as_deref(), Some("0"), "{input:?}: let in without credentials");
    let origin = sent.get("origin").map(HeaderValue::as_bytes);
    if page.is_some() {
        assert_eq!(origin, Some(PAGE.as_bytes()), "{input:?}: {response:?}");
    }
    assert!(!is_preflight || *status < 300 || page.is_none(), "{input:?}: {response:?}");
    if is_call && !is_limit(&sent) {
        assert_eq!(code.as_deref(), Some("3"), "{input:?}: {response:?}");
    }
});
