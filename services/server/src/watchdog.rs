//! Detects listeners that end before a shutdown: by a panic, or by themselves.
//!
//! Nothing else would detect it: the rest of the process continues, and health reports SERVING while
//! connections are refused.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use tokio_util::sync::CancellationToken;
use tracing::error;

/// Watches the listeners of a process, and stores which of them failed first. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ListenerWatchdog {
    failed: Arc<OnceLock<String>>,
    reported: CancellationToken,
}

impl ListenerWatchdog {
    /// The key of the listener that failed.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Waits until a listener fails.
    pub async fn failure(&self) {
        self.reported.cancelled().await;
    }

    /// Runs a listener, which must not end before `stop`, and never by a panic.
    pub(crate) fn watch<F: Future>(
        &self,
        listener: String,
        stop: CancellationToken,
        serving: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let end = ListenerEnd { listener, stop, watchdog: self.clone() };
        async move {
            let _end = end;
            serving.await
        }
    }
}

/// Dropped when a listener ends, however it does.
struct ListenerEnd {
    listener: String,
    stop: CancellationToken,
    watchdog: ListenerWatchdog,
}

impl Drop for ListenerEnd {
    fn drop(&mut self) {
        let is_shutdown = self.stop.is_cancelled() && !std::thread::panicking();
        if !is_shutdown && self.watchdog.failed.set(self.listener.clone()).is_ok() {
            error!(listener = self.listener, "listener failed; shutting down");
            self.watchdog.reported.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn watched(
        is_shutdown: bool,
        serving: impl Future<Output = ()> + Send + 'static,
    ) -> ListenerWatchdog {
        let (watchdog, stop) = (ListenerWatchdog::default(), CancellationToken::new());
        if is_shutdown {
            stop.cancel();
        }
        // Fails where it panics.
        let _ = tokio::spawn(watchdog.watch("test".to_owned(), stop, serving)).await;
        watchdog
    }

    #[tokio::test]
    async fn accepts_a_listener_that_ends_in_a_shutdown() {
        assert_eq!(watched(true, async {}).await.failed(), None);
    }

    #[tokio::test]
    async fn reports_a_listener_that_ends_before_a_shutdown_or_panics_at_any_time() {
        let early = watched(false, async {}).await;
        let broken = watched(true, async { panic!("a defect") }).await;

        for watchdog in [early, broken] {
            assert_eq!(watchdog.failed(), Some("test"));
            watchdog.failure().await;
        }
    }
}
