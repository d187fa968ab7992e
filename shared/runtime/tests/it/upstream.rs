//! Upstreams: which calls are retried, with what deadline, how many calls wait, and when connections
//! are added. Against real listeners.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use http_body_util::BodyExt as _;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, body::Body};
use tower::{Service as _, service_fn};
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_rpc::upstream::{Endpoint, Remote, RemoteOptions, Upstream};
use trestle_runtime::{
    health::Health,
    health_reflection::HealthReflectionRouter,
    serve::{Bounds, Connections, Drained, Listener, bind, serve},
};

use crate::listening::BOUNDS;

const SERVICE: &str = "trestle.table.v1.TableService";
/// A unary method that writes.
const WRITE: &str = "InsertEntity";
/// A method with a streamed response.
const STREAM: &str = "StreamEntities";
/// No step of these tests takes longer.
const SOON: Duration = Duration::from_secs(120);

/// A role at an address.
struct Role {
    address: SocketAddr,
    health: Health,
    stop: CancellationToken,
    serving: JoinHandle<Drained>,
}

async fn role(listener: TcpListener, calls: CallService, bounds: Bounds) -> Role {
    let address = listener.local_addr().unwrap();
    let health = Health::of(&[SERVICE]).await;
    let descriptors = trestle_proto::REFLECTION_DESCRIPTOR_SET;
    let edge = HealthReflectionRouter::new(&health, descriptors, &[], SOON, calls).unwrap();
    let stop = CancellationToken::new();
    let connections = Connections::at_most(100);
    let listener = Listener { socket: listener, tls: None, connections, bounds };
    let serving = serve(listener, CallService::new(edge), stop.clone());
    Role { address, health, stop, serving: tokio::spawn(serving) }
}

async fn free_address() -> TcpListener {
    bind("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

fn upstream(address: SocketAddr, options: RemoteOptions) -> Upstream {
    let endpoint = Endpoint::parse(&format!("http://{address}")).unwrap();
    let options = RemoteOptions { service: Some(SERVICE), ..options };
    Upstream::Remote(Remote::new(endpoint, options))
}

fn request(method: &str, limit: Option<&'static str>) -> Request {
    let mut request = Request::new(Body::new(http_body_util::Full::new("a message".into())));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = format!("/{SERVICE}/{method}").parse().unwrap();
    if let Some(limit) = limit {
        request.headers_mut().insert("grpc-timeout", limit.parse().unwrap());
    }
    request
}

async fn code(mut upstream: Upstream, request: Request) -> Code {
    let Ok(answer) = timeout(SOON, upstream.call(request)).await.expect("an answer");
    Status::from_header_map(answer.headers()).expect("a status").code()
}

fn unavailable() -> Response {
    let fault = Fault::new(Reason::ServerUnavailable, "not now");
    fault.retry_after(Duration::from_millis(30)).into_status(DOMAIN).into_http()
}

/// One attempt, as a role received it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Received {
    limit: Option<String>,
    body: Vec<u8>,
}

/// A role that is unavailable for this many attempts, and the attempts that it received.
async fn rejecting(times: usize) -> (Role, Arc<Mutex<Vec<Received>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&received);
    let calls = service_fn(move |request: Request| {
        let log = Arc::clone(&log);
        async move {
            let limit = request.headers().get("grpc-timeout");
            let limit = limit.map(|limit| limit.to_str().unwrap().to_owned());
            let body = request.into_body().collect().await.unwrap().to_bytes().to_vec();
            let mut log = log.lock().unwrap();
            log.push(Received { limit, body });
            let answer = if log.len() > times { Status::ok("").into_http() } else { unavailable() };
            Ok::<Response, Infallible>(answer)
        }
    });
    (role(free_address().await, CallService::new(calls), BOUNDS).await, received)
}

fn millis(received: &Received) -> u64 {
    let limit = received.limit.as_ref().expect("a limit");
    limit.strip_suffix('m').expect("milliseconds").parse().unwrap()
}

#[tokio::test]
async fn retries_a_rejected_call_whole_with_the_rest_of_its_deadline() {
    let (role, received) = rejecting(2).await;
    let upstream = upstream(role.address, RemoteOptions::default());

    let code = code(upstream, request(WRITE, Some("9S"))).await;

    assert_eq!(code, Code::Ok);
    let received = received.lock().unwrap();
    assert_eq!(received.len(), 3);
    assert!(received.iter().all(|received| received.body == b"a message"), "{received:?}");
    assert!(millis(&received[1]) <= 8_970, "{received:?}");
    assert!(millis(&received[2]) <= millis(&received[1]) - 30, "{received:?}");
}

#[tokio::test]
async fn sends_our_deadline_with_unary_calls_that_have_none() {
    for (method, is_limited) in [(WRITE, true), (STREAM, false)] {
        let (role, received) = rejecting(1).await;
        let answer_within = Duration::from_secs(7);
        let options = RemoteOptions { answer_within, ..RemoteOptions::default() };

        code(upstream(role.address, options), request(method, None)).await;

        let received = received.lock().unwrap();
        assert_eq!(received.len(), 2);
        assert_eq!(received[1].limit.is_some(), is_limited, "{method}: {received:?}");
        assert!(!is_limited || millis(&received[1]) < 7_000, "{received:?}");
    }
}

#[tokio::test]
async fn attempts_a_call_three_times_and_not_past_its_deadline() {
    for (limit, attempts) in [(None, 3), (Some("20m"), 1)] {
        let (role, received) = rejecting(usize::MAX).await;
        let upstream = upstream(role.address, RemoteOptions::default());

        let code = code(upstream, request(WRITE, limit)).await;

        assert_eq!(code, Code::Unavailable);
        assert_eq!(received.lock().unwrap().len(), attempts, "{limit:?}");
    }
}

/// A role whose calls wait for permits, and that counts the calls that have arrived.
async fn gated(
    listener: TcpListener,
    bounds: Bounds,
) -> (Role, Arc<Semaphore>, mpsc::UnboundedReceiver<()>) {
    let (arrive, arrived) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let calls = service_fn(move |_: Request| {
        arrive.send(()).ok();
        let gate = Arc::clone(&opened);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok::<Response, Infallible>(Status::ok("").into_http())
        }
    });
    (role(listener, CallService::new(calls), bounds).await, gate, arrived)
}

#[tokio::test]
async fn adds_connections_while_every_one_is_full() {
    const CALLS: usize = 30;
    let bounds = Bounds { streams_max: 12, ..BOUNDS };
    let (role, gate, mut arrived) = gated(free_address().await, bounds).await;
    // One connection has room for ten calls beside those that it makes for itself.
    let upstream = upstream(role.address, RemoteOptions::default());

    let calls: Vec<_> =
        (0..CALLS).map(|_| tokio::spawn(code(upstream.clone(), request(WRITE, None)))).collect();
    for number in 0..CALLS {
        let arrival = timeout(SOON, arrived.recv()).await;
        assert!(arrival.is_ok(), "only {number} calls arrived");
    }
    gate.add_permits(CALLS);

    for call in calls {
        assert_eq!(call.await.unwrap(), Code::Ok);
    }
}

#[tokio::test]
async fn calls_wait_for_an_unreachable_role_up_to_a_limit() {
    let reserved = free_address().await;
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let options =
        RemoteOptions { wait: SOON, waiting_max: 3, connections: 2, ..RemoteOptions::default() };
    let upstream = upstream(address, options);
    let rejected = Arc::new(AtomicUsize::new(0));

    let calls: Vec<_> = (0..5)
        .map(|_| {
            let (upstream, rejected) = (upstream.clone(), Arc::clone(&rejected));
            tokio::spawn(async move {
                let code = code(upstream, request(WRITE, None)).await;
                rejected.fetch_add(usize::from(code == Code::Unavailable), Ordering::Relaxed);
                code
            })
        })
        .collect();
    while rejected.load(Ordering::Relaxed) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (_role, gate, _arrived) = gated(bind(address).await.unwrap(), BOUNDS).await;
    gate.add_permits(5);

    let mut codes = Vec::new();
    for call in calls {
        codes.push(call.await.unwrap());
    }
    assert_eq!(codes.iter().filter(|code| **code == Code::Ok).count(), 3, "{codes:?}");
}

#[tokio::test]
async fn rejects_calls_at_once_after_the_wait() {
    let reserved = free_address().await;
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let wait = Duration::from_millis(300);
    let upstream = upstream(address, RemoteOptions { wait, ..RemoteOptions::default() });

    let began = tokio::time::Instant::now();
    assert_eq!(code(upstream.clone(), request(WRITE, None)).await, Code::Unavailable);
    let first = began.elapsed();
    for _ in 0..100 {
        assert_eq!(code(upstream.clone(), request(WRITE, None)).await, Code::Unavailable);
    }
    let all = began.elapsed();

    assert!(first >= wait, "{first:?}");
    // A hundred waits would take thirty seconds.
    assert!(all < 100 * wait, "{all:?}");
}

#[tokio::test]
async fn sends_calls_to_a_role_that_reports_not_serving_until_it_closes() {
    let (role, gate, _arrived) = gated(free_address().await, BOUNDS).await;
    gate.add_permits(2);
    let upstream = upstream(role.address, RemoteOptions::default());
    assert_eq!(code(upstream.clone(), request(WRITE, None)).await, Code::Ok);

    role.health.drain().await;
    assert_eq!(code(upstream.clone(), request(WRITE, None)).await, Code::Ok);
    role.stop.cancel();
    role.health.end_watches().await;
    let drained = timeout(SOON, role.serving).await.expect("the connections end").unwrap();

    assert_eq!(drained, Drained::Clean);
    assert_eq!(code(upstream, request(WRITE, None)).await, Code::Unavailable);
}

/// Outcomes of calls that may be retried, as the metric counts them.
#[tokio::test]
async fn counts_retries_and_calls_that_the_retry_budget_rejected() {
    let registry = prometheus::Registry::new();
    let reader = opentelemetry_prometheus::exporter().with_registry(registry.clone());
    let meters = SdkMeterProvider::builder().with_reader(reader.build().unwrap()).build();
    let counted = |outcome: &str| {
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let line = text.lines().find(|line| {
            line.starts_with("trestle_rpc_client_retries_total")
                && line.contains(&format!("trestle_retry_outcome=\"{outcome}\""))
                && line.contains(&format!("trestle_upstream_service=\"{SERVICE}\""))
        });
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap())
    };
    let options = RemoteOptions { meter: Some(meters.meter("test")), ..RemoteOptions::default() };
    let (role, received) = rejecting(usize::MAX).await;
    let upstream = upstream(role.address, options);

    code(upstream.clone(), request(WRITE, Some("9S"))).await;
    assert_eq!([counted("sent"), counted("too_often")], [2, 1]);
    code(upstream.clone(), request(WRITE, Some("20m"))).await;
    assert_eq!(counted("too_late"), 1);
    let calls = (0..200).map(|_| code(upstream.clone(), request(WRITE, None)));
    let codes = futures::future::join_all(calls).await;

    assert!(codes.iter().all(|code| *code == Code::Unavailable));
    assert!(counted("over_budget") > 0);
    let attempts = received.lock().unwrap().len();
    assert_eq!(attempts, 202 + counted("sent"), "each attempt but the first of a call is counted");
    let ended = ["too_often", "too_late", "over_budget"].map(counted);
    assert_eq!(ended.iter().sum::<usize>(), 202, "{ended:?}");
}
