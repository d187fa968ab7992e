//! Which snapshots are still open, as far as compaction needs it: whether every one that began before an instant
//! is closed.
//!
//! The database has the oldest snapshot too, but does not export it. Snapshots count themselves in one of two
//! epochs. To detect that all earlier ones are closed, the epoch is switched, and the count of the former one reaches
//! zero: those that open meanwhile count elsewhere. Each thread has counts of its own, and all of them reach zero.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::per_thread::PerThread;

/// How often the count is looked at while snapshots are open.
const POLL: Duration = Duration::from_millis(1);

/// Counts open snapshots.
#[derive(Debug, Default)]
pub(super) struct ReadEpochs {
    is_odd: AtomicBool,
    counts: PerThread<Arc<EpochCounts>>,
    switching: Mutex<()>,
}

/// The open snapshots of some threads. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct EpochCounts {
    even: AtomicUsize,
    odd: AtomicUsize,
}

/// An open snapshot. A clone counts in the same epoch.
#[derive(Debug)]
pub(super) struct EpochGuard {
    counts: Arc<EpochCounts>,
    is_odd: bool,
}

impl ReadEpochs {
    /// Counts a snapshot that is opened next.
    pub(super) fn enter(&self) -> EpochGuard {
        let (_, counts) = self.counts.own();
        loop {
            let guard = EpochGuard::new(Arc::clone(counts), self.is_odd.load(SeqCst));
            // Else it was switched in between, and the count of the former epoch may be final already.
            if self.is_odd.load(SeqCst) == guard.is_odd {
                return guard;
            }
        }
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
        // Once a count of the former epoch was zero, it counts nothing that stays open.
        self.counts.iter().all(|counts| {
            while counts.of(is_odd).load(SeqCst) > 0 {
                if started.elapsed() >= within {
                    return false;
                }
                std::thread::sleep(POLL);
            }
            true
        })
    }
}

impl EpochCounts {
    fn of(&self, is_odd: bool) -> &AtomicUsize {
        if is_odd { &self.odd } else { &self.even }
    }
}

impl EpochGuard {
    fn new(counts: Arc<EpochCounts>, is_odd: bool) -> Self {
        counts.of(is_odd).fetch_add(1, SeqCst);
        Self { counts, is_odd }
    }
}

impl Clone for EpochGuard {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.counts), self.is_odd)
    }
}

impl Drop for EpochGuard {
    fn drop(&mut self) {
        self.counts.of(self.is_odd).fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests;
