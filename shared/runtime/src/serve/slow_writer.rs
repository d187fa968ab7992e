//! The slow-writer budget: how long a client may make a writer wait.
//!
//! The budget is a time. Waiting for the client spends it, and bytes that the client receives refill it, so a client
//! that receives a few bytes now and then does not hold a connection without a limit.

use std::time::Duration;

/// Bytes that refill the whole budget. A client must receive as many within it.
const REFILL_BYTES: usize = 64 * 1024;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteBudget {
    whole: Duration,
    left: Duration,
}

impl WriteBudget {
    /// A full budget.
    pub(super) fn new(whole: Duration) -> Self {
        Self { whole, left: whole }
    }

    /// How long the client may make the writer wait from now on.
    pub(super) fn left(&self) -> Duration {
        self.left
    }

    /// The writer waited for this time.
    pub(super) fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }

    /// The client received this many bytes.
    pub(super) fn refill(&mut self, bytes: usize) {
        if self.left < self.whole {
            let share = bytes.min(REFILL_BYTES) as f64 / REFILL_BYTES as f64;
            self.left = self.whole.min(self.left + self.whole.mul_f64(share));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_spends_the_budget_and_received_bytes_refill_it() {
        let mut budget = WriteBudget::new(Duration::from_secs(64));

        budget.spend(Duration::from_secs(60));
        assert_eq!(budget.left(), Duration::from_secs(4));
        budget.refill(REFILL_BYTES / 64);
        assert_eq!(budget.left(), Duration::from_secs(5));
        budget.refill(REFILL_BYTES * 9);
        assert_eq!(budget.left(), Duration::from_secs(64));
        budget.spend(Duration::MAX);
        assert_eq!(budget.left(), Duration::ZERO);
    }

    #[test]
    fn only_a_client_that_receives_enough_bytes_keeps_its_connection() {
        for (bytes, has_budget) in [(REFILL_BYTES / 2, true), (REFILL_BYTES / 4, false)] {
            let mut budget = WriteBudget::new(Duration::from_secs(60));
            let steps = (0..1000).take_while(|_| {
                budget.spend(Duration::from_secs(29));
                // A spent budget ends the connection before the client receives more.
                let has_budget = !budget.left().is_zero();
                budget.refill(bytes);
                has_budget
            });
            assert_eq!(steps.count() == 1000, has_budget, "{bytes}");
        }
    }
}
