//! One connection, from its handshake to its close.

use std::{io, net::SocketAddr, pin::pin, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tracing::debug;
use trestle_rpc::{layer::CallService, peer::Peer};

use super::{
    Bounds, budgeted_socket::BudgetedSocket, connections::ConnectionSlot, linger::linger, protocol,
};
use crate::tls::Tls;

/// How long the handshake and protocol detection may take. Ample for a slow network, and short
/// enough that unused sockets do not count as connections for long.
const OPEN_WITHIN: Duration = Duration::from_secs(10);
/// How long opening a connection may take on once the listener is closed.
const OPEN_AT_SHUTDOWN_WITHIN: Duration = Duration::from_millis(200);

/// One connection.
pub(super) struct Connection {
    pub(super) service: CallService,
    pub(super) tls: Option<Tls>,
    pub(super) bounds: Bounds,
    /// Closes it in order.
    pub(super) stop: CancellationToken,
    /// Closes it at once.
    pub(super) cut: CancellationToken,
    /// Its slot among all; held until its socket is closed.
    pub(super) slot: ConnectionSlot,
}

impl Connection {
    /// Serves until the client disconnects, or until the shutdown, with every request sent before.
    pub(super) async fn run(self, socket: TcpStream, address: SocketAddr) {
        match BudgetedSocket::new(socket, self.bounds.reader_within) {
            Ok((socket, mut returned)) => {
                self.open(socket, address).await;
                if let Ok(socket) = returned.try_recv() {
                    linger(socket, self.slot.calls.since_response()).await;
                }
            }
            Err(error) => debug!(%error, "connection lost before it was used"),
        }
    }

    async fn open(&self, socket: BudgetedSocket, address: SocketAddr) {
        let until = Instant::now() + OPEN_WITHIN;
        let Some(tls) = &self.tls else {
            return self.detect(socket, Peer { address, tls: None }, until).await;
        };
        let handshake = async {
            let slot = self.slot.handshake().await;
            let handshake = slot.evicted.run_until_cancelled(protocol::handshake(tls, socket));
            handshake.await.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
        };
        // Boxed, as serving is: the task of a connection would otherwise hold room for every step at once.
        match self.opened(Box::pin(handshake), until).await {
            Ok((stream, peer_tls)) => {
                self.detect(stream, Peer { address, tls: Some(peer_tls) }, until).await;
            }
            Err(error) => tls.failed(address, &error),
        }
    }

    async fn detect<S>(&self, stream: S, peer: Peer, until: Instant)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        match self.opened(Box::pin(protocol::detect(stream)), until).await {
            Ok((stream, version)) => {
                self.slot.opened();
                Box::pin(self.serve(stream, version, peer)).await;
            }
            Err(error) => debug!(%error, "connection lost before it was opened"),
        }
    }

    /// The result of a step of opening. In a shutdown a short time remains: the client may have sent a call already.
    ///
    /// # Errors
    /// Those of the step; timed out where it took too long, or was evicted.
    async fn opened<T>(
        &self,
        step: impl Future<Output = io::Result<T>>,
        until: Instant,
    ) -> io::Result<T> {
        let step = self.slot.evicted.run_until_cancelled(timeout_at(until, step));
        let mut step =
            pin!(async { step.await.unwrap_or(Ok(Err(io::ErrorKind::TimedOut.into()))) });
        let opened = match self.stop.run_until_cancelled(step.as_mut()).await {
            Some(opened) => opened,
            None => timeout(OPEN_AT_SHUTDOWN_WITHIN, step).await.and_then(|opened| opened),
        };
        opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}
