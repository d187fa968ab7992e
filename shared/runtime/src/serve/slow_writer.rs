//! The slow-writer budget: ends a connection whose client receives no bytes for too long, or too few.
//!
//! The budget is a time. Waiting for the client spends it, and bytes that the client receives refill it, so a client
//! that receives a few bytes now and then does not hold a connection without a limit. The socket is below the
//! encryption: the bytes that the client's machine accepted are counted.

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

/// Bytes that refill the whole budget. A client must receive as many within it.
const REFILL_BYTES: usize = 64 * 1024;

/// How long a client may make a writer wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteBudget {
    whole: Duration,
    left: Duration,
}

impl WriteBudget {
    /// A full budget.
    pub(super) fn new(whole: Duration) -> Self {
        Self { whole, left: whole }
    }

    /// How long the client may make the writer wait from now on.
    pub(super) fn left(&self) -> Duration {
        self.left
    }

    /// The writer waited for this time.
    pub(super) fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }

    /// The client received this many bytes.
    pub(super) fn refill(&mut self, bytes: usize) {
        if self.left < self.whole {
            let share = bytes.min(REFILL_BYTES) as f64 / REFILL_BYTES as f64;
            self.left = self.whole.min(self.left + self.whole.mul_f64(share));
        }
    }
}

/// A socket with a slow-writer budget.
pub(super) struct BudgetedSocket {
    socket: TcpStream,
    budget: WriteBudget,
    /// Since when the socket is full, and when the budget will be spent.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl BudgetedSocket {
    /// A socket whose client may make writes wait up to `whole`. Written bytes are sent at once: with
    /// Nagle's algorithm the end of each response would wait for an acknowledgement, 40 ms and more.
    ///
    /// # Errors
    /// A connection that is already closed.
    pub(super) fn new(socket: TcpStream, whole: Duration) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, budget: WriteBudget::new(whole), stalled: None })
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

impl AsyncRead for BudgetedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

impl AsyncWrite for BudgetedSocket {
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

    #[test]
    fn waiting_spends_the_budget_and_received_bytes_refill_it() {
        let mut budget = WriteBudget::new(Duration::from_secs(64));

        budget.spend(Duration::from_secs(60));
        assert_eq!(budget.left(), Duration::from_secs(4));
        budget.refill(REFILL_BYTES / 64);
        assert_eq!(budget.left(), Duration::from_secs(5));
        budget.refill(REFILL_BYTES * 9);
        assert_eq!(budget.left(), Duration::from_secs(64));
        budget.spend(Duration::MAX);
        assert_eq!(budget.left(), Duration::ZERO);
    }

    #[test]
    fn only_a_client_that_receives_enough_bytes_keeps_its_connection() {
        for (bytes, has_budget) in [(REFILL_BYTES / 2, true), (REFILL_BYTES / 4, false)] {
            let mut budget = WriteBudget::new(Duration::from_secs(60));
            let steps = (0..1000).take_while(|_| {
                budget.spend(Duration::from_secs(29));
                // A spent budget ends the connection before the client receives more.
                let has_budget = !budget.left().is_zero();
                budget.refill(bytes);
                has_budget
            });
            assert_eq!(steps.count() == 1000, has_budget, "{bytes}");
        }
    }

    #[tokio::test]
    async fn disables_nagles_algorithm() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free address");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).await;
        let (socket, _) = listener.accept().await.expect("a connection");
        assert!(!socket.nodelay().expect("an option"), "the system does so itself");

        let budgeted = BudgetedSocket::new(socket, Duration::from_secs(1)).expect("connected");

        assert!(budgeted.socket.nodelay().expect("an option"));
        drop(client);
    }
}
