//! A socket with a slow-writer budget: ends a connection whose client receives no bytes for too long, or too few.
//!
//! The socket is below the encryption: the bytes that the client's machine accepted are counted.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::oneshot,
    time::{Instant, Sleep, sleep},
};

use super::slow_writer::WriteBudget;

/// See the module. Dropped, it returns the socket, which HTTP would close: a second descriptor of the socket would cost
/// one for each connection.
pub(super) struct BudgetedSocket {
    /// None only while it is dropped.
    socket: Option<TcpStream>,
    returned: Option<oneshot::Sender<TcpStream>>,
    budget: WriteBudget,
    /// Since when the socket is full, and when the budget will be spent.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl BudgetedSocket {
    /// A socket whose client may make writes wait up to `whole`, and where it is returned. Written bytes are sent at
    /// once: with Nagle's algorithm the end of each response would wait for an acknowledgement, 40 ms and more.
    ///
    /// # Errors
    /// A connection that is already closed.
    pub(super) fn new(
        socket: TcpStream,
        whole: Duration,
    ) -> io::Result<(Self, oneshot::Receiver<TcpStream>)> {
        socket.set_nodelay(true)?;
        let (sender, returned) = oneshot::channel();
        let (socket, sender) = (Some(socket), Some(sender));
        let budget = WriteBudget::new(whole);
        Ok((Self { socket, returned: sender, budget, stalled: None }, returned))
    }

    fn poll<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.socket {
            Some(socket) => poll(Pin::new(socket)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = &wrote {
            if let Some((since, _)) = self.stalled.take() {
                self.budget.spend(since.elapsed());
            }
            self.budget.refill(outcome.as_ref().copied().unwrap_or_default());
            return wrote;
        }
        let left = self.budget.left();
        let (_, clock) =
            self.stalled.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        std::task::ready!(clock.as_mut().poll(cx));
        let text = "the client receives too few bytes";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl Drop for BudgetedSocket {
    fn drop(&mut self) {
        if let (Some(socket), Some(returned)) = (self.socket.take(), self.returned.take()) {
            // Closed where nothing waits for it.
            drop(returned.send(socket));
        }
    }
}

impl AsyncRead for BudgetedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(|socket| socket.poll_read(cx, into))
    }
}

impl AsyncWrite for BudgetedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = self.poll(|socket| socket.poll_write(cx, bytes));
        self.wrote(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = self.poll(|socket| socket.poll_write_vectored(cx, bytes));
        self.wrote(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|socket| socket.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|socket| socket.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn disables_nagles_algorithm_and_returns_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free address");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).await;
        let (socket, _) = listener.accept().await.expect("a connection");
        assert!(!socket.nodelay().expect("an option"), "the system does so itself");

        let (budgeted, returned) =
            BudgetedSocket::new(socket, Duration::from_secs(1)).expect("connected");
        drop(budgeted);

        let socket = returned.await.expect("the socket");
        assert!(socket.nodelay().expect("an option"));
        drop(client);
    }
}
