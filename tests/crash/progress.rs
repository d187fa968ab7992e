//! The progress of a load. A test waits for progress, not for time, which depends on the machine.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use trestle_tests::HANG;

/// A counter of completed operations.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU64);

impl Progress {
    /// Counts one operation.
    pub(crate) fn step(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// The count.
    pub(crate) fn made(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Waits for so many more operations.
    pub(crate) async fn by(&self, more: u64) {
        let begun = self.made();
        let goal = begun + more;
        let getting_on = async {
            while self.made() < goal {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(HANG, getting_on).await;
        assert!(waited.is_ok(), "the load hangs: {begun} then, {} now, not {goal}", self.made());
    }
}
