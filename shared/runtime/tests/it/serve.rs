//! The gRPC listener: calls over a socket, and its shutdown.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http::HeaderMap;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, body::Body};
use tower::{Service as _, service_fn};
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_rpc::peer::Peer;
use trestle_rpc::upstream::{Endpoint, Remote, RemoteOptions, Upstream};
use trestle_runtime::serve::{Bounds, Drained, bind, bind_shared, serve};

use crate::listening::{BOUNDS, listen};

struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<Drained>,
    /// Notified when a call arrives.
    arrived: Arc<Notify>,
    /// Releases calls.
    finish: Arc<Notify>,
}

/// A server whose calls wait until the test releases them.
async fn server(bounds: Bounds) -> Server {
    server_for(2, bounds).await
}

/// The same, for this many connections.
async fn server_for(connections_max: usize, bounds: Bounds) -> Server {
    let (arrived, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (arrival, gate) = (Arc::clone(&arrived), Arc::clone(&finish));
    let service = CallService::new(service_fn(move |_: Request| {
        let (arrival, gate) = (Arc::clone(&arrival), Arc::clone(&gate));
        async move {
            arrival.notify_one();
            gate.notified().await;
            Ok::<Response, Infallible>(Status::ok("").into_http())
        }
    }));
    let (listener, address) = listen(connections_max, bounds).await;
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, service, stop.clone()));
    Server { address, stop, serving, arrived, finish }
}

/// Calls over a connection of its own.
fn call(address: SocketAddr) -> JoinHandle<Code> {
    let answer = headers_of_call(address);
    tokio::spawn(async move { Status::from_header_map(&answer.await.unwrap()).unwrap().code() })
}

/// The same, for the headers of the response.
fn headers_of_call(address: SocketAddr) -> JoinHandle<HeaderMap> {
    let endpoint = Endpoint::parse(&format!("http://{address}")).unwrap();
    let remote = Remote::new(endpoint, RemoteOptions::default());
    let mut request = Request::new(Body::empty());
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = "/a.v1.A/Get".parse().unwrap();
    tokio::spawn(async move {
        let Ok(answer) = Upstream::Remote(remote).call(request).await;
        answer.headers().clone()
    })
}

/// HPACK would store each date of an old connection, and compare the date of every response with all of them.
#[tokio::test]
async fn responses_over_http2_have_no_date() {
    let server = server(BOUNDS).await;
    let headers = headers_of_call(server.address);
    server.arrived.notified().await;

    server.finish.notify_waiters();

    let headers = headers.await.unwrap();
    assert_eq!(Status::from_header_map(&headers).unwrap().code(), Code::Ok);
    assert!(!headers.contains_key("date"), "{headers:?}");
}

#[tokio::test]
async fn a_stopped_listener_finishes_calls_in_flight_and_refuses_connections() {
    let server = server(BOUNDS).await;
    let in_flight = call(server.address);
    server.arrived.notified().await;

    server.stop.cancel();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let late = call(server.address).await.unwrap();
    server.finish.notify_waiters();

    assert_eq!(late, Code::Unavailable);
    assert_eq!(in_flight.await.unwrap(), Code::Ok);
    assert_eq!(server.serving.await.unwrap(), Drained::Clean);
}

#[tokio::test]
async fn cuts_a_call_after_the_drain_bound_with_an_unknown_outcome() {
    let bounds = Bounds { drain_within: Duration::from_millis(50), ..BOUNDS };
    let server = server(bounds).await;
    let in_flight = call(server.address);
    server.arrived.notified().await;

    server.stop.cancel();

    assert_eq!(server.serving.await.unwrap(), Drained::Cut(1));
    assert_eq!(in_flight.await.unwrap(), Code::Unknown);
}

#[tokio::test]
async fn closes_connections_beyond_the_limit() {
    let server = server(BOUNDS).await;
    let first = call(server.address);
    server.arrived.notified().await;
    let second = call(server.address);
    server.arrived.notified().await;

    let third = tokio::time::timeout(Duration::from_secs(120), call(server.address)).await;
    server.finish.notify_waiters();

    assert_eq!(third.expect("it was let in").unwrap(), Code::Unavailable);
    assert_eq!(first.await.unwrap(), Code::Ok);
    assert_eq!(second.await.unwrap(), Code::Ok);
}

/// The bytes of clients that never open HTTP/2: none, or a part of the preface.
const UNOPENED: [&[u8]; 2] = [b"", b"PRI * HTTP/2.0"];

async fn connected(address: SocketAddr, sends: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(sends).await.unwrap();
    client
}

#[tokio::test]
async fn unopened_connections_do_not_delay_the_shutdown() {
    let server = server_for(3, BOUNDS).await;
    let [nothing, part] = UNOPENED;
    let _silent = connected(server.address, nothing).await;
    let _stalled = connected(server.address, part).await;
    // Connections are accepted in order: when this call arrives, the others are in.
    let last = call(server.address);
    server.arrived.notified().await;

    server.stop.cancel();
    server.finish.notify_one();
    let ended = tokio::time::timeout(BOUNDS.drain_within / 2, server.serving).await;

    assert_eq!(last.await.unwrap(), Code::Ok);
    assert_eq!(ended.expect("it ends at once").unwrap(), Drained::Clean);
}

#[tokio::test(start_paused = true)]
async fn closes_a_connection_that_is_not_opened_in_time() {
    for sends in UNOPENED {
        let server = server(BOUNDS).await;
        let client = connected(server.address, sends).await;

        // In steps: the clock, which is not the real one, must not outrun the sockets.
        let mut closed_after = None;
        for second in 0..60 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if matches!(client.try_read(&mut [0; 1]), Ok(0)) {
                closed_after = Some(second);
                break;
            }
        }

        assert!(closed_after.is_some_and(|second| second >= 8), "{closed_after:?}: {sends:?}");
    }
}

#[tokio::test]
async fn reports_an_address_in_use() {
    let first = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = first.local_addr().unwrap();

    let error = bind(address).await.unwrap_err();

    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn shares_an_address_only_between_listeners_that_both_request_it() {
    let first = bind_shared("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = first.local_addr().unwrap();

    let second = bind_shared(address);
    let other = bind(address).await;

    assert_eq!(second.unwrap().local_addr().unwrap(), address);
    assert!(other.unwrap_err().to_string().contains(&address.to_string()));
}

#[tokio::test]
async fn serves_http1_and_http2_at_the_same_address_and_drains_both() {
    let server = server(BOUNDS).await;
    let grpc = call(server.address);
    server.arrived.notified().await;
    let mut browser = connected(server.address, b"POST /a.v1.A/Get HTTP/1.1\r\n").await;
    browser.write_all(b"host: a\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    server.arrived.notified().await;

    server.stop.cancel();
    server.finish.notify_waiters();
    let mut answer = String::new();
    browser.read_to_string(&mut answer).await.unwrap();

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("grpc-status: 0\r\n"), "{answer}");
    assert_eq!(grpc.await.unwrap(), Code::Ok);
    assert_eq!(server.serving.await.unwrap(), Drained::Clean);
}

#[tokio::test]
async fn every_request_has_its_peer_in_its_extensions() {
    let (sender, mut peers) = tokio::sync::mpsc::unbounded_channel();
    let service = CallService::new(service_fn(move |request: Request| {
        sender.send(Peer::of(request.extensions())).unwrap();
        async { Ok::<Response, Infallible>(Status::ok("").into_http()) }
    }));
    let (listener, address) = listen(2, BOUNDS).await;
    tokio::spawn(serve(listener, service, CancellationToken::new()));
    let mut client = connected(address, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.read_exact(&mut [0; 12]).await.unwrap();

    let peer = peers.recv().await.unwrap();

    assert_eq!(peer, Peer { address: client.local_addr().unwrap(), tls: None });
}

#[tokio::test]
async fn the_grace_of_old_connections_does_not_apply_to_a_shutdown() {
    let server = server(Bounds { age_grace: Duration::from_millis(100), ..BOUNDS }).await;
    let in_flight = call(server.address);
    server.arrived.notified().await;

    server.stop.cancel();
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.finish.notify_waiters();

    assert_eq!(in_flight.await.unwrap(), Code::Ok);
    assert_eq!(server.serving.await.unwrap(), Drained::Clean);
}

#[tokio::test]
async fn cuts_an_old_connection_whose_calls_outlast_the_grace() {
    let short = Duration::from_millis(300);
    let server = server(Bounds { age_max: short, age_grace: short, ..BOUNDS }).await;

    let outlasting = call(server.address);
    let cut = tokio::time::timeout(Duration::from_secs(120), outlasting).await;
    server.finish.notify_one();
    let next = call(server.address).await.unwrap();

    assert_eq!(cut.expect("it continues").unwrap(), Code::Unknown);
    assert_eq!(next, Code::Ok);
}
