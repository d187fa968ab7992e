//! A gateway in front of both services, composed as in a process, called without a socket.

use std::{sync::Arc, time::Duration};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, Version};
use http_body_util::{BodyExt as _, Full};
use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use prost::Message;
use tonic::body::Body;
use tower::{ServiceBuilder, ServiceExt as _};
use trestle_gateway::{CallLimits, CallTelemetry, CorsStore, IngressStack, Routes, cors, gateway};
use trestle_identity::{
    account::{Account, Accounts},
    credentials::Identity,
    peer_authentication::{self, PeerTrust},
};
use trestle_kv::MemoryEngine;
use trestle_model::time::{ManualClock, Ticks};
use trestle_proto::{queue::v1 as queue, service::v1 as service, table::v1 as table};
use trestle_queue::QueueRole;
use trestle_rpc::access::AccessLog;
use trestle_rpc::cors::Lookup;
use trestle_rpc::layer::CallService;
use trestle_rpc::layer::call_statistics::StatisticsLayer;
use trestle_rpc::layer::deadline::DeadlineLayer;
use trestle_rpc::layer::methods::Methods;
use trestle_rpc::layer::trace::TraceLayer;
use trestle_rpc::propagation::Traces;
use trestle_rpc::quota::{LiveQuotas, StorageQuotas};
use trestle_rpc::served_store::StoreProcesses;
use trestle_rpc::upstream::Upstream;
use trestle_table::TableRole;

/// The origin whose pages may call.
pub const PAGE: &str = "https://a.example";

/// Codes of gRPC that report a server error: UNKNOWN, INTERNAL, DATA_LOSS.
const DEFECTS: [&str; 3] = ["2", "13", "15"];
const TABLE: &str = "trestle.table.v1.TableService";
const QUEUE: &str = "trestle.queue.v1.QueueService";

/// A gateway and what is behind it: the table `tbl`, the queue `que`, and a rule for [`PAGE`].
pub struct Gateway {
    /// The entry of clients.
    edge: CallService,
    /// The entry of gateways.
    direct: CallService,
    runtime: tokio::runtime::Runtime,
}

/// An answer.
#[derive(Debug)]
pub struct WebResponse {
    /// The status of HTTP.
    pub status: u16,
    /// The code of gRPC, where there is one.
    pub code: Option<String>,
    /// Its message.
    pub text: Option<String>,
    /// The origin whose pages may read it.
    pub page: Option<HeaderValue>,
}

impl WebResponse {
    /// Whether the server reports a defect.
    #[must_use]
    pub fn is_defect(&self) -> bool {
        self.code.as_deref().is_some_and(|code| DEFECTS.contains(&code))
    }
}

impl Default for Gateway {
    fn default() -> Self {
        Self::new()
    }
}

impl Gateway {
    /// Starts both services on stores of their own.
    ///
    /// # Panics
    /// If the services reject the set-up calls.
    #[must_use]
    pub fn new() -> Self {
        let now = Ticks::from_unix(1_763_726_400, 0).expect("in range");
        let clock = Arc::new(ManualClock::new(now));
        let meter = NoopMeterProvider::new().meter("fuzz");
        let role = TableRole::new(trestle_table::TableDeps {
            engine: Arc::new(MemoryEngine::with_clock(trestle_table::KEYSPACES, clock.clone())),
            clock: clock.clone(),
            quotas: LiveQuotas::default(),
            storage: StorageQuotas::default(),
            processes: StoreProcesses::default(),
            meter: meter.clone(),
        });
        let tables = Upstream::local(role.server());
        let engine = MemoryEngine::with_clock(trestle_queue::KEYSPACES, clock.clone());
        let (engine, random) = (Arc::new(engine), || 7);
        let (clock, storage) = (clock.clone(), StorageQuotas::default());
        let role = QueueRole::new(trestle_queue::QueueDeps {
            engine,
            clock: clock.clone(),
            random,
            storage,
            processes: StoreProcesses::default(),
            placement: None,
        });
        let queues = Upstream::local(role.server());
        let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET);
        let methods = methods.expect("the build wrote the descriptors");
        let observe = CallTelemetry {
            meter,
            methods: methods.clone(),
            random,
            traces: Traces { ratio: Some(1.0), ..Traces::default() },
            access: AccessLog::hashed(b"salt"),
            is_by_method: false,
        };
        let second = Duration::from_secs(1);
        let limits = CallLimits {
            calls_max: 16,
            body_bytes_max: 1 << 20,
            message_bytes_max: 1 << 20,
            request_within_max: second,
            answer_within_max: second,
        };
        let routes = Routes::default().with(TABLE, tables.clone()).with(QUEUE, queues.clone());
        let direct = ServiceBuilder::new()
            .layer(TraceLayer::new(observe.clone()))
            .layer(StatisticsLayer::default())
            .layer(DeadlineLayer::new(second, methods))
            .layer(peer_authentication::layer(PeerTrust::default()))
            .service(routes.clone());
        let accounts = Accounts::new([Account::development()]);
        // Not open: every call needs credentials, and no input has any.
        let identity = Identity::new(accounts.clone(), clock, false);
        let stack = IngressStack::new(limits, observe);
        let calls = gateway(&stack, routes, identity);
        let store =
            |service, upstream| CorsStore { service, lookup: Lookup::new(service, upstream) };
        let stores = vec![store(TABLE, tables), store(QUEUE, queues)];
        let names: trestle_gateway::AccountNames =
            Arc::new(move || accounts.now().iter().map(|account| account.name.clone()).collect());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let edge = cors(&stack, calls, stores, &names);
        let direct = CallService::new(direct);
        let made = Self { edge, direct, runtime: runtime.expect("a runtime starts") };
        made.prepare();
        made
    }

    fn prepare(&self) {
        let rule = service::CorsRule {
            allowed_origins: vec![PAGE.to_owned()],
            allowed_methods: vec!["POST".to_owned()],
            allowed_headers: vec!["*".to_owned()],
            max_age: Some(prost_types::Duration { seconds: 5, nanos: 0 }),
            ..Default::default()
        };
        let cors = Some(service::Cors { rules: vec![rule] });
        let properties = Some(service::ServiceProperties { cors, ..Default::default() });
        let set = table::SetServicePropertiesRequest { properties };
        let create = named("tbl");
        let made = queue::Queue { name: "que".to_owned(), ..Default::default() };
        let create_queue = queue::CreateQueueRequest { queue: Some(made) };
        for (service, method, message) in [
            (TABLE, "SetServiceProperties", set.encode_to_vec()),
            (TABLE, "CreateTable", create.encode_to_vec()),
            (QUEUE, "CreateQueue", create_queue.encode_to_vec()),
        ] {
            let path = format!("/{service}/{method}");
            let response = self.send(&self.direct, call(&path, HeaderMap::new(), framed(&message)));
            assert_eq!(response.code.as_deref(), Some("0"), "{method}: {response:?}");
        }
    }

    /// Calls as a client: with this request line, and with these bytes or a message about `tbl` or `que`.
    #[must_use]
    pub fn call(
        &self,
        (method, path, version): (Method, &str, Version),
        headers: HeaderMap,
        body: Option<&[u8]>,
    ) -> WebResponse {
        let is_text = headers.get("content-type").is_some_and(|kind| {
            kind.to_str().is_ok_and(|kind| kind.starts_with("application/grpc-web-text"))
        });
        let body = match body {
            Some(bytes) => Bytes::copy_from_slice(bytes),
            None if is_text => crate::base64(&framed(&message(path))).into(),
            None => framed(&message(path)),
        };
        let mut request = call(path, headers, body);
        *request.method_mut() = method;
        *request.version_mut() = version;
        self.send(&self.edge, request)
    }

    /// Calls as a gateway.
    #[must_use]
    pub fn behind(&self, path: &str, mut headers: HeaderMap) -> WebResponse {
        headers.insert("content-type", HeaderValue::from_static("application/grpc"));
        self.send(&self.direct, call(path, headers, framed(&message(path))))
    }

    fn send(&self, to: &CallService, request: Request<Body>) -> WebResponse {
        self.runtime.block_on(async {
            let Ok(answer) = to.clone().oneshot(request).await;
            let (head, body) = answer.into_parts();
            let body = body.collect().await;
            let body = body.expect("an answer has an end");
            let trailers = body.trailers().cloned().unwrap_or_default();
            let last = trailers_in(&body.to_bytes());
            let field = |name: &str| {
                let field = head.headers.get(name).or_else(|| trailers.get(name));
                let field = field.and_then(|value| value.to_str().ok()).map(str::to_owned);
                let in_body =
                    last.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                field.or_else(|| in_body.map(str::to_owned))
            };
            WebResponse {
                status: head.status.as_u16(),
                code: field("grpc-status"),
                text: field("grpc-message"),
                page: head.headers.get("access-control-allow-origin").cloned(),
            }
        })
    }
}

fn named(table: &str) -> table::CreateTableRequest {
    let table = table::Table { name: table.to_owned(), ..Default::default() };
    table::CreateTableRequest { table: Some(table) }
}

/// A valid message of the method.
fn message(path: &str) -> Vec<u8> {
    // Both contracts have the name in their first field.
    let name = if path.contains(QUEUE) { "que" } else { "tbl" };
    if path.ends_with("GetServiceStats") {
        return Vec::new();
    }
    table::GetTableRequest { table: name.to_owned() }.encode_to_vec()
}

fn framed(message: &[u8]) -> Bytes {
    let mut body = BytesMut::new();
    body.put_u8(0);
    body.put_u32(u32::try_from(message.len()).expect("inputs are small"));
    body.put_slice(message);
    body.freeze()
}

fn call(path: &str, mut headers: HeaderMap, body: Bytes) -> Request<Body> {
    headers.insert("te", HeaderValue::from_static("trailers"));
    let mut request = Request::new(Body::new(Full::new(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().expect("a path");
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers;
    request
}

/// The trailers that an answer of gRPC-Web has in its body, which is binary or base64.
fn trailers_in(body: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.decode(body).ok();
    let mut rest = text.as_deref().unwrap_or(body);
    while let [flag, a, b, c, d, tail @ ..] = rest {
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        let Some((frame, next)) =
            usize::try_from(length).ok().and_then(|length| tail.split_at_checked(length))
        else {
            break;
        };
        if flag & 0x80 != 0 {
            return String::from_utf8_lossy(frame).into_owned();
        }
        rest = next;
    }
    String::new()
}
