//! The time by which records are refused and deleted: the service time of the engine, which never steps. The wall clock
//! is never read; the engine reports how far it is away.
//!
//! Sources write the times of their records by clocks of their own, mostly right ones, so service time may be the wrong
//! one: a store that was started under a wrong clock follows the right one for days. While the two clocks disagree, the
//! one that refuses and deletes less counts. A wall clock that steps can so delay a delete, and never cause one.

use std::time::Duration;

use trestle_kv::Engine;
use trestle_model::time::Ticks;

use crate::batch::RecordTimes;

/// A greater distance between service time and the wall clock is a disagreement, in which a record may be refused that
/// has the right time.
const DISAGREEMENT_MS: u64 = 60_000;

/// What the clocks showed at an instant, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Service time.
    pub(crate) service: u64,
    /// How far service time is ahead of the wall clock, in milliseconds.
    pub(crate) offset_ms: i64,
}

impl Clocks {
    /// What they show now.
    pub(crate) fn of(engine: &dyn Engine) -> Self {
        let offset_ms = engine.status().clock_offset_ms;
        Self { service: nanos(engine.now()), offset_ms }
    }

    fn wall(self) -> u64 {
        let distance = self.offset_ms.unsigned_abs().saturating_mul(1_000_000);
        match self.offset_ms > 0 {
            true => self.service.saturating_sub(distance),
            false => self.service.saturating_add(distance),
        }
    }

    /// Records of an earlier time are past a retention, whichever clock is right.
    pub(crate) fn kept_from(self, retention: Duration) -> u64 {
        let nanos = u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX);
        self.service.min(self.wall()).saturating_sub(nanos)
    }

    /// The times that records of a stream with a retention may have.
    pub(crate) fn record_times(self, retention: Option<Duration>) -> RecordTimes {
        let oldest = retention.map_or(0, |retention| self.kept_from(retention));
        RecordTimes { received: self.service, latest: self.service.max(self.wall()), oldest }
    }

    /// Whether they disagree so far that a record with a time out of range may be right.
    pub(crate) fn disagree(self) -> bool {
        self.offset_ms.unsigned_abs() > DISAGREEMENT_MS
    }
}

/// A time in nanoseconds since 1970.
fn nanos(at: Ticks) -> u64 {
    let (seconds, nanos) = at.to_unix();
    let seconds = u64::try_from(seconds).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(nanos).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    #[test]
    fn the_clock_that_refuses_and_deletes_less_counts() {
        let retention = Duration::from_secs(3_600);
        for (offset_ms, earliest, latest) in [
            (0, 10 * HOUR, 10 * HOUR),
            (3_600_000, 9 * HOUR, 10 * HOUR),
            (-3_600_000, 10 * HOUR, 11 * HOUR),
        ] {
            let clocks = Clocks { service: 10 * HOUR, offset_ms };
            assert_eq!(clocks.kept_from(retention), earliest - HOUR, "{offset_ms}");
            let times = clocks.record_times(Some(retention));
            let expected = RecordTimes { received: 10 * HOUR, latest, oldest: earliest - HOUR };
            assert_eq!(times, expected, "{offset_ms}");
            assert_eq!(clocks.record_times(None).oldest, 0);
        }
    }

    #[test]
    fn clocks_disagree_from_a_minute_on_in_either_direction() {
        for (offset_ms, disagree) in [(0, false), (60_000, false), (60_001, true), (-60_001, true)]
        {
            assert_eq!(Clocks { service: HOUR, offset_ms }.disagree(), disagree, "{offset_ms}");
        }
    }
}
