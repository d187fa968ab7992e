//! Bodies of any size through the whole HTTP edge, by a protocol with one upload and one download:
//! with constant memory, and with every party that may fail or stall.

mod downloads;
mod protocol;
mod service;
mod uploads;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, future};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use opentelemetry::metrics::noop::NoopMeterProvider;
use tonic::{Status, body::Body};
use tower::{ServiceBuilder, ServiceExt as _};
use trestle_identity::{
    account::{Account, AccountKey, Accounts},
    credentials::Identity,
    sas::{Scope, Terms, Time, Version, mint},
};
use trestle_model::time::{ManualClock, Ticks};
use trestle_rpc::access::AccessLog;
use trestle_rpc::cors::Lookup;
use trestle_rpc::layer::admission::AdmissionLayer;
use trestle_rpc::layer::body_bytes::{BodyBounds, BodyBytesLayer};
use trestle_rpc::layer::deadline::DeadlineLayer;
use trestle_rpc::layer::methods::Methods;
use trestle_rpc::layer::trace::{CallTelemetry, TraceLayer};
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_rpc::propagation::Traces;
use trestle_rpc::upstream::Upstream;

use self::{protocol::Bulk, service::Behaviour};
use crate::{EdgeDeps, edge};

/// What a client sends at a time.
const PIECE: usize = 64 * 1024;
/// A transfer that is far larger than the memory it may use.
const LARGE: usize = 64 * 1024 * 1024;
/// Most bytes of a transfer that may be in memory.
const BUFFERED_MAX: usize = 1024 * 1024;
/// Longest time without progress.
const STALLED_MAX: Duration = Duration::from_secs(60);

/// Counts the bytes that one end of a transfer has sent and the other has received.
#[derive(Debug, Clone, Default)]
struct Flow(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicUsize,
    received: AtomicUsize,
    buffered_max: AtomicUsize,
    is_complete: AtomicBool,
    /// Whether the service uses local streams, as one in this process; else it reads and writes bodies.
    is_local: bool,
}

impl Flow {
    /// Of a service elsewhere, and of one in this process.
    fn both() -> [Self; 2] {
        [false, true].map(|is_local| Self(Arc::new(Counters { is_local, ..Counters::default() })))
    }

    fn is_local(&self) -> bool {
        self.0.is_local
    }

    fn send(&self, bytes: usize) {
        let sent = self.0.sent.fetch_add(bytes, Ordering::SeqCst) + bytes;
        self.0.buffered_max.fetch_max(sent - self.received(), Ordering::SeqCst);
    }

    fn receive(&self, bytes: usize) {
        self.0.received.fetch_add(bytes, Ordering::SeqCst);
    }

    fn sent(&self) -> usize {
        self.0.sent.load(Ordering::SeqCst)
    }

    fn received(&self) -> usize {
        self.0.received.load(Ordering::SeqCst)
    }

    fn buffered_max(&self) -> usize {
        self.0.buffered_max.load(Ordering::SeqCst)
    }

    /// Records that the service has read an upload to its end.
    fn complete(&self) {
        self.0.is_complete.store(true, Ordering::SeqCst);
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete.load(Ordering::SeqCst)
    }

    /// Pieces of so many bytes in all, counted as sent.
    fn pieces(&self, bytes: usize) -> impl Stream<Item = Bytes> + Send + 'static {
        let flow = self.clone();
        futures::stream::iter(0..bytes.div_ceil(PIECE)).map(move |index| {
            let length = PIECE.min(bytes - index * PIECE);
            flow.send(length);
            Bytes::from(vec![u8::try_from(index % 251).expect("a byte"); length])
        })
    }
}

/// The HTTP edge of a service with this behaviour, behind the layers of a gateway that admits four
/// calls.
fn frame(behaviour: Behaviour, flow: &Flow) -> CallService {
    frame_of(behaviour, flow, Accounts::new([Account::development()]))
}

/// The same for these accounts.
fn frame_of(behaviour: Behaviour, flow: &Flow, accounts: Accounts) -> CallService {
    let upstream = Upstream::local(service::service(behaviour, flow.clone()));
    let now = Ticks::from_unix(1_795_262_400, 0).expect("in range");
    let identity = Identity::new(accounts, Arc::new(ManualClock::new(now)), false);
    let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET);
    let methods = methods.expect("the build wrote the descriptors");
    let observe = CallTelemetry {
        meter: opentelemetry::metrics::MeterProvider::meter(&NoopMeterProvider::new(), "test"),
        traces: Traces::default(),
        methods: methods.clone(),
        random: || 7,
        access: AccessLog::off(),
        is_by_method: false,
    };
    let rules = Lookup::new("trestle.test.v1.Bulk", upstream.clone());
    let deps = EdgeDeps { upstream, identity, compresses: false };
    let layers = |calls| {
        let stack = ServiceBuilder::new()
            .layer(TraceLayer::new(observe))
            .layer(DeadlineLayer::new(STALLED_MAX, methods.clone()))
            .layer(AdmissionLayer::new(4, methods.clone()))
            .layer(BodyBytesLayer::new(BodyBounds::of_services(BUFFERED_MAX, STALLED_MAX), methods))
            .service(calls);
        CallService::new(stack)
    };
    edge(Bulk, deps, layers, rules)
}

/// A signature over the account for years around now.
fn token() -> String {
    let time = |field, text: &str| Some(Time::parse(field, text.to_owned()).expect("a time"));
    let terms = Terms {
        version: Version::parse("2019-02-02".to_owned()).expect("a version"),
        permissions: "rwd".to_owned(),
        start: time("st", "2020-01-01T00:00:00Z"),
        expiry: time("se", "2090-01-01T00:00:00Z"),
        policy: None,
        addresses: None,
        protocol: None,
        delegation: None,
        scope: Scope::Account {
            services: "b".to_owned(),
            resource_types: "sco".to_owned(),
            encryption_scope: String::new(),
        },
    };
    let token = mint(terms, "devstoreaccount1", &AccountKey::development());
    token.expect("terms that a token can have").to_query()
}

fn request(method: &str, target: &str, body: Body) -> Request {
    let mut request = Request::new(body);
    *request.method_mut() = method.parse().expect("a method");
    let target = format!("/devstoreaccount1/{target}?{}", token());
    *request.uri_mut() = target.parse().expect("a target");
    let headers = request.headers_mut();
    headers.insert("host", "127.0.0.1".parse().expect("a value"));
    headers.insert("transfer-encoding", "chunked".parse().expect("a value"));
    request
}

/// A body of these pieces.
fn body(pieces: impl Stream<Item = Result<Bytes, Status>> + Send + 'static) -> Body {
    let frames = pieces.map(|piece| piece.map(Frame::data));
    Body::new(StreamBody::new(Box::pin(frames)))
}

async fn send(frame: &CallService, request: Request) -> Response {
    let Ok(response) = frame.clone().oneshot(request).await;
    response
}

/// The error code of a response, from its body.
async fn code(response: Response) -> String {
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8(body.to_vec()).expect("text")
}

/// A stream that remains pending.
fn never<T: Send + 'static>() -> impl Stream<Item = T> + Send {
    futures::stream::once(future::pending())
}
