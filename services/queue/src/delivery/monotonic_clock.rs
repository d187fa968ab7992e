//! The time of the queue service: it never goes back, also where the clock of the machine does.
//!
//! The order of delivery, and the mark behind which nothing can lie, rest on times that do not fall. When the clock
//! steps back, this one goes on from where it was and runs a sixteenth slower until the two agree again. A queue that
//! is opened raises it to where the queue had come before a restart, and to the time that was noted last, every few
//! seconds while a queue is in use: so what was visible then is visible again.

use std::sync::{Arc, Mutex, PoisonError};

use trestle_service::clock::{Clock, Ticks};

/// How much of the time that passes is used to close the gap.
const SLOWER_BY: u64 = 16;

/// A clock that never goes back.
pub(crate) struct MonotonicClock {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// What the clock said last.
    seen: u64,
    /// How far we are ahead of it.
    ahead: u64,
    /// What we said last.
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

    /// Is `time` or later from now on.
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
