//! Counts the bytes of a body for the quota of the account of its call, and delays those of streams.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::Sleep;

use crate::layer::shares::CallHolder;

/// Longest delay after which the quota is looked at again: it may have been refilled by another setting.
const DELAY_MAX: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct BodyThrottle {
    holder: CallHolder,
    /// Whether it delays: that of a stream. Another body passes as a whole, and later calls wait.
    delays: bool,
    delay: Option<Pin<Box<Sleep>>>,
    /// Whether a delay of it was counted: each body is once.
    is_counted: bool,
}

impl BodyThrottle {
    pub(super) fn new(holder: CallHolder, delays: bool) -> Self {
        Self { holder, delays, delay: None, is_counted: false }
    }

    /// Counts bytes that pass.
    pub(super) fn used(&self, bytes: usize) {
        if let Some(meter) = self.holder.meter() {
            meter.used(bytes);
        }
    }

    /// Waits until the account has bytes left.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(meter) = self.holder.meter().filter(|_| self.delays) else {
            return Poll::Ready(());
        };
        loop {
            if let Some(delay) = &mut self.delay {
                ready!(delay.as_mut().poll(cx));
                self.delay = None;
            }
            let wait = meter.stream_wait();
            if wait.is_zero() {
                return Poll::Ready(());
            }
            if !self.is_counted {
                meter.slowed();
                self.is_counted = true;
            }
            self.delay = Some(Box::pin(tokio::time::sleep(wait.min(DELAY_MAX))));
        }
    }
}
