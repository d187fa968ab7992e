//! The peer of a connection, as the listener reports it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The peer of a connection. The listener puts it into the extensions of every request; a request
/// without one was made in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The TLS state of the connection; none for plain text.
    pub tls: Option<PeerTls>,
}

/// The result of a TLS handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerTls {
    /// Whether the client presented a certificate that the CA certificates of the listener
    /// authenticate.
    pub is_certified: bool,
    /// Whether that certificate has the name of a gateway.
    pub is_gateway: bool,
}

impl Peer {
    /// A caller within the process: local, and its connection cannot be intercepted.
    #[must_use]
    pub fn in_process() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { address, tls: Some(PeerTls { is_certified: true, is_gateway: true }) }
    }

    /// The peer of a request.
    #[must_use]
    pub fn of(extensions: &http::Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(Self::in_process)
    }

    /// What the peer of a request counts as.
    #[must_use]
    pub fn key_of(extensions: &http::Extensions) -> PeerKey {
        let address = extensions.get::<Self>().map(|peer| peer.address.ip());
        address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)).into()
    }

    /// The address; an IPv4 address that the socket mapped into IPv6 is unmapped.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.address.ip().to_canonical()
    }
}

/// What counts as one peer: an IPv4 address, or the network of 64 bits of an IPv6 address, which one client has alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey(IpAddr);

impl From<IpAddr> for PeerKey {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
            address @ IpAddr::V4(_) => address,
        })
    }
}
