use std::{
    future::poll_fn,
    pin::pin,
    sync::atomic::AtomicUsize,
    task::{Wake, Waker},
};

use hyper::rt::Executor as _;
use tokio::sync::oneshot;

use super::*;

/// A socket: its writes, and how many bytes it accepts.
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
        let accepted = bytes.len().min(self.room);
        if accepted == 0 {
            return Poll::Pending;
        }
        self.room -= accepted;
        self.writes.push(bytes[..accepted].to_vec());
        Poll::Ready(Ok(accepted))
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

/// The stream of a task that a test polls step by step.
struct PolledTask {
    stream: CoalescedWrites<Wire>,
    polls: PollCount,
    wakes: Arc<Wakes>,
}

impl PolledTask {
    fn with_room(room: usize) -> Self {
        let polls = PollCount::default();
        let stream = CoalescedWrites::new(Wire { room, ..Wire::default() }, polls.clone());
        Self { stream, polls, wakes: Arc::default() }
    }

    fn poll<T>(
        &mut self,
        run: impl FnOnce(Pin<&mut CoalescedWrites<Wire>>, &mut Context<'_>) -> T,
    ) -> T {
        let (waker, stream) = (Waker::from(Arc::clone(&self.wakes)), &mut self.stream);
        let task = async { poll_fn(|_| Poll::Ready(())).await };
        let mut cx = Context::from_waker(&waker);
        assert!(self.polls.poll(pin!(task), &mut cx).is_ready());
        run(Pin::new(stream), &mut cx)
    }

    fn wakes(&self) -> usize {
        self.wakes.0.load(Relaxed)
    }
}

fn write(stream: Pin<&mut CoalescedWrites<Wire>>, cx: &mut Context<'_>, bytes: &[u8]) -> usize {
    match stream.poll_write(cx, bytes) {
        Poll::Ready(written) => written.expect("it is buffered"),
        Poll::Pending => 0,
    }
}

#[test]
fn writes_once_what_was_flushed_in_the_previous_poll() {
    let mut task = PolledTask::with_room(100);

    task.poll(|mut stream, cx| {
        for frame in [b"one ", b"two "] {
            assert_eq!(write(stream.as_mut(), cx, frame), 4);
            assert!(stream.as_mut().poll_flush(cx).is_ready());
        }
    });
    assert_eq!(task.stream.stream.writes.len(), 0, "written before the next poll");
    assert_eq!(task.wakes(), 1, "woken once");
    task.poll(|mut stream, cx| {
        write(stream.as_mut(), cx, b"three");
        assert!(stream.as_mut().poll_flush(cx).is_ready());
    });
    assert_eq!(task.stream.stream.writes, [b"one two three"]);

    task.poll(|stream, cx| assert!(stream.poll_flush(cx).is_ready()));
    assert_eq!(task.wakes(), 1, "woken again");
}

#[test]
fn writes_a_full_buffer_at_once_and_in_order() {
    let mut task = PolledTask::with_room(usize::MAX);
    let frames: Vec<u8> = (0..=250).cycle().take(3 * WRITE_BYTES_MAX).collect();

    task.poll(|mut stream, cx| {
        let mut at = 0;
        while at < frames.len() {
            let (half, end) = (at + 7_000, frames.len());
            let parts = [&frames[at..half.min(end)], &frames[half.min(end)..end]];
            let parts = parts.map(IoSlice::new);
            let Poll::Ready(Ok(written @ 1..)) = stream.as_mut().poll_write_vectored(cx, &parts)
            else {
                panic!("the socket accepts writes");
            };
            at += written;
            assert!(
                stream.buffer.len() <= WRITE_BYTES_MAX
                    && stream.buffer.capacity() <= WRITE_BYTES_MAX
            );
        }
    });
    task.poll(|stream, cx| assert!(stream.poll_shutdown(cx).is_ready()));

    assert_eq!(task.stream.stream.writes.concat(), frames);
    assert!(task.stream.stream.is_shut);
    assert_eq!(task.stream.buffer.capacity(), 0, "an idle connection holds no buffer");
}

#[test]
fn a_full_socket_blocks_flush_write_and_shutdown() {
    let mut task = PolledTask::with_room(10);
    let frame = vec![7; WRITE_BYTES_MAX];

    task.poll(|mut stream, cx| {
        assert_eq!(write(stream.as_mut(), cx, &frame), WRITE_BYTES_MAX);
        assert!(stream.as_mut().poll_flush(cx).is_ready(), "deferred");
    });
    task.poll(|mut stream, cx| {
        assert!(stream.as_mut().poll_flush(cx).is_pending());
        assert_eq!(write(stream.as_mut(), cx, &frame), 10, "as much as was written");
        assert_eq!(write(stream.as_mut(), cx, &frame), 0);
        assert!(stream.as_mut().poll_shutdown(cx).is_pending());
    });

    task.stream.stream.room = usize::MAX;
    task.poll(|stream, cx| assert!(stream.poll_flush(cx).is_ready()));
    assert_eq!(task.stream.stream.writes.concat().len(), WRITE_BYTES_MAX + 10);
}

/// Runs a call; whether it completed before the connection continued.
fn completes_inline(
    calls: &InlineExecutor,
    call: impl Future<Output = ()> + Send + 'static,
) -> bool {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    calls.execute(async move {
        call.await;
        over.store(true, Relaxed);
    });
    is_over.load(Relaxed)
}

/// Runs the spawned tasks, on one thread.
async fn run_tasks() {
    tokio::task::yield_now().await;
}

/// Of a connection whose last call completed in its first poll.
async fn quick() -> InlineExecutor {
    let calls = InlineExecutor::new(Duration::from_secs(60));
    assert!(!completes_inline(&calls, async {}), "the first call gets a task");
    run_tasks().await;
    calls
}

#[tokio::test]
async fn runs_calls_inline_while_they_complete_in_their_first_poll() {
    let calls = quick().await;

    assert!(completes_inline(&calls, async {}));
    assert!(completes_inline(&calls, async {}));
}

#[tokio::test]
async fn spawns_a_call_that_waits_and_the_next_one() {
    let (calls, (answer, answered)) = (quick().await, oneshot::channel::<()>());
    let (over, is_over) = oneshot::channel();

    let waits = async {
        answered.await.expect("it is answered");
        over.send(()).expect("the test waits");
    };
    assert!(!completes_inline(&calls, waits));
    assert!(!completes_inline(&calls, async {}), "the one before waited");
    run_tasks().await;
    assert!(completes_inline(&calls, async {}), "the one before did not");

    answer.send(()).expect("the call exists");
    is_over.await.expect("it was woken");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the call is to hold its thread")]
async fn spawns_the_call_after_one_that_computes_for_long() {
    let calls = quick().await;

    assert!(completes_inline(&calls, async { std::thread::sleep(2 * QUICK) }));
    assert!(!completes_inline(&calls, async {}));
}

#[tokio::test]
async fn a_panic_of_a_call_does_not_end_the_connection() {
    let calls = quick().await;

    assert!(!completes_inline(&calls, async { panic!("a defect") }));
    assert!(completes_inline(&calls, async {}));
}
