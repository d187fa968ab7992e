//! Serves calls on a socket: encrypted or not, HTTP/2 and HTTP/1, bounded connections, and a graceful shutdown.
//!
//! It uses hyper directly instead of tonic's transport: this costs less per call, bounds connections, and recycles them
//! by age, so that callers with long-lived connections find new processes.

mod connection;
mod goaway;
mod protocol;
mod slow_client;
mod slow_writer;
mod tuning;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};
use trestle_service::layer::CallService;

use self::connection::Connection;
use crate::tls::Tls;

/// How long to wait after the system refused a connection, out of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Most handshakes at a time, which cost memory before the client is authenticated; more wait, within
/// the time that each connection has for opening.
const HANDSHAKES_MAX: usize = 512;

/// Most connections in the backlog of a listener; so many are still accepted when it closes.
const BACKLOG_MAX: u32 = 1024;

/// The bounds of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Most connections at a time; more are closed at once.
    pub connections_max: usize,
    /// Most calls at a time on one connection; more wait at the client.
    pub streams_max: u32,
    /// After about how long a connection is closed, so that its client opens another.
    pub age_max: Duration,
    /// How long its calls may continue then.
    pub age_grace: Duration,
    /// How often a client of HTTP/2 is sent a PING, and how long it may take to acknowledge it before
    /// the connection is cut.
    pub keepalive: Duration,
    /// How long a client of HTTP/1, which has no PING, may take for the head of a request, from the end
    /// of the previous response on.
    pub head_within: Duration,
    /// Most headers of a request of HTTP/1. `None` is 100, which costs least: room for more is made
    /// for each request.
    pub headers_max: Option<usize>,
    /// How long a client may receive nothing while bytes wait for it, and the time in which it has to
    /// receive 64 KiB of them.
    pub reader_within: Duration,
    /// How long calls may continue after the listener was stopped.
    pub drain_within: Duration,
}

/// The signals that shut a listener down.
#[derive(Debug, Clone, Default)]
pub struct StopSignals {
    /// Graceful: it accepts no more connections, and calls may finish within the bound.
    pub stop: CancellationToken,
    /// A forced shutdown: calls are cut.
    pub forced: CancellationToken,
}

impl From<CancellationToken> for StopSignals {
    fn from(stop: CancellationToken) -> Self {
        Self { stop, forced: CancellationToken::new() }
    }
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every call finished.
    Clean,
    /// This many connections still had calls and were cut.
    Cut(usize),
}

/// Binds an address; port 0 takes a free port.
///
/// # Errors
/// Those of the system; the text names the address.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| taken(address, &error))
}

/// Binds an address that other processes of this user may bind at the same time in the same way: new
/// connections are spread over them.
///
/// # Errors
/// Those of the system; the text names the address.
pub fn bind_shared(address: SocketAddr) -> io::Result<TcpListener> {
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG_MAX)
    };
    bind().map_err(|error| taken(address, &error))
}

fn taken(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen: address=`{address}`, {error}"))
}

/// Serves until it is stopped, then accepts no more connections, lets calls finish within the bound,
/// and cuts the rest. With `tls`, connections are encrypted.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    service: CallService,
    bounds: Bounds,
    signals: impl Into<StopSignals>,
) -> Drained {
    let StopSignals { stop, forced } = signals.into();
    let permits = Arc::new(Semaphore::new(bounds.connections_max));
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let (connections, cut) = (TaskTracker::new(), CancellationToken::new());
    let admit = |socket, address| {
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            debug!(connections_max = bounds.connections_max, "connection refused");
            return;
        };
        let connection = Connection {
            service: service.clone(),
            tls: tls.clone(),
            bounds,
            stop: stop.clone(),
            cut: cut.clone(),
            handshakes: Arc::clone(&handshakes),
            _permit: permit,
        };
        connections.spawn(connection.run(socket, address));
    };
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((socket, address)) => admit(socket, address),
            Err(error) => {
                warn!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    for (socket, address) in backlog(listener) {
        admit(socket, address);
    }
    connections.close();
    let finished = tokio::time::timeout(bounds.drain_within, connections.wait());
    if let Some(Ok(())) = forced.run_until_cancelled(finished).await {
        return Drained::Clean;
    }
    let open = connections.len();
    cut.cancel();
    connections.wait().await;
    if open == 0 { Drained::Clean } else { Drained::Cut(open) }
}

/// The connections in the backlog of a listener that closes. To their clients they are open, and calls
/// may have been sent: dropped with the backlog, those would fail with an unknown outcome.
fn backlog(listener: TcpListener) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
    let listener = listener.into_std();
    let accept = move || {
        let (socket, address) = listener.as_ref().ok()?.accept().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(socket).ok()?, address))
    };
    std::iter::from_fn(accept).take(BACKLOG_MAX as usize)
}
