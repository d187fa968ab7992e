//! Writes of a connection over HTTP/2, gathered until its task runs again.
//!
//! `h2` writes every larger frame on its own, so each answer was a system call, and the other end
//! was woken for each: on the loopback a good part of what a small call costs. A task that has
//! written is put behind those that are about to write to the same connection; what they add goes
//! out with it. Nobody waits for a timer: on an idle machine the task runs again at once.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes that are held back; a stream of answers goes out in pieces of this size.
const FULL_BYTES: usize = 64 * 1024;
/// The buffer where there is little to say. An idle connection has none.
const SMALL_BYTES: usize = 8 * 1024;

/// Counts how often the task of a connection ran. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns(Arc<AtomicU64>);

impl Turns {
    /// Runs the task of the connection once.
    pub(super) fn poll<F: Future>(
        &self,
        task: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        self.0.fetch_add(1, Relaxed);
        task.poll(cx)
    }

    fn current(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A stream that holds back what is written until the next turn of the task that writes.
///
/// It says of a flush that it is done when it has seen to it that one will happen: the task is
/// woken, and has to flush in every turn, as `h2` does. Where the other end takes nothing more,
/// writes and flushes wait as they do without this.
#[derive(Debug)]
pub(super) struct Gathered<S> {
    stream: S,
    turns: Turns,
    buffer: BytesMut,
    /// The turn in which a flush was put off.
    put_off: Option<u64>,
}

impl<S> Gathered<S> {
    /// Gathers what is written to `stream` by a task that runs in these turns.
    pub(super) fn new(stream: S, turns: Turns) -> Self {
        Self { stream, turns, buffer: BytesMut::new(), put_off: None }
    }

    /// As much of `bytes` as there is room for.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let room = FULL_BYTES.saturating_sub(self.buffer.len());
        let (taken, _) = bytes.split_at(bytes.len().min(room));
        if self.buffer.capacity() - self.buffer.len() < taken.len() {
            let is_small = self.buffer.len() + taken.len() <= SMALL_BYTES;
            let whole = if is_small { SMALL_BYTES } else { FULL_BYTES };
            self.buffer.reserve(whole - self.buffer.len());
        }
        self.buffer.extend_from_slice(taken);
        taken.len()
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    /// Writes what was held back.
    fn poll_release(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.buffer.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.buffer))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.buffer.advance(written);
        }
        self.put_off = None;
        self.buffer = BytesMut::new();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.buffer.len() >= FULL_BYTES {
            ready!(self.poll_release(cx))?;
        }
        Poll::Ready(Ok(parts.iter().map(|part| self.take(part)).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.buffer.is_empty() {
            return Pin::new(&mut self.stream).poll_flush(cx);
        }
        let now = self.turns.current();
        match self.put_off {
            None => {
                self.put_off = Some(now);
                cx.waker().wake_by_ref();
                Poll::Ready(Ok(()))
            }
            Some(turn) if turn == now => Poll::Ready(Ok(())),
            Some(_) => {
                ready!(self.poll_release(cx))?;
                Pin::new(&mut self.stream).poll_flush(cx)
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_release(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        pin::pin,
        sync::atomic::AtomicUsize,
        task::{Wake, Waker},
    };

    use super::*;

    /// The other end: what arrived, write by write, and how much it takes yet.
    #[derive(Debug, Default)]
    struct Wire {
        writes: Vec<Vec<u8>>,
        room: usize,
        is_shut: bool,
    }

    impl AsyncWrite for Wire {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Poll::Pending;
            }
            self.room -= taken;
            self.writes.push(bytes[..taken].to_vec());
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.is_shut = true;
            Poll::Ready(Ok(()))
        }
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// A stream of a task, which is made to run turn by turn.
    struct Task {
        stream: Gathered<Wire>,
        turns: Turns,
        wakes: Arc<Wakes>,
    }

    impl Task {
        fn with_room(room: usize) -> Self {
            let turns = Turns::default();
            let stream = Gathered::new(Wire { room, ..Wire::default() }, turns.clone());
            Self { stream, turns, wakes: Arc::default() }
        }

        fn turn<T>(
            &mut self,
            run: impl FnOnce(Pin<&mut Gathered<Wire>>, &mut Context<'_>) -> T,
        ) -> T {
            let (waker, stream) = (Waker::from(Arc::clone(&self.wakes)), &mut self.stream);
            let task = async { poll_fn(|_| Poll::Ready(())).await };
            let mut cx = Context::from_waker(&waker);
            assert!(self.turns.poll(pin!(task), &mut cx).is_ready());
            run(Pin::new(stream), &mut cx)
        }

        fn wakes(&self) -> usize {
            self.wakes.0.load(Relaxed)
        }
    }

    fn write(stream: Pin<&mut Gathered<Wire>>, cx: &mut Context<'_>, bytes: &[u8]) -> usize {
        match stream.poll_write(cx, bytes) {
            Poll::Ready(written) => written.expect("it is held back"),
            Poll::Pending => 0,
        }
    }

    #[test]
    fn what_is_flushed_in_one_turn_is_written_once_in_the_next() {
        let mut task = Task::with_room(100);

        task.turn(|mut stream, cx| {
            for frame in [b"one ", b"two "] {
                assert_eq!(write(stream.as_mut(), cx, frame), 4);
                assert!(stream.as_mut().poll_flush(cx).is_ready());
            }
        });
        assert_eq!(task.stream.stream.writes.len(), 0, "others may add something");
        assert_eq!(task.wakes(), 1, "it comes back once");
        task.turn(|mut stream, cx| {
            write(stream.as_mut(), cx, b"three");
            assert!(stream.as_mut().poll_flush(cx).is_ready());
        });
        assert_eq!(task.stream.stream.writes, [b"one two three"]);

        task.turn(|stream, cx| assert!(stream.poll_flush(cx).is_ready()));
        assert_eq!(task.wakes(), 1, "nothing is left to do");
    }

    #[test]
    fn a_full_buffer_is_written_at_once_and_in_order() {
        let mut task = Task::with_room(usize::MAX);
        let frames: Vec<u8> = (0..=250).cycle().take(3 * FULL_BYTES).collect();

        task.turn(|mut stream, cx| {
            let mut at = 0;
            while at < frames.len() {
                let (half, end) = (at + 7_000, frames.len());
                let parts = [&frames[at..half.min(end)], &frames[half.min(end)..end]];
                let parts = parts.map(IoSlice::new);
                let Poll::Ready(Ok(written @ 1..)) =
                    stream.as_mut().poll_write_vectored(cx, &parts)
                else {
                    panic!("there is room");
                };
                at += written;
                assert!(
                    stream.buffer.len() <= FULL_BYTES && stream.buffer.capacity() <= FULL_BYTES
                );
            }
        });
        task.turn(|stream, cx| assert!(stream.poll_shutdown(cx).is_ready()));

        assert_eq!(task.stream.stream.writes.concat(), frames);
        assert!(task.stream.stream.is_shut);
        assert_eq!(task.stream.buffer.capacity(), 0, "an idle connection holds no buffer");
    }

    #[test]
    fn who_takes_nothing_holds_up_flushes_writes_and_the_end() {
        let mut task = Task::with_room(10);
        let frame = vec![7; FULL_BYTES];

        task.turn(|mut stream, cx| {
            assert_eq!(write(stream.as_mut(), cx, &frame), FULL_BYTES);
            assert!(stream.as_mut().poll_flush(cx).is_ready(), "put off");
        });
        task.turn(|mut stream, cx| {
            assert!(stream.as_mut().poll_flush(cx).is_pending());
            assert_eq!(write(stream.as_mut(), cx, &frame), 10, "as much as was taken");
            assert_eq!(write(stream.as_mut(), cx, &frame), 0);
            assert!(stream.as_mut().poll_shutdown(cx).is_pending());
        });

        task.stream.stream.room = usize::MAX;
        task.turn(|stream, cx| assert!(stream.poll_flush(cx).is_ready()));
        assert_eq!(task.stream.stream.writes.concat().len(), FULL_BYTES + 10);
    }
}
