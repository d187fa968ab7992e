//! Detached (uncancellable) tasks: they finish even if their caller is cancelled.
//!
//! A queued commit cannot be cancelled. The steps after it, such as the update of the index, must then run too, or a
//! message would be stored and never delivered. What they return is dropped, which releases received messages.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// See [`detached`].
pub(crate) struct Detached<T: Send + 'static> {
    work: Option<Work<T>>,
    has_begun: bool,
}

/// Wraps a future; if it was polled before it is dropped, a new task finishes it.
pub(crate) fn detached<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Detached<T> {
    Detached { work: Some(Box::pin(work)), has_begun: false }
}

impl<T: Send + 'static> Future for Detached<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.has_begun = true;
        // Removed meanwhile: a future that panicked must not be polled again.
        let Some(mut work) = self.work.take() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Detached<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take().filter(|_| self.has_begun) else {
            return;
        };
        // Without a runtime the process is shutting down.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { drop(work.await) });
        }
    }
}

#[cfg(test)]
mod tests;
