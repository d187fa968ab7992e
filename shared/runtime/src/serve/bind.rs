//! Binds and accepts.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Most connections in the backlog of a listener; so many are still accepted when it closes.
const BACKLOG_MAX: u32 = 1024;

/// Binds an address; port 0 takes a free port.
///
/// # Errors
/// Those of the system; the text names the address.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| in_use(address, &error))
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
    bind().map_err(|error| in_use(address, &error))
}

fn in_use(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen: address=`{address}`, {error}"))
}

/// The connections in the backlog of a listener that closes. To their clients they are open, and calls
/// may have been sent: dropped with the backlog, those would fail with an unknown outcome.
pub(super) fn backlog(listener: TcpListener) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
    let listener = listener.into_std();
    let accept = move || {
        let (socket, address) = listener.as_ref().ok()?.accept().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(socket).ok()?, address))
    };
    std::iter::from_fn(accept).take(BACKLOG_MAX as usize)
}
