//! The time by which a message of a request has to arrive.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// See the module. The timer is armed only to wait.
pub(super) struct ArrivalDeadline {
    at: Instant,
    clock: Option<Pin<Box<Sleep>>>,
    /// Within which time each further message has to follow; none: the deadline is that of the whole request.
    next_within: Option<Duration>,
}

impl ArrivalDeadline {
    pub(super) fn new(within: Duration, next_within: Option<Duration>) -> Self {
        Self { at: Instant::now() + within, clock: None, next_within }
    }

    /// A message has arrived.
    pub(super) fn arrived(&mut self) {
        if let Some(within) = self.next_within {
            self.at = Instant::now() + within;
            self.clock = None;
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        self.clock.get_or_insert_with(|| Box::pin(sleep_until(at))).as_mut().poll(cx)
    }
}
