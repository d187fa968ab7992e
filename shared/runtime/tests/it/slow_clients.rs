//! Clients that do not receive their responses, and clients that exceed the limits of a connection.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt as _;
use h2::client::{ResponseFuture, SendRequest};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, body::Body};
use tower::service_fn;
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_runtime::serve::{Bounds, serve};

use crate::listening::{self, listen};

const BOUNDS: Bounds = Bounds { reader_within: Duration::from_millis(500), ..listening::BOUNDS };
/// More than any of the waits here should take.
const SOON: Duration = Duration::from_secs(120);

/// Counts the parts of responses that still hold memory.
#[derive(Clone, Default)]
struct Held(Arc<AtomicUsize>);

struct Part {
    bytes: Vec<u8>,
    held: Held,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.held.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Held {
    fn part(&self, bytes: usize) -> Bytes {
        self.0.fetch_add(1, Ordering::SeqCst);
        Bytes::from_owner(Part { bytes: vec![7; bytes], held: self.clone() })
    }

    async fn becomes(&self, parts: usize) -> bool {
        let reached = async {
            while self.0.load(Ordering::SeqCst) != parts {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, reached).await.is_ok()
    }
}

/// Responds with the bytes that the path names, in one part, or in as many as it names after that.
async fn server(held: &Held) -> SocketAddr {
    let held = held.clone();
    let service = CallService::new(service_fn(move |request: Request| {
        let path = request.uri().path().trim_start_matches('/');
        let (bytes, parts) = path.split_once('/').unwrap_or((path, "1"));
        let (bytes, parts): (usize, usize) = (bytes.parse().unwrap(), parts.parse().unwrap());
        let end = Frame::trailers(http::HeaderMap::new());
        let held = held.clone();
        let frames = (0..parts).map(move |_| Ok::<_, Status>(Frame::data(held.part(bytes))));
        let body = StreamBody::new(tokio_stream::iter(frames.chain([Ok(end)])));
        async { Ok::<Response, Infallible>(Response::new(Body::new(body))) }
    }));
    let (listener, address) = listen(8, BOUNDS).await;
    tokio::spawn(serve(listener, service, CancellationToken::new()));
    address
}

/// A connection with a flow-control window of this many bytes for each response.
async fn connected(address: SocketAddr, window: u32) -> (SendRequest<Bytes>, JoinHandle<()>) {
    let socket = TcpStream::connect(address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(window).max_concurrent_reset_streams(10_000);
    let (client, connection) = builder.handshake(socket).await.unwrap();
    let ended = tokio::spawn(async move {
        // The test checks how it ends.
        connection.await.ok();
    });
    (client, ended)
}

async fn request(client: &SendRequest<Bytes>, bytes: usize) -> ResponseFuture {
    request_parts(client, bytes, 1).await
}

async fn request_parts(client: &SendRequest<Bytes>, bytes: usize, parts: usize) -> ResponseFuture {
    let uri = format!("http://a/{bytes}/{parts}");
    let request = http::Request::post(uri).body(()).unwrap();
    let mut client = client.clone().ready().await.unwrap();
    client.send_request(request, true).unwrap().0
}

#[tokio::test]
async fn resets_a_response_that_is_not_received_and_frees_its_memory() {
    for bytes in [100_000, 4_000_000] {
        let held = Held::default();
        let (client, _) = connected(server(&held).await, 1000).await;
        let mut stalled = request(&client, bytes).await.await.unwrap().into_body();
        let first = stalled.data().await.unwrap().unwrap();
        assert!(held.becomes(1).await, "{bytes}");

        let mut reset = None;
        while reset.is_none() {
            // No window is released: no more than the first part can arrive.
            let next = tokio::time::timeout(SOON, stalled.data()).await.expect("it is not reset");
            reset = next.and_then(Result::err);
        }
        let mut other = request(&client, 10).await.await.unwrap().into_body();

        assert!(first.len() <= 1000, "{bytes}");
        assert_eq!(reset.unwrap().reason(), Some(h2::Reason::CANCEL), "{bytes}");
        assert_eq!(other.data().await.unwrap().unwrap().len(), 10, "{bytes}");
        assert!(held.becomes(0).await, "{bytes}: its memory is not freed");
    }
}

#[tokio::test]
async fn resets_a_response_whose_client_grants_no_window() {
    let held = Held::default();
    let (client, _) = connected(server(&held).await, 0).await;
    let mut stalled = request(&client, 10).await.await.unwrap().into_body();

    let next = tokio::time::timeout(SOON, stalled.data()).await.expect("it is not reset");

    assert_eq!(next.unwrap().unwrap_err().reason(), Some(h2::Reason::CANCEL));
    assert!(held.becomes(0).await);
}

#[tokio::test]
async fn small_responses_that_are_not_received_hold_bounded_memory() {
    let held = Held::default();
    let (client, _) = connected(server(&held).await, 1000).await;
    let mut stalled = Vec::new();
    for _ in 0..60 {
        stalled.push(request(&client, 50_000).await.await.unwrap());
    }

    // 1 MiB of them may remain until the connection ends.
    assert!(held.becomes(20).await || held.becomes(21).await, "{:?}", held.0);
}

#[tokio::test]
async fn a_slow_client_within_its_budget_receives_the_whole_response() {
    let held = Held::default();
    let (client, _) = connected(server(&held).await, 64 * 1024).await;
    let mut body = request(&client, 1_000_000).await.await.unwrap().into_body();

    let mut read = 0;
    while let Some(data) = body.data().await {
        let bytes = data.expect("cut off").len();
        read += bytes;
        body.flow_control().release_capacity(bytes).unwrap();
        if read % 4 == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    assert_eq!(read, 1_000_000);
    assert!(body.trailers().await.unwrap().is_some());
    assert!(held.becomes(0).await);
}

#[tokio::test]
async fn resets_a_response_that_is_received_too_slowly() {
    let held = Held::default();
    let (client, _) = connected(server(&held).await, 1000).await;
    let mut body = request_parts(&client, 1000, 1000).await.await.unwrap().into_body();

    // A part each time, and each within the budget of a client that receives nothing.
    let (mut read, mut reset) = (0, None);
    while reset.is_none() {
        tokio::time::sleep(BOUNDS.reader_within / 5).await;
        match body.data().await.expect("all of it was let through") {
            Ok(data) => {
                read += data.len();
                body.flow_control().release_capacity(data.len()).unwrap();
            }
            Err(error) => reset = error.reason(),
        }
    }

    assert_eq!(reset, Some(h2::Reason::CANCEL));
    assert!((1000..100_000).contains(&read), "{read}");
}

#[tokio::test]
async fn closes_the_connection_of_a_client_that_does_not_read_its_socket() {
    let held = Held::default();
    let mut client = TcpStream::connect(server(&held).await).await.unwrap();
    client.write_all(b"GET /64000000 HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    client.read_exact(&mut [0; 100]).await.unwrap();
    assert!(held.becomes(1).await);

    assert!(held.becomes(0).await, "its memory is not freed");
}

#[tokio::test]
async fn rejects_headers_beyond_the_limit_and_keeps_the_connection() {
    let held = Held::default();
    let (client, _) = connected(server(&held).await, 64 * 1024).await;
    let large = http::Request::post("http://a/10").header("x", "y".repeat(20_000));

    let mut ready = client.clone().ready().await.unwrap();
    let rejected = ready.send_request(large.body(()).unwrap(), true).unwrap().0.await.unwrap();
    let next = request(&client, 10).await.await.unwrap();

    assert_eq!(rejected.status(), http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(next.status(), http::StatusCode::OK);
}

#[tokio::test]
async fn a_client_may_reset_every_call_that_it_may_have_open() {
    let held = Held::default();
    let (client, _ended) = connected(server(&held).await, 64 * 1024).await;
    // The server has its settings: from here on only calls arrive.
    assert_eq!(request(&client, 10).await.await.unwrap().status(), http::StatusCode::OK);

    for _ in 0..BOUNDS.streams_max {
        let request = http::Request::post("http://a/10").body(()).unwrap();
        // Without waiting, so that the server accepts none in between.
        let mut ready = client.clone().ready().now_or_never().unwrap().unwrap();
        let (_, mut stream) = ready.send_request(request, false).unwrap();
        stream.send_reset(h2::Reason::CANCEL);
    }

    assert_eq!(request(&client, 10).await.await.unwrap().status(), http::StatusCode::OK);
}

#[tokio::test]
async fn closes_the_connection_of_a_client_that_resets_its_calls() {
    let held = Held::default();
    let (client, ended) = connected(server(&held).await, 64 * 1024).await;

    let hostile = async {
        for count in 0.. {
            if count % (3 * BOUNDS.streams_max) == 0 {
                tokio::task::yield_now().await;
            }
            let Ok(mut ready) = client.clone().ready().await else {
                break;
            };
            let request = http::Request::post("http://a/10").body(()).unwrap();
            let Ok((_, mut stream)) = ready.send_request(request, false) else {
                break;
            };
            stream.send_reset(h2::Reason::CANCEL);
        }
    };
    tokio::time::timeout(SOON, hostile).await.expect("the connection is not closed");

    assert!(tokio::time::timeout(SOON, ended).await.is_ok(), "the connection is open");
}
