//! The deadline by which a request of one message must have arrived.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// The time by which a request must have arrived. The timer is armed only to wait.
pub(super) struct ArrivalDeadline {
    at: Instant,
    clock: Option<Pin<Box<Sleep>>>,
}

impl ArrivalDeadline {
    pub(super) fn new(within: Duration) -> Self {
        Self { at: Instant::now() + within, clock: None }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        self.clock.get_or_insert_with(|| Box::pin(sleep_until(at))).as_mut().poll(cx)
    }
}
