//! Serves calls on a socket: encrypted or not, HTTP/2 and HTTP/1, bounded connections, and a graceful shutdown.
//!
//! It uses hyper directly instead of tonic's transport: this costs less per call, bounds connections, and recycles them
//! by age, so that callers with long-lived connections find new processes.

mod bind;
mod bounds;
mod budgeted_socket;
mod close;
mod connection;
mod connections;
mod goaway;
mod http;
mod linger;
mod peer_shares;
mod pieced_body;
mod protocol;
mod slow_client;
mod slow_writer;
mod tuning;

use std::{net::SocketAddr, time::Duration};

use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::warn;
use trestle_rpc::layer::CallService;

use self::connection::Connection;
use crate::tls::Tls;

pub use self::{
    bind::{bind, bind_shared},
    bounds::Bounds,
    connections::Connections,
};

/// How long to wait after the system refused a connection, out of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a forced shutdown waits for connections without calls to close; calls in flight then are cut.
const FORCED_GRACE: Duration = Duration::from_millis(500);

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

/// What a listener serves.
pub struct Listener {
    /// Its socket.
    pub socket: TcpListener,
    /// Encrypts its connections.
    pub tls: Option<Tls>,
    /// The connections that it counts its own among.
    pub connections: Connections,
    /// The bounds of each.
    pub bounds: Bounds,
}

/// Serves until it is stopped, then accepts no more connections, waits for calls within the bound,
/// and cuts the rest.
pub async fn serve(
    listener: Listener,
    service: CallService,
    signals: impl Into<StopSignals>,
) -> Drained {
    let StopSignals { stop, forced } = signals.into();
    let Listener { socket, tls, connections, bounds } = listener;
    let (running, cut) = (TaskTracker::new(), CancellationToken::new());
    let admit = |socket: TcpStream, address: SocketAddr| {
        let Some(slot) = connections.admit(address.ip()) else { return };
        let connection = Connection {
            service: service.clone(),
            tls: tls.clone(),
            bounds,
            stop: stop.clone(),
            cut: cut.clone(),
            slot,
        };
        running.spawn(connection.run(socket, address));
    };
    while let Some(accepted) = stop.run_until_cancelled(socket.accept()).await {
        match accepted {
            Ok((socket, address)) => admit(socket, address),
            Err(error) => {
                warn!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    for (socket, address) in bind::backlog(socket) {
        admit(socket, address);
    }
    running.close();
    let finished = tokio::time::timeout(bounds.drain_within, running.wait());
    match forced.run_until_cancelled(finished).await {
        Some(Ok(())) => return Drained::Clean,
        Some(Err(_)) => {}
        None => {
            let _ = tokio::time::timeout(FORCED_GRACE, running.wait()).await;
        }
    }
    let open = running.len();
    cut.cancel();
    running.wait().await;
    if open == 0 { Drained::Clean } else { Drained::Cut(open) }
}
