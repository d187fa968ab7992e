//! REST requests to queues: any request gets a response of the protocol, never a server error, and
//! never success without credentials.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::fuzz_target;
use tower::ServiceExt as _;
use trestle_identity::{
    account::{Account, AccountKey, Accounts},
    credentials::Identity,
    shared_key::{Scheme, SignedRequest},
    spec::QUEUE,
};
use trestle_kv::MemoryEngine;
use trestle_model::time::{ManualClock, Ticks};
use trestle_queue::{QueueDeps, QueueRole};
use trestle_rpc::{quota::StorageQuotas, served_store::StoreProcesses, upstream::Upstream};

const ACCOUNT: &str = "devstoreaccount1";
const METHODS: [&str; 8] = ["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "BREW"];
const PATHS: [&str; 8] = [
    "/devstoreaccount1/",
    "/devstoreaccount1/que",
    "/devstoreaccount1/que/messages",
    "/devstoreaccount1/que/messages/a1a37668-0e97-458b-877e-e88f381fba7c",
    "/devstoreaccount1-secondary/que",
    "/devstoreaccount1-secondary/",
    "/devstoreaccount1/other",
    "/absent/que",
];
const QUERIES: [&str; 10] = [
    "comp=list",
    "comp=metadata",
    "comp=acl",
    "restype=service&comp=properties",
    "restype=service&comp=stats",
    "peekonly=true",
    "popreceipt=AQAAAQAAAAAAAAAAAAjfR-pMdAi6&visibilitytimeout=0",
    "messagettl=-1&visibilitytimeout=5",
    "numofmessages=32",
    "include=metadata&maxresults=1&marker=x",
];
const HEADERS: [&str; 8] = [
    "authorization",
    "x-ms-date",
    "x-ms-version",
    "x-ms-meta-k",
    "x-ms-meta-",
    "content-length",
    "origin",
    "host",
];

#[derive(Debug, Arbitrary)]
struct FuzzRequest {
    method: u8,
    path: u8,
    free_path: Option<String>,
    queries: Vec<u8>,
    free_query: Option<String>,
    headers: Vec<(u8, Vec<u8>)>,
    body: Vec<u8>,
    text: Option<String>,
    signed: Option<bool>,
}

fuzz_target!(|requests: Vec<FuzzRequest>| {
    let clock = Arc::new(ManualClock::new(Ticks::from_unix(1_763_726_400, 0).expect("in range")));
    let engine = MemoryEngine::with_clock(trestle_queue::KEYSPACES, clock.clone());
    let (engine, random) = (Arc::new(engine), || 7);
    let (storage, processes) = (StorageQuotas::default(), StoreProcesses::default());
    let role = {
        let (clock, placement) = (clock.clone(), None);
        QueueRole::new(QueueDeps { engine, clock, random, storage, processes, placement })
    };
    let identity = Identity::new(Accounts::new([Account::development()]), clock, true);
    let upstream = Upstream::local(role.server());
    let deps = trestle_azure::EdgeDeps { upstream, identity, compresses: false };
    let edge = trestle_azure::queues(deps, |calls| calls);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        for input in requests.iter().take(8) {
            let Some(request) = input.request() else {
                continue;
            };
            let is_signed = input.signed.is_some();
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
        if let Some(is_lite) = self.signed {
            let date = HeaderValue::from_static("Fri, 21 Nov 2025 12:00:00 GMT");
            headers.insert("x-ms-date", date);
            headers.remove("authorization");
            headers.entry("content-length").or_insert(HeaderValue::from_static("0"));
            let (path, query) = (uri.path(), uri.query().unwrap_or_default());
            let (scheme, name) =
                if is_lite { (Scheme::Lite, "SharedKeyLite") } else { (Scheme::Full, "SharedKey") };
            let service = &QUEUE;
            let signed = SignedRequest { service, scheme, method, headers: &headers, path, query };
            let signature = signed.sign(ACCOUNT, &AccountKey::development());
            let value = format!("{name} {ACCOUNT}:{}", trestle_fuzz::base64(&signature));
            headers.insert("authorization", value.parse().ok()?);
        }
        let body = match &self.text {
            Some(text) => {
                let text =
                    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
                text.into_bytes()
            }
            None => self.body.clone(),
        };
        let mut request = Request::new(body.into());
        *request.method_mut() = method.parse().ok()?;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Some(request)
    }
}
