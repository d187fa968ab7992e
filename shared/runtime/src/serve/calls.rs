//! Runs the calls of a connection over HTTP/2: in the task of the connection while they are answered
//! at once, as tasks of their own otherwise.
//!
//! A task for each call costs memory, a place in the scheduler's lists, and often a move to another
//! processor: a good part of what a read from memory costs. Most reads never wait, so a call is
//! expected to do as the last one on its connection did. Where calls wait, for a sync or for another
//! process, they get tasks and are polled once less; where they compute for long, others on the
//! connection must not wait for them.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use futures::FutureExt as _;

use super::reader::attend;

/// How long a call may compute that is expected to be answered at once: a hundred of them, as many as
/// a connection has by default, hold up whatever else it has to do for ten milliseconds at worst.
const QUICK: Duration = Duration::from_micros(100);

/// Runs the calls of one connection. Clones share what was learned of it.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    /// How long a client may take nothing of its answer.
    patience: Duration,
    /// Whether the last call was answered at once.
    was_quick: Arc<AtomicBool>,
}

impl Calls {
    /// Of a new connection.
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, was_quick: Arc::default() }
    }

    /// Polls a call for the first time, and learns of it.
    fn first<T>(&self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        let started = Instant::now();
        let polled = poll();
        self.was_quick.store(polled.is_ready() && started.elapsed() <= QUICK, Relaxed);
        polled
    }
}

impl<F> hyper::rt::Executor<F> for Calls
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, call: F) {
        let mut call = attend(call, self.patience);
        if !self.was_quick.load(Relaxed) {
            let calls = self.clone();
            tokio::spawn(async move {
                let first = poll_fn(|cx| Poll::Ready(calls.first(|| call.poll_unpin(cx))));
                if first.await.is_pending() {
                    call.await;
                }
            });
            return;
        }
        // Nobody is to be woken: a call that waits is polled again as a task. One that panics ends
        // alone, as a task would.
        let mut cx = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| self.first(|| call.poll_unpin(&mut cx))));
        if let Ok(Poll::Pending) = polled {
            tokio::spawn(call);
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::rt::Executor as _;
    use tokio::sync::oneshot;

    use super::*;

    /// Runs a call, and tells whether it was over when the connection went on.
    fn is_over_at_once(calls: &Calls, call: impl Future<Output = ()> + Send + 'static) -> bool {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        calls.execute(async move {
            call.await;
            over.store(true, Relaxed);
        });
        is_over.load(Relaxed)
    }

    /// Lets the tasks run that were made: there is one thread.
    async fn others() {
        tokio::task::yield_now().await;
    }

    /// Of a connection whose last call was answered at once.
    async fn quick() -> Calls {
        let calls = Calls::new(Duration::from_secs(60));
        assert!(!is_over_at_once(&calls, async {}), "nothing is known of the first");
        others().await;
        calls
    }

    #[tokio::test]
    async fn calls_that_are_answered_at_once_get_no_task() {
        let calls = quick().await;

        assert!(is_over_at_once(&calls, async {}));
        assert!(is_over_at_once(&calls, async {}));
    }

    #[tokio::test]
    async fn a_call_that_waits_gets_one_and_so_do_others_until_one_does_not() {
        let (calls, (answer, answered)) = (quick().await, oneshot::channel::<()>());
        let (over, is_over) = oneshot::channel();

        let waits = async {
            answered.await.expect("it is answered");
            over.send(()).expect("somebody looks");
        };
        assert!(!is_over_at_once(&calls, waits));
        assert!(!is_over_at_once(&calls, async {}), "the one before waited");
        others().await;
        assert!(is_over_at_once(&calls, async {}), "the one before did not");

        answer.send(()).expect("the call is there");
        is_over.await.expect("it was woken");
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the call is to hold its thread")]
    async fn a_call_that_computes_for_long_is_not_followed_by_another() {
        let calls = quick().await;

        assert!(is_over_at_once(&calls, async { std::thread::sleep(2 * QUICK) }));
        assert!(!is_over_at_once(&calls, async {}));
    }

    #[tokio::test]
    async fn a_call_that_panics_leaves_the_connection_alone() {
        let calls = quick().await;

        assert!(!is_over_at_once(&calls, async { panic!("a defect") }));
        assert!(is_over_at_once(&calls, async {}));
    }
}
