//! Listeners of the tests.

use std::{net::SocketAddr, time::Duration};

use trestle_runtime::serve::{Bounds, Connections, Listener, bind};

/// Bounds that no test reaches by accident.
pub(crate) const BOUNDS: Bounds = Bounds {
    streams_max: 100,
    age_max: Duration::from_secs(3600),
    age_grace: Duration::from_secs(60),
    keepalive: Duration::from_secs(20),
    head_within: Duration::from_secs(60),
    headers_max: None,
    keeps_header_case: false,
    reader_within: Duration::from_secs(60),
    drain_within: Duration::from_secs(120),
};

/// A listener at a free address, for at most this many connections.
pub(crate) async fn listen(connections_max: usize, bounds: Bounds) -> (Listener, SocketAddr) {
    let socket = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = socket.local_addr().unwrap();
    let connections = Connections::at_most(connections_max);
    (Listener { socket, tls: None, connections, bounds }, address)
}
