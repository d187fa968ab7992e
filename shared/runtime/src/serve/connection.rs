//! One connection, from its handshake to its close.

use std::{
    cell::RefCell,
    convert::Infallible,
    future::{self, Future, poll_fn},
    io,
    net::{Shutdown, SocketAddr},
    os::fd::AsFd as _,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, body::Body};
use tower::Service as _;
use tracing::debug;
use trestle_service::{layer::CallService, peer::Peer};

use super::{
    Bounds,
    goaway::GoawayDrain,
    protocol::{self, HttpVersion},
    slow_client::{PiecedBody, UnsentBytes},
    slow_writer::BudgetedSocket,
    tuning::{CoalescedWrites, InlineExecutor, PollCount},
};
use crate::tls::Tls;

/// The flow-control window of a call: bytes that it may send before they are read.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// The flow-control window of a connection, for all of its calls.
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// How long the handshake and protocol detection may take. Ample for a slow network, and short
/// enough that unused sockets do not count as connections for long.
const OPEN_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may take to close its side of a closed connection.
const LINGER_WITHIN: Duration = Duration::from_millis(500);
/// How long opening a connection may take on once the listener is closed.
const OPEN_AT_SHUTDOWN_WITHIN: Duration = Duration::from_millis(500);
/// Largest headers of a call, in bytes as HTTP/2 counts them: names, values and 32 for each. A call with more is
/// rejected with HTTP status 431, and its connection remains open.
const HEADER_BYTES_MAX: u32 = 16 * 1024;
/// Largest head of a request of HTTP/1, its address included, in bytes. Twice the above, so that the service can reject
/// most oversized requests in its own format; larger ones receive a 431 without a body.
const HTTP1_HEAD_BYTES_MAX: usize = 2 * HEADER_BYTES_MAX as usize;
/// Calls that a client may reset before they were accepted; with more its connection is closed.
const RESETS_MAX: usize = 20;

/// One connection.
pub(super) struct Connection {
    pub(super) service: CallService,
    pub(super) tls: Option<Tls>,
    pub(super) bounds: Bounds,
    /// Closes it in order.
    pub(super) stop: CancellationToken,
    /// Closes it at once.
    pub(super) cut: CancellationToken,
    /// Limits the handshakes at a time.
    pub(super) handshakes: Arc<Semaphore>,
    pub(super) _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// Serves until the client disconnects, or until the shutdown, with every request sent before.
    pub(super) async fn run(self, socket: TcpStream, address: SocketAddr) {
        let spare = socket.as_fd().try_clone_to_owned();
        self.open(socket, address).await;
        if let Ok(spare) = spare {
            linger(spare.into()).await;
        }
    }

    async fn open(self, socket: TcpStream, address: SocketAddr) {
        let socket = match BudgetedSocket::new(socket, self.bounds.reader_within) {
            Ok(socket) => socket,
            Err(error) => {
                debug!(%error, "connection lost before it was used");
                return;
            }
        };
        let until = Instant::now() + OPEN_WITHIN;
        let Some(tls) = self.tls.clone() else {
            return self.serve(socket, Peer { address, tls: None }, until).await;
        };
        let handshake = async {
            let _permit = self.handshakes.acquire().await;
            protocol::handshake(&tls, socket).await
        };
        match self.opened(handshake, until).await {
            Ok((stream, peer_tls)) => {
                self.serve(stream, Peer { address, tls: Some(peer_tls) }, until).await;
            }
            Err(error) => tls.failed(address, &error),
        }
    }

    /// The result of a step of opening. In a shutdown a short time remains: the client may have sent a call already.
    ///
    /// # Errors
    /// Those of the step; timed out where it took too long.
    async fn opened<T>(
        &self,
        step: impl Future<Output = io::Result<T>>,
        until: Instant,
    ) -> io::Result<T> {
        let mut step = pin!(timeout_at(until, step));
        let opened = match self.stop.run_until_cancelled(step.as_mut()).await {
            Some(opened) => opened,
            None => timeout(OPEN_AT_SHUTDOWN_WITHIN, step).await.and_then(|opened| opened),
        };
        opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn serve<S>(self, stream: S, peer: Peer, until: Instant)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (stream, version) = match self.opened(protocol::detect(stream), until).await {
            Ok(opened) => opened,
            Err(error) => {
                debug!(%error, "connection lost before it was opened");
                return;
            }
        };
        // A clone for each call would copy every layer before the services.
        let service = RefCell::new(self.service.clone());
        let polls = PollCount::default();
        let (age_max, unsent) = (jittered(self.bounds.age_max, &peer), UnsentBytes::default());
        let goaway = GoawayDrain::default();
        let calls_of = goaway.clone();
        let calls = hyper::service::service_fn(move |request: http::Request<Incoming>| {
            let admitted = calls_of.admit(request.headers()).map(|in_flight| {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(peer.clone());
                (service.borrow_mut().call(request), in_flight)
            });
            let unsent = unsent.clone();
            async move {
                let (answer, in_flight) = match admitted {
                    Ok((answer, in_flight)) => (answer.await?, Some(in_flight)),
                    Err(fault) => (Status::from(fault).into_http(), None),
                };
                Ok::<_, Infallible>(answer.map(|body| PiecedBody::new(body, unsent, in_flight)))
            }
        });
        match version {
            HttpVersion::Http2 => {
                let connection =
                    http2::Builder::new(InlineExecutor::new(self.bounds.reader_within))
                        .timer(TokioTimer::new())
                        .initial_stream_window_size(STREAM_WINDOW_BYTES)
                        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                        .max_concurrent_streams(self.bounds.streams_max)
                        .max_header_list_size(HEADER_BYTES_MAX)
                        .max_pending_accept_reset_streams(RESETS_MAX)
                        // gRPC does not use a date, and HPACK would store the last sixty of a connection and compare
                        // the date of each response with all of them.
                        .auto_date_header(false)
                        .keep_alive_interval(self.bounds.keepalive)
                        .keep_alive_timeout(self.bounds.keepalive)
                        .serve_connection(
                            TokioIo::new(CoalescedWrites::new(stream, polls.clone())),
                            calls,
                        );
                self.run_to_close(connection, polls, age_max, goaway.drain()).await;
            }
            HttpVersion::Http1 => {
                let mut builder = http1::Builder::new();
                if let Some(most) = self.bounds.headers_max {
                    builder.max_headers(most);
                }
                let connection = builder
                    .timer(TokioTimer::new())
                    .header_read_timeout(self.bounds.head_within)
                    .max_header_size(HTTP1_HEAD_BYTES_MAX)
                    .serve_connection(TokioIo::new(stream), calls);
                self.run_to_close(connection, polls, age_max, future::ready(())).await;
            }
        }
    }

    /// Runs a connection until it closes: when it is stopped or old, closes it in order once `drained`,
    /// and cuts it after the grace.
    async fn run_to_close<C>(
        &self,
        connection: C,
        polls: PollCount,
        age_max: Duration,
        drained: impl Future<Output = ()>,
    ) where
        C: GracefulConnection<Error = hyper::Error>,
    {
        let mut connection = pin!(connection);
        let may_close = async {
            let is_old = tokio::select! {
                () = self.stop.cancelled() => false,
                () = tokio::time::sleep(age_max) => true,
            };
            drained.await;
            is_old
        };
        let is_old = tokio::select! {
            ended = poll_fn(|cx| polls.poll(connection.as_mut(), cx)) => return log_end(ended),
            is_old = may_close => is_old,
        };
        connection.as_mut().graceful_shutdown();
        // The listener bounds the shutdown itself, and counts the connections that it cuts.
        let grace = if is_old { self.bounds.age_grace } else { Duration::MAX };
        tokio::select! {
            ended = poll_fn(|cx| polls.poll(connection.as_mut(), cx)) => log_end(ended),
            () = self.cut.cancelled() => {}
            () = tokio::time::sleep(grace) => debug!("expired connection cut with calls in flight"),
        }
    }
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        debug!(%error, "connection broken");
    }
}

/// An age between nine and eleven tenths of `age_max`, so that connections that were opened together
/// are not all closed together.
fn jittered(age_max: Duration, peer: &Peer) -> Duration {
    age_max.mul_f64(0.9 + 0.2 * f64::from(peer.address.port() % 1024) / 1024.0)
}

/// Reads what a client still sends to a closed connection, until it closes its side.
///
/// A socket that is closed with unread bytes resets the connection. The client may see that before it reads the last
/// frames: which of its calls were accepted, and their responses. Their outcome would be unknown to it.
async fn linger(socket: std::net::TcpStream) {
    if socket.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let Ok(socket) = TcpStream::from_std(socket) else {
        return;
    };
    let mut bytes = [0; 1024];
    let drained = async {
        while socket.readable().await.is_ok() {
            match socket.try_read(&mut bytes) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    if timeout(LINGER_WITHIN, drained).await.is_err() {
        debug!("client keeps its side of a closed connection open");
    }
}
