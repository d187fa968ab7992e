//! Which snapshots are still open, as far as compaction needs it: whether every one that began before an instant
//! is closed.
//!
//! The database has the oldest snapshot too, but does not export it. Snapshots count themselves in one of two
//! epochs. To detect that all earlier ones are closed, the epoch is switched, and the count of the former one reaches
//! zero: those that open meanwhile count elsewhere.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the count is looked at while snapshots are open.
const POLL: Duration = Duration::from_millis(1);

/// Counts open snapshots.
#[derive(Debug, Default)]
pub(super) struct ReadEpochs {
    is_odd: AtomicBool,
    even: AtomicUsize,
    odd: AtomicUsize,
    switching: Mutex<()>,
}

/// An open snapshot. A clone counts in the same epoch.
#[derive(Debug)]
pub(super) struct EpochGuard {
    epochs: Arc<ReadEpochs>,
    is_odd: bool,
}

impl ReadEpochs {
    /// Counts a snapshot that is opened next.
    pub(super) fn enter(self: &Arc<Self>) -> EpochGuard {
        loop {
            let guard = self.count(self.is_odd.load(SeqCst));
            // Else it was switched in between, and the count of the former epoch may be final already.
            if self.is_odd.load(SeqCst) == guard.is_odd {
                return guard;
            }
        }
    }

    fn count(self: &Arc<Self>, is_odd: bool) -> EpochGuard {
        self.open(is_odd).fetch_add(1, SeqCst);
        EpochGuard { epochs: Arc::clone(self), is_odd }
    }

    fn open(&self, is_odd: bool) -> &AtomicUsize {
        if is_odd { &self.odd } else { &self.even }
    }

    /// Waits until every snapshot that was open at the call is closed. False if one is still open after `within`.
    pub(super) fn pass(&self, within: Duration) -> bool {
        let _one_at_a_time = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        let is_odd = self.is_odd.load(SeqCst);
        // The other one is not empty only if an earlier call gave up.
        self.is_closed(!is_odd, started, within) && {
            self.is_odd.store(!is_odd, SeqCst);
            self.is_closed(is_odd, started, within)
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the threads of an engine are not async workers")]
    fn is_closed(&self, is_odd: bool, started: Instant, within: Duration) -> bool {
        while self.open(is_odd).load(SeqCst) > 0 {
            if started.elapsed() >= within {
                return false;
            }
            std::thread::sleep(POLL);
        }
        true
    }
}

impl Clone for EpochGuard {
    fn clone(&self) -> Self {
        self.epochs.count(self.is_odd)
    }
}

impl Drop for EpochGuard {
    fn drop(&mut self) {
        self.epochs.open(self.is_odd).fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests;
