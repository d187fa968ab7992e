//! The end of a connection: the rest of what its client sends is read.
//!
//! A socket that is closed with unread bytes resets the connection. The client may see that before it reads the last
//! frames: which of its calls were accepted, and their responses. Their outcome would be unknown to it.

use std::{io, time::Duration};

use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};
use tracing::debug;

/// How long a client may take to receive the last response, and to close its side of a closed connection.
const LINGER_WITHIN: Duration = Duration::from_millis(500);

/// Reads what a client still sends to a closed connection, until it closes its side. `since_response` is the age of the
/// last response: without one, or after an older one, there is nothing that a reset could destroy.
pub(super) async fn linger(mut socket: TcpStream, since_response: Option<Duration>) {
    let since_response = since_response.unwrap_or(LINGER_WITHIN);
    let within = LINGER_WITHIN.saturating_sub(since_response);
    if within.is_zero() || socket.shutdown().await.is_err() {
        return;
    }
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
    if timeout(within, drained).await.is_err() {
        debug!("client keeps its side of a closed connection open");
    }
}
