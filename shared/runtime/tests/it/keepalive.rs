//! Keepalive PINGs. The clients here write HTTP/2 frame by frame, since a library would acknowledge
//! PINGs by itself.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tower::service_fn;
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_runtime::serve::{Bounds, serve};

use crate::listening::{self, listen};

/// The interval of PINGs. Ample for a busy machine to acknowledge one in.
const KEEPALIVE: Duration = Duration::from_secs(1);
/// No step of these tests takes longer.
const SOON: Duration = Duration::from_secs(120);

const BOUNDS: Bounds =
    Bounds { keepalive: KEEPALIVE, reader_within: Duration::from_secs(3600), ..listening::BOUNDS };

/// Types and flags of frames.
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const ACK: u8 = 1;

async fn server() -> (SocketAddr, CancellationToken) {
    let calls =
        service_fn(|_: Request| async { Ok::<Response, Infallible>(Status::ok("").into_http()) });
    let (listener, address) = listen(10, BOUNDS).await;
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, CallService::new(calls), stop.clone()));
    (address, stop)
}

/// A client of HTTP/2 that reads every frame.
struct Client {
    stream: TcpStream,
    answers_pings: bool,
    /// PINGs that it received.
    pings: usize,
}

impl Client {
    async fn connect(address: SocketAddr, answers_pings: bool) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut client = Self { stream, answers_pings, pings: 0 };
        client.write(SETTINGS, 0, &[]).await;
        client
    }

    /// Sends a frame of the connection. A closed connection is found by reading.
    async fn write(&mut self, kind: u8, flags: u8, payload: &[u8]) {
        let length = u8::try_from(payload.len()).unwrap();
        let mut frame = vec![0, 0, length, kind, flags, 0, 0, 0, 0];
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await.ok();
    }

    /// Reads until it received this many PINGs; false, where the server closes the connection before.
    async fn receives(&mut self, pings: usize) -> bool {
        while self.pings < pings {
            let mut head = [0; 9];
            if self.stream.read_exact(&mut head).await.is_err() {
                return false;
            }
            let [a, b, c, kind, flags, ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            if self.stream.read_exact(&mut payload).await.is_err() {
                return false;
            }
            match (kind, flags & ACK) {
                (SETTINGS, 0) => self.write(SETTINGS, ACK, &[]).await,
                (PING, 0) => {
                    self.pings += 1;
                    if self.answers_pings {
                        self.write(PING, ACK, &payload).await;
                    }
                }
                _ => {}
            }
        }
        true
    }
}

#[tokio::test]
async fn closes_the_connection_of_a_client_that_acknowledges_no_ping() {
    let (address, _stop) = server().await;
    let mut silent = Client::connect(address, false).await;
    let mut lively = Client::connect(address, true).await;
    let began = Instant::now();

    let (is_kept, receives_more) =
        tokio::join!(timeout(SOON, silent.receives(2)), timeout(SOON, lively.receives(5)),);

    assert_eq!(is_kept, Ok(false), "cut without a second PING");
    assert_eq!(silent.pings, 1);
    assert_eq!(receives_more, Ok(true), "still connected");
    assert!(began.elapsed() >= 4 * KEEPALIVE, "not sent all the time");
}

#[tokio::test]
async fn closes_the_connection_of_a_client_that_stops_acknowledging_pings() {
    let (address, _stop) = server().await;
    let mut client = Client::connect(address, true).await;
    assert_eq!(timeout(SOON, client.receives(2)).await, Ok(true));

    client.answers_pings = false;
    let is_kept = timeout(SOON, client.receives(5)).await;

    assert_eq!(is_kept, Ok(false));
    assert_eq!(client.pings, 3);
}
