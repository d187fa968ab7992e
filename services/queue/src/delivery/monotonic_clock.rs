//! The time of the queue service: it never goes back, even if the system clock does.
//!
//! The order of delivery, and the cursor before which no message is stored, depend on a time that does not go back.
//! When the clock steps back, this one continues from its last value and runs a sixteenth slower until the two match
//! again. Opening a queue raises it to the cursor of the queue, and to the last stored time, which is written every few
//! seconds while a queue is in use: so messages that were visible before a restart are visible after it.

use std::sync::{Arc, Mutex, PoisonError};

use trestle_service::clock::{Clock, Ticks};

/// The share of elapsed time that is used to close the gap.
const SLOWER_BY: u64 = 16;

/// A clock that never goes back.
pub(crate) struct MonotonicClock {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// The last value of the system clock.
    seen: u64,
    /// How far this clock is ahead of it.
    ahead: u64,
    /// The last value that was returned.
    said: u64,
}

impl MonotonicClock {
    /// Follows `clock`.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let seen = clock.now().get();
        Self { clock, state: Mutex::new(State { seen, ahead: 0, said: seen }) }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Ticks {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.advance(self.clock.now().get());
        Ticks::new(state.said).unwrap_or(Ticks::MAX)
    }

    /// Raises the clock to `time`, unless it is later already.
    pub(crate) fn raise(&self, time: Ticks) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.advance(self.clock.now().get());
        state.ahead += time.get().saturating_sub(state.said);
        state.said = state.said.max(time.get());
    }
}

impl State {
    fn advance(&mut self, now: u64) {
        if now < self.seen {
            self.ahead += self.seen - now;
        } else {
            let passed = now - self.seen;
            self.ahead = self.ahead.saturating_sub(passed / SLOWER_BY);
        }
        self.seen = now;
        self.said = self.said.max(now.saturating_add(self.ahead));
    }
}

#[cfg(test)]
mod tests;
