//! Serves gRPC on a socket: HTTP/2 with our windows, bounded connections, and an end that lets
//! calls finish.
//!
//! On hyper itself instead of tonic's transport: it costs less per call, bounds connections, and
//! recycles them by age, so that callers with long-lived connections find new processes.

use std::{
    io::{self, Cursor},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::body::Body;
use tower::Service as _;
use tracing::{debug, warn};
use trestle_service::layer::CallService;

/// Bytes that one call may send ahead of what is read.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// Bytes that all calls of a connection may send ahead.
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// How often an idle connection is probed, and how long a probe may take.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// How many bytes the client's opening of HTTP/2 has.
const PREFACE_BYTES: usize = 24;
/// How long a client may take for its opening. It is the client's first write, so this is ample
/// for a slow network, and short enough that sockets nobody uses do not hold places for long.
const PREFACE_WITHIN: Duration = Duration::from_secs(10);
/// After how long a connection is asked to be made anew.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(30 * 60);
/// How long to wait after the system refused a connection, out of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The bounds of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Most connections at a time; more are closed at once.
    pub connections_max: usize,
    /// Most calls at a time on one connection; more wait at the client.
    pub streams_max: u32,
    /// How long calls may go on after the listener was stopped.
    pub drain_within: Duration,
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every call finished.
    Clean,
    /// So many connections still had calls and were cut.
    Cut(usize),
}

/// Takes an address; port 0 takes a free port.
///
/// # Errors
/// What the system says; the address is in the text.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let text = format!("cannot listen: address=`{address}`, {error}");
        io::Error::new(error.kind(), text)
    })
}

/// Serves until `stop`, then takes no more connections, lets calls finish within the bound, and
/// cuts the rest.
pub async fn serve(
    listener: TcpListener,
    service: CallService,
    bounds: Bounds,
    stop: CancellationToken,
) -> Drained {
    let places = Arc::new(Semaphore::new(bounds.connections_max));
    let (connections, cut) = (TaskTracker::new(), CancellationToken::new());
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let stream = match accepted {
            Ok((stream, _peer)) => stream,
            Err(error) => {
                warn!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            debug!(connections_max = bounds.connections_max, "connection refused");
            continue;
        };
        let connection = Connection {
            service: service.clone(),
            streams_max: bounds.streams_max,
            stop: stop.clone(),
            cut: cut.clone(),
            _place: place,
        };
        connections.spawn(connection.run(stream));
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(bounds.drain_within, connections.wait()).await.is_ok() {
        return Drained::Clean;
    }
    let open = connections.len();
    cut.cancel();
    connections.wait().await;
    Drained::Cut(open)
}

struct Connection {
    service: CallService,
    streams_max: u32,
    stop: CancellationToken,
    cut: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        // Without it the end of each answer waits for an acknowledgement: 40 ms and more.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "connection lost before it was used");
            return;
        }
        let opened = tokio::time::timeout(PREFACE_WITHIN, opened(stream));
        let stream = match self.stop.run_until_cancelled(opened).await {
            Some(Ok(Ok(stream))) => stream,
            Some(Ok(Err(error))) => {
                debug!(%error, "connection lost before it was opened");
                return;
            }
            Some(Err(_)) => {
                debug!(within = ?PREFACE_WITHIN, "connection not opened in time");
                return;
            }
            None => return,
        };
        let service = self.service;
        let calls = hyper::service::service_fn(move |request: http::Request<_>| {
            service.clone().call(request.map(Body::new))
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_concurrent_streams(self.streams_max)
            .keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .serve_connection(TokioIo::new(stream), calls);
        let mut connection = std::pin::pin!(connection);
        let ending = async {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(CONNECTION_AGE_MAX) => {}
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = ending => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = self.cut.cancelled() => return,
                }
            }
        };
        if let Err(error) = ended {
            debug!(%error, "connection broken");
        }
    }
}

/// The stream once the client's opening of HTTP/2 is there, from which it can be read again.
///
/// Until it has the opening, hyper neither probes a connection nor ends it when asked to: without
/// this wait, a silent client would keep its place for ever and hold up the end of the process.
/// Whether the bytes are right is for hyper to judge.
async fn opened(stream: TcpStream) -> io::Result<impl AsyncRead + AsyncWrite + Unpin> {
    let (mut from, to) = stream.into_split();
    let mut preface = [0; PREFACE_BYTES];
    from.read_exact(&mut preface).await?;
    Ok(tokio::io::join(Cursor::new(preface).chain(from), to))
}
