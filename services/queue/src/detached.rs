//! Work that is finished also when nobody waits for it any more.
//!
//! A commit stands once it is queued, whatever its caller does. What has to follow it, such as telling the index, must
//! then follow too, or a message would be stored that nobody delivers.

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

/// The same work; if it has begun when it is dropped, a task of its own finishes it.
pub(crate) fn detached<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Detached<T> {
    Detached { work: Some(Box::pin(work)), has_begun: false }
}

impl<T: Send + 'static> Future for Detached<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.has_begun = true;
        // Taken out meanwhile: work that panics is not to be polled again.
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
        // Without a runtime the process is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { drop(work.await) });
        }
    }
}

#[cfg(test)]
mod tests;
