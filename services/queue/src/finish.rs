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

/// See [`finish`].
pub(crate) struct Finish<T: Send + 'static> {
    work: Option<Work<T>>,
    has_begun: bool,
}

/// The same work; if it has begun when it is dropped, a task of its own finishes it.
pub(crate) fn finish<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Finish<T> {
    Finish { work: Some(Box::pin(work)), has_begun: false }
}

impl<T: Send + 'static> Future for Finish<T> {
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

impl<T: Send + 'static> Drop for Finish<T> {
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
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    };

    use futures::poll;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn work_that_has_begun_is_finished_and_other_work_is_not() {
        let (go, done) = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
        let work = || {
            let (go, done) = (Arc::clone(&go), Arc::clone(&done));
            async move {
                go.notified().await;
                done.fetch_add(1, SeqCst);
            }
        };

        drop(finish(work()));
        let mut begun = finish(work());
        assert!(poll!(&mut begun).is_pending());
        drop(begun);
        tokio::task::yield_now().await;
        go.notify_one();
        go.notify_one();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }

        assert_eq!(done.load(SeqCst), 1);
    }

    #[tokio::test]
    async fn its_result_is_that_of_the_work() {
        assert_eq!(finish(async { 7 }).await, 7);
    }
}
