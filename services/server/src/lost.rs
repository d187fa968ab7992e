//! Listeners that end before they were told to: by a panic, or by themselves.
//!
//! Nothing else would notice: the rest of the process goes on, and calls itself healthy while nobody
//! takes its calls.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use tokio_util::sync::CancellationToken;
use tracing::error;

/// Which listener was lost first, if one was. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Lost {
    listener: Arc<OnceLock<&'static str>>,
    told: CancellationToken,
}

impl Lost {
    /// Its name.
    #[must_use]
    pub fn listener(&self) -> Option<&'static str> {
        self.listener.get().copied()
    }

    /// Waits until one is lost.
    pub async fn happens(&self) {
        self.told.cancelled().await;
    }

    /// Runs a listener, which must not end before `stop`, and never by a panic.
    pub(crate) fn watch<F: Future>(
        &self,
        listener: &'static str,
        stop: CancellationToken,
        serving: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let end = End { listener, stop, lost: self.clone() };
        async move {
            let _end = end;
            serving.await
        }
    }
}

/// Notes the end of a listener, however it comes.
struct End {
    listener: &'static str,
    stop: CancellationToken,
    lost: Lost,
}

impl Drop for End {
    fn drop(&mut self) {
        let is_told = self.stop.is_cancelled() && !std::thread::panicking();
        if !is_told && self.lost.listener.set(self.listener).is_ok() {
            error!(listener = self.listener, "a listener ended unasked, and so does the process");
            self.lost.told.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn watched(stopped: bool, serving: impl Future<Output = ()> + Send + 'static) -> Lost {
        let (lost, stop) = (Lost::default(), CancellationToken::new());
        if stopped {
            stop.cancel();
        }
        // Fails where it panics.
        let _ = tokio::spawn(lost.watch("test", stop, serving)).await;
        lost
    }

    #[tokio::test]
    async fn an_end_that_was_asked_for_is_no_loss() {
        assert_eq!(watched(true, async {}).await.listener(), None);
    }

    #[tokio::test]
    async fn an_end_before_it_was_asked_for_and_a_panic_at_any_time_are_losses() {
        let early = watched(false, async {}).await;
        let broken = watched(true, async { panic!("a defect") }).await;

        for lost in [early, broken] {
            assert_eq!(lost.listener(), Some("test"));
            lost.happens().await;
        }
    }
}
