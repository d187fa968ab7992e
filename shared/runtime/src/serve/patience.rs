//! How long a client may let wait what is there for it: a time that is used up while it does, and
//! comes back with the bytes that it takes. So a client that takes next to nothing now and then
//! does not go on for ever.

use std::time::Duration;

/// Bytes that bring back all of the time. A client has to take as many in each such time.
const BYTES: usize = 64 * 1024;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    whole: Duration,
    left: Duration,
}

impl Patience {
    /// Nothing was used up.
    pub(super) fn new(whole: Duration) -> Self {
        Self { whole, left: whole }
    }

    /// How long the client may let wait from now on.
    pub(super) fn left(&self) -> Duration {
        self.left
    }

    /// The client let wait for so long.
    pub(super) fn waited(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }

    /// The client took so many bytes.
    pub(super) fn took(&mut self, bytes: usize) {
        if self.left < self.whole {
            let share = bytes.min(BYTES) as f64 / BYTES as f64;
            self.left = self.whole.min(self.left + self.whole.mul_f64(share));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_used_up_by_waiting_and_comes_back_with_what_is_taken() {
        let mut patience = Patience::new(Duration::from_secs(64));

        patience.waited(Duration::from_secs(60));
        assert_eq!(patience.left(), Duration::from_secs(4));
        patience.took(BYTES / 64);
        assert_eq!(patience.left(), Duration::from_secs(5));
        patience.took(BYTES * 9);
        assert_eq!(patience.left(), Duration::from_secs(64));
        patience.waited(Duration::MAX);
        assert_eq!(patience.left(), Duration::ZERO);
    }

    #[test]
    fn a_client_that_takes_enough_in_time_goes_on_for_ever_and_one_that_takes_less_does_not() {
        for (bytes, goes_on) in [(BYTES / 2, true), (BYTES / 4, false)] {
            let mut patience = Patience::new(Duration::from_secs(60));
            let steps = (0..1000).take_while(|_| {
                patience.waited(Duration::from_secs(29));
                // With no time left it is over before the client takes more.
                let goes_on = !patience.left().is_zero();
                patience.took(bytes);
                goes_on
            });
            assert_eq!(steps.count() == 1000, goes_on, "{bytes}");
        }
    }
}
