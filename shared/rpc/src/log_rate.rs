//! A bounded rate of lines in the log, for events that can be a flood.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time between two lines of a kind.
const EVERY: Duration = Duration::from_secs(10);

/// When the last line of each kind `K` was logged. Kinds are few: none is forgotten.
#[derive(Debug)]
pub struct LogRate<K = ()>(Mutex<HashMap<K, LastLine>>);

#[derive(Debug)]
struct LastLine {
    at: Instant,
    /// Events after it without a line.
    omitted: u64,
}

impl<K> Default for LogRate<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> LogRate<K> {
    /// Whether the next line of a kind may be logged; then the next ones may not for ten seconds. With the number of
    /// events since the last line that have none.
    pub fn may_log(&self, kind: K, now: Instant) -> Option<u64> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = lines.get_mut(&kind) else {
            lines.insert(kind, LastLine { at: now, omitted: 0 });
            return Some(0);
        };
        if now.duration_since(last.at) < EVERY {
            last.omitted += 1;
            return None;
        }
        last.at = now;
        Some(std::mem::take(&mut last.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_one_line_of_a_kind_in_ten_seconds_and_counts_the_rest() {
        let (rate, start) = (LogRate::default(), Instant::now());

        let logged =
            [0, 1, 9, 10, 11, 19, 20].map(|s| rate.may_log("a", start + Duration::from_secs(s)));

        assert_eq!(logged, [Some(0), None, None, Some(2), None, None, Some(2)]);
        assert_eq!(rate.may_log("b", start), Some(0));
    }
}
