//! How far a load has come. A test waits for progress, not for time: what gets done in a time is the machine's.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// However busy the machine is, a load that gets on makes the progress of a test in this time.
const WITHIN: Duration = Duration::from_secs(60);

/// What a load has done so far.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU64);

impl Progress {
    /// One more is done.
    pub(crate) fn step(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// How many are done.
    pub(crate) fn made(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Waits until some more are done.
    pub(crate) async fn by(&self, more: u64) {
        let begun = self.made();
        let goal = begun + more;
        let getting_on = async {
            while self.made() < goal {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(WITHIN, getting_on).await;
        assert!(waited.is_ok(), "the load hangs: {begun} then, {} now, not {goal}", self.made());
    }
}
