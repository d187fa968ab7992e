//! Bounds of time on the command line.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use prost_types::Timestamp;
use trestle_command::{errors::CliError, values::duration};

use crate::datetime;

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
    /// The same bound in the same words, however it was written.
    pub(super) fn text(self) -> String {
        match self {
            Self::Ago(ago) => format!("{}s ago", ago.as_secs_f64()),
            Self::At(time) => time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        }
    }

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

/// The times of a range that includes `since` and ends before `until`; each bound may be left out.
///
/// # Errors
/// A range without any time.
pub(super) fn range(
    since: Option<TimeBound>,
    until: Option<TimeBound>,
    now: DateTime<Utc>,
) -> Result<(Option<Timestamp>, Option<Timestamp>), CliError> {
    let time = |bound: Option<TimeBound>| bound.map(|bound| bound.timestamp(now));
    let (start, end) = (time(since), time(until));
    match (&start, &end) {
        (Some(start), Some(end)) if (start.seconds, start.nanos) >= (end.seconds, end.nanos) => {
            let shown = |time| datetime::format(time).unwrap_or_default();
            let (start, end) = (shown(start), shown(end));
            let rule = "--until: must be after --since";
            Err(CliError::Usage(format!("{rule}: since=`{start}` until=`{end}`")))
        }
        _ => Ok((start, end)),
    }
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

    #[test]
    fn a_range_ends_after_it_begins() {
        let now = DateTime::from_timestamp(1_000_000, 5).unwrap();
        let range = |since: &str, until: &str| {
            let bound = |text: &str| (!text.is_empty()).then(|| bound(text).unwrap());
            range(bound(since), bound(until), now)
        };
        let seconds = |time: Option<Timestamp>| time.map(|time| time.seconds);

        let (start, end) = range("2h", "1h").unwrap();
        assert_eq!((seconds(start), seconds(end)), (Some(992_800), Some(996_400)));
        for (since, until) in [("", ""), ("1h", ""), ("", "1h"), ("1970-01-02", "1h")] {
            assert!(range(since, until).is_ok(), "{since} {until}");
        }
        assert!(range("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000001Z").is_ok());
        for (since, until) in [("1h", "2h"), ("1h", "1h"), ("1970-01-03", "1970-01-02")] {
            assert!(matches!(range(since, until), Err(CliError::Usage(_))), "{since} {until}");
        }
        let reversed = range("1970-01-03", "1970-01-02").unwrap_err().to_string();
        let values = "since=`1970-01-03T00:00:00Z` until=`1970-01-02T00:00:00Z`";
        assert_eq!(reversed, format!("--until: must be after --since: {values}"));
    }
}
