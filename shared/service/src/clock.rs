//! Time, which the storage engine gives together with versions: see [`trestle_kv::time`].

use std::sync::atomic::{AtomicU64, Ordering};

pub use trestle_kv::time::{Clock, ManualClock, SystemClock, Ticks};

/// Times for writes: strictly increasing within the process, whatever the clock behind it does, so that no two writes
/// share a version and a deleted and re-created entity never gets an old one back.
pub struct WriteClock {
    clock: std::sync::Arc<dyn Clock>,
    last: AtomicU64,
}

impl WriteClock {
    /// Follows `clock`.
    #[must_use]
    pub fn new(clock: std::sync::Arc<dyn Clock>) -> Self {
        Self { clock, last: AtomicU64::new(0) }
    }

    /// The time of the clock behind it, to compare with; not for writes.
    pub fn now(&self) -> Ticks {
        self.clock.now()
    }

    /// The time of a write: now, or one tick after the last answer where the clock did not move on.
    pub fn next(&self) -> Ticks {
        let now = self.clock.now().get();
        let following = |last: u64| Some(now.max(last + 1));
        let last = self
            .last
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, following)
            .unwrap_or_else(|last| last);
        Ticks::new(now.max(last + 1)).unwrap_or(Ticks::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(ticks: u64) -> Ticks {
        Ticks::new(ticks).expect("in range")
    }

    #[test]
    fn write_times_increase_even_when_the_clock_steps_back() {
        let manual = std::sync::Arc::new(ManualClock::new(ticks(1000)));
        let clock = WriteClock::new(manual.clone());

        let first = clock.next();
        let same_instant = clock.next();
        manual.set(ticks(10));
        let stepped_back = clock.next();
        manual.set(ticks(5000));
        let caught_up = clock.next();

        assert_eq!(
            [first, same_instant, stepped_back, caught_up].map(Ticks::get),
            [1000, 1001, 1002, 5000]
        );
    }
}
