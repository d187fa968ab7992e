//! The slow-client guard: resets a call over HTTP/2 whose client does not receive its response, and
//! only that call. Others on the connection, which may belong to other clients behind a gateway, go
//! on.
//!
//! A client stops a response by granting no flow-control window. Such a call waits in hyper, which has
//! no time limit, so two measures surround it. Large responses are sent in pieces, and once a
//! connection holds many bytes that its client has not received, a response ends only when all its
//! pieces have left the process: a call lasts as long as it holds memory. And the future of the call
//! is polled inside one that distinguishes waiting for the service from waiting for the client, and
//! drops the call when the client exceeds its slow-writer budget; the client gets RST_STREAM.
//!
//! The connection of a client that does not read its socket at all is closed, by the budget of the socket.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};
use tracing::debug;

use super::slow_writer::WriteBudget;

/// The progress of the response of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ResponseProgress {
    /// Pieces that were sent.
    parts: u32,
    /// Bytes of them.
    bytes: usize,
    /// Whether the call waits for the client to receive one.
    pub(super) waits_for_client: bool,
}

tokio::task_local! {
    /// Of the call that is being polled.
    static PROGRESS: Cell<ResponseProgress>;
}

impl ResponseProgress {
    /// The client has one more piece to receive.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.parts = self.parts.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
        self.waits_for_client = true;
    }
}

/// Records progress, where the call is guarded.
pub(super) fn record(change: impl FnOnce(&mut ResponseProgress)) {
    let recorded = PROGRESS.try_with(|cell| {
        let mut progress = cell.get();
        change(&mut progress);
        cell.set(progress);
    });
    // Calls over HTTP/1 are not: the budget of the socket applies to them.
    recorded.ok();
}

/// A call that ends when its client has spent the budget. The call itself is boxed, as the returned
/// future is moved several times on its way into a task.
pub(super) fn guard(
    call: impl Future<Output = ()>,
    budget: Duration,
) -> impl Future<Output = ()> + Unpin {
    let mut call = Box::pin(call);
    let (mut previous, mut budget) = (ResponseProgress::default(), WriteBudget::new(budget));
    // Runs while the call waits for the client.
    let mut clock: Option<(Instant, Pin<Box<Sleep>>)> = None;
    poll_fn(move |cx| {
        let (polled, progress) = PROGRESS.sync_scope(Cell::new(previous), || {
            let polled = call.as_mut().poll(cx);
            (polled, PROGRESS.with(Cell::get))
        });
        if polled.is_ready() {
            return Poll::Ready(());
        }
        if progress != previous || !progress.waits_for_client {
            if let Some((since, _)) = clock.take() {
                budget.spend(since.elapsed());
            }
            budget.refill(progress.bytes.wrapping_sub(previous.bytes));
        }
        previous = progress;
        if !progress.waits_for_client {
            return Poll::Pending;
        }
        let (_, clock) =
            clock.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(budget.left()))));
        ready!(clock.as_mut().poll(cx));
        debug!("call reset: the client receives its response too slowly");
        Poll::Ready(())
    })
}
