//! REST requests to tables: any request gets a response of the protocol, never a server error, and
//! success only if it is signed with the key.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::fuzz_target;
use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use tower::ServiceExt as _;
use trestle_identity::{
    account::{Account, AccountKey, Accounts},
    credentials::Identity,
    shared_key::{Scheme, SignedRequest},
    spec::TABLE,
};
use trestle_kv::MemoryEngine;
use trestle_model::time::{ManualClock, Ticks};
use trestle_rpc::quota::{LiveQuotas, StorageQuotas};
use trestle_rpc::served_store::StoreProcesses;
use trestle_rpc::upstream::Upstream;
use trestle_table::{TableDeps, TableRole};

const ACCOUNT: &str = "devstoreaccount1";
const METHODS: [&str; 9] =
    ["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "MERGE", "BREW"];
const PATHS: [&str; 10] = [
    "/devstoreaccount1/",
    "/devstoreaccount1/Tables",
    "/devstoreaccount1/Tables('tbl')",
    "/devstoreaccount1/tbl",
    "/devstoreaccount1/tbl()",
    "/devstoreaccount1/tbl(PartitionKey='p',RowKey='r')",
    "/devstoreaccount1/$batch",
    "/devstoreaccount1-secondary/tbl",
    "/devstoreaccount1/other",
    "/absent/tbl",
];
const QUERIES: [&str; 9] = [
    "comp=acl",
    "restype=service&comp=properties",
    "restype=service&comp=stats",
    "$filter=x%20eq%201",
    "$select=x,y&$top=1",
    "NextPartitionKey=p&NextRowKey=r",
    "NextTableName=t",
    "$format=application/json;odata=fullmetadata",
    "timeout=5",
];
const HEADERS: [&str; 12] = [
    "authorization",
    "date",
    "x-ms-version",
    "content-type",
    "content-md5",
    "content-length",
    "if-match",
    "prefer",
    "accept",
    "origin",
    "x-http-method",
    "host",
];
const BODIES: [&str; 4] = [
    r#"{"TableName":"tbl"}"#,
    r#"{"PartitionKey":"p","RowKey":"r","x":1,"y":"2"}"#,
    r#"{"x@odata.type":"Edm.Int64","x":"1"}"#,
    "{}",
];

#[derive(Debug, Arbitrary)]
struct FuzzRequest {
    method: u8,
    path: u8,
    free_path: Option<String>,
    queries: Vec<u8>,
    free_query: Option<String>,
    headers: Vec<(u8, Vec<u8>)>,
    body: Body,
    by: Option<Signer>,
}

#[derive(Debug, Arbitrary)]
enum Body {
    Predefined(u8),
    Free(Vec<u8>),
}

#[derive(Debug, Arbitrary)]
struct Signer {
    is_lite: bool,
    /// Changes a byte of the signature, or none.
    tampered: Option<(u8, u8)>,
}

impl Signer {
    fn is_right(&self) -> bool {
        self.tampered.is_none_or(|(_, by)| by == 0)
    }
}

fuzz_target!(|requests: Vec<FuzzRequest>| {
    let clock = Arc::new(ManualClock::new(Ticks::from_unix(1_763_726_400, 0).expect("in range")));
    let engine = Arc::new(MemoryEngine::with_clock(trestle_table::KEYSPACES, clock.clone()));
    let (quotas, meter) = (LiveQuotas::default(), NoopMeterProvider::new().meter("fuzz"));
    let (storage, processes) = (StorageQuotas::default(), StoreProcesses::default());
    let role = {
        let clock = clock.clone();
        TableRole::new(TableDeps { engine, clock, quotas, storage, processes, meter })
    };
    let identity = Identity::new(Accounts::new([Account::development()]), clock, true);
    let upstream = Upstream::local(role.server());
    let deps = trestle_azure::EdgeDeps { upstream, identity, compresses: false };
    let edge = trestle_azure::tables(deps, |calls| calls);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        for input in requests.iter().take(8) {
            let Some(request) = input.request() else {
                continue;
            };
            let is_signed = input.by.as_ref().is_some_and(Signer::is_right);
            let is_preflight = request.method() == http::Method::OPTIONS;
            let request = request.map(|body| tonic::body::Body::new(Full::new(body)));
            let Ok(answer) = edge.clone().oneshot(request).await;
            let status = answer.status().as_u16();
            let code = answer.headers().get("x-ms-error-code").cloned();
            assert!(status != 500, "{input:?}: {code:?}");
            assert!(status < 300 || code.is_some(), "{input:?}: {status} without a code");
            assert!(is_signed || is_preflight || status >= 400, "{input:?}: {status}");
            let body = answer.into_body().collect().await;
            assert!(body.is_ok(), "{input:?}: the response is truncated");
        }
    });
});

impl FuzzRequest {
    /// The request; none if it is not valid HTTP.
    fn request(&self) -> Option<Request<Bytes>> {
        let method = METHODS[usize::from(self.method) % METHODS.len()];
        let fixed = PATHS[usize::from(self.path) % PATHS.len()];
        let path = self.free_path.as_deref().unwrap_or(fixed);
        let mut query: Vec<_> = self
            .queries
            .iter()
            .take(4)
            .map(|query| QUERIES[usize::from(*query) % QUERIES.len()])
            .collect();
        query.extend(self.free_query.as_deref());
        let query = query.join("&");
        let uri: http::Uri = format!("{path}?{query}").parse().ok()?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HEADERS[usize::from(*name) % HEADERS.len()];
            headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).ok()?);
        }
        if let Some(signer) = &self.by {
            headers.entry("content-length").or_insert(HeaderValue::from_static("0"));
            headers.entry("content-type").or_insert(HeaderValue::from_static("application/json"));
            sign(&mut headers, signer, method, &uri)?;
        }
        let body = match &self.body {
            Body::Predefined(index) => {
                Bytes::from_static(BODIES[usize::from(*index) % BODIES.len()].as_bytes())
            }
            Body::Free(bytes) => Bytes::copy_from_slice(bytes),
        };
        let mut request = Request::new(body);
        *request.method_mut() = method.parse().ok()?;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Some(request)
    }
}

/// Signs as clients do, or nearly.
fn sign(headers: &mut HeaderMap, signer: &Signer, method: &str, uri: &http::Uri) -> Option<()> {
    let date = "Fri, 21 Nov 2025 12:00:00 GMT";
    headers.insert("x-ms-date", HeaderValue::from_static(date));
    headers.remove("authorization");
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let (scheme, name) =
        if signer.is_lite { (Scheme::Lite, "SharedKeyLite") } else { (Scheme::Full, "SharedKey") };
    let signed = SignedRequest { service: &TABLE, scheme, method, headers, path, query };
    let mut signature = signed.sign(ACCOUNT, &AccountKey::development());
    if let Some((at, by)) = signer.tampered {
        signature[usize::from(at) % signature.len()] ^= by;
    }
    let value = format!("{name} {ACCOUNT}:{}", trestle_fuzz::base64(&signature));
    headers.insert("authorization", value.parse().ok()?);
    Some(())
}
