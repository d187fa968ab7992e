//! A socket that fails when its other end takes no bytes for too long, or too few.
//!
//! Below the encryption, so that what counts is what the client's machine took.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};

use super::patience::Patience;

/// See the module.
pub(super) struct Paced {
    socket: TcpStream,
    patience: Patience,
    /// Since when there are bytes that the other end does not take, and when that is too long.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Paced {
    /// Waits up to `patience` for each write, and sends what is written at once: otherwise the end
    /// of each answer would wait for an acknowledgement, 40 ms and more.
    ///
    /// # Errors
    /// A connection that is lost already.
    pub(super) fn new(socket: TcpStream, patience: Duration) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, patience: Patience::new(patience), stalled: None })
    }

    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = &wrote {
            if let Some((since, _)) = self.stalled.take() {
                self.patience.waited(since.elapsed());
            }
            self.patience.took(outcome.as_ref().copied().unwrap_or_default());
            return wrote;
        }
        let left = self.patience.left();
        let (_, clock) =
            self.stalled.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        std::task::ready!(clock.as_mut().poll(cx));
        let text = "the client takes too few bytes";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.wrote(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write_vectored(cx, bytes);
        self.wrote(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn what_is_written_does_not_wait_for_an_acknowledgement() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free address");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).await;
        let (socket, _) = listener.accept().await.expect("a connection");
        assert!(!socket.nodelay().expect("an option"), "the system does not do so itself");

        let paced = Paced::new(socket, Duration::from_secs(1)).expect("connected");

        assert!(paced.socket.nodelay().expect("an option"));
        drop(client);
    }
}
