//! Who is at the other end of a connection, as the listener knows it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The other end of a connection. The listener puts it into the extensions of every request; a
/// request without one was made in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The encryption of the connection; none where it is plain.
    pub tls: Option<PeerTls>,
}

/// What the handshake of an encrypted connection told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerTls {
    /// Whether the client showed a certificate that the listener's authorities vouch for.
    pub is_certified: bool,
}

impl Peer {
    /// Whoever calls from within the process: local, and nobody can listen in.
    #[must_use]
    pub fn in_process() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { address, tls: Some(PeerTls { is_certified: true }) }
    }

    /// The other end of a request's connection.
    #[must_use]
    pub fn of(extensions: &http::Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(Self::in_process)
    }

    /// The address, an IPv4 address even where the socket mapped it into IPv6.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.address.ip().to_canonical()
    }
}
