//! A bounded rate of lines in the log, for events that can be a flood.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(10);

/// When the last line of a kind was logged.
#[derive(Debug, Default)]
pub(crate) struct LogRate(Mutex<Option<Instant>>);

impl LogRate {
    /// Whether the next line may be logged; then the next ones may not for ten seconds.
    pub(crate) fn may_log(&self, now: Instant) -> bool {
        let mut logged_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let may = logged_at.is_none_or(|logged_at| now.duration_since(logged_at) >= EVERY);
        if may {
            *logged_at = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_one_line_in_ten_seconds() {
        let (rate, start) = (LogRate::default(), Instant::now());

        let logged =
            [0, 1, 9, 10, 11, 19, 20].map(|s| rate.may_log(start + Duration::from_secs(s)));

        assert_eq!(logged, [true, false, false, true, false, false, true]);
    }
}
