//! Bounds of time on the command line.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use prost_types::Timestamp;

use crate::args::duration;

const RULE: &str =
    "must be a time ago, such as 15m, 1h or 7d, or such as 2026-01-31 or 2026-01-31T08:00:00Z";

/// A time, or a time before the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeBound {
    /// So long ago.
    Ago(Duration),
    /// This time.
    At(DateTime<Utc>),
}

impl TimeBound {
    /// For a command that runs at `now`.
    pub(super) fn timestamp(self, now: DateTime<Utc>) -> Timestamp {
        let time = match self {
            Self::At(time) => time,
            Self::Ago(ago) => {
                let ago = chrono::Duration::from_std(ago).ok();
                ago.and_then(|ago| now.checked_sub_signed(ago)).unwrap_or(DateTime::UNIX_EPOCH)
            }
        };
        let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or_default();
        Timestamp { seconds: time.timestamp(), nanos }
    }
}

/// Reads a bound.
pub(super) fn bound(text: &str) -> Result<TimeBound, String> {
    let text = text.trim().trim_end_matches(" ago");
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(TimeBound::At(time.to_utc()));
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(TimeBound::At(day.and_time(chrono::NaiveTime::MIN).and_utc()));
    }
    duration(text).map(TimeBound::Ago).map_err(|_| RULE.to_owned())
}

/// The present time. Only where a bound of the command line or a time without a year needs it.
pub(super) fn now() -> DateTime<Utc> {
    Utc::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_relative_or_absolute() {
        let now = DateTime::from_timestamp(1_000_000, 5).unwrap();
        let seconds = |text: &str| bound(text).unwrap().timestamp(now).seconds;
        assert_eq!(seconds("1h"), 1_000_000 - 3600);
        assert_eq!(seconds("15m ago"), 1_000_000 - 900);
        assert_eq!(seconds("1970-01-02"), 86_400);
        assert_eq!(seconds("1970-01-01T02:00:00+01:00"), 3600);
        let at = bound("1970-01-01T00:00:00.000000007Z").unwrap().timestamp(now);
        assert_eq!(at, Timestamp { seconds: 0, nanos: 7 });
        // Before 1970.
        assert_eq!(seconds("36500d"), 1_000_000 - 36_500 * 86_400);
        for text in ["", "yesterday", "36501d", "1970-13-01", "-1h"] {
            assert_eq!(bound(text), Err(RULE.to_owned()), "{text}");
        }
    }
}
