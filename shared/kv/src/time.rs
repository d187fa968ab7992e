//! Time, as steps of 100 ns since the year 1: what versions, timestamps and etags are made of. Passed in, never read
//! elsewhere. An engine gives versions and time from one clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: steps of 100 ns since 0001-01-01T00:00:00Z, up to the end of the year 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(u64);

/// Ticks in a second.
const PER_SECOND: u64 = 10_000_000;
/// Seconds from the year 1 to 1970.
const UNIX_SECONDS: i64 = 62_135_596_800;

impl Ticks {
    /// The first tick of the year 1.
    pub const MIN: Self = Self(0);

    /// The last tick of the year 9999.
    pub const MAX: Self = Self(3_155_378_975_999_999_999);

    /// From a count of ticks; none past [`Ticks::MAX`].
    #[must_use]
    pub const fn new(ticks: u64) -> Option<Self> {
        if ticks <= Self::MAX.0 { Some(Self(ticks)) } else { None }
    }

    /// The count of ticks.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// So much later; the last tick of the year 9999 at most.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        self.plus(u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX))
    }

    /// So many ticks later; the last tick of the year 9999 at most.
    #[must_use]
    pub fn plus(self, ticks: u64) -> Self {
        Self(self.0.saturating_add(ticks).min(Self::MAX.0))
    }

    /// So much earlier; the first tick of the year 1 at least.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        let ticks = u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(ticks))
    }

    /// How long `earlier` was ago; nothing if it was not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let ticks = self.0.saturating_sub(earlier.0);
        Duration::new(ticks / PER_SECOND, u32::try_from(ticks % PER_SECOND).unwrap_or(0) * 100)
    }

    /// The next tick.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// From seconds since 1970 and nanoseconds; none outside the years 1 to 9999 or between two ticks.
    #[must_use]
    pub fn from_unix(seconds: i64, nanos: i32) -> Option<Self> {
        let nanos = u64::try_from(nanos).ok().filter(|n| *n < 1_000_000_000 && n % 100 == 0)?;
        let seconds = u64::try_from(seconds.checked_add(UNIX_SECONDS)?).ok()?;
        Self::new(seconds.checked_mul(PER_SECOND)?.checked_add(nanos / 100)?)
    }

    /// Whole seconds since 1970, and nanoseconds.
    #[must_use]
    pub fn to_unix(self) -> (i64, i32) {
        let seconds = i64::try_from(self.0 / PER_SECOND).unwrap_or(i64::MAX) - UNIX_SECONDS;
        (seconds, i32::try_from(self.0 % PER_SECOND * 100).unwrap_or_default())
    }
}

#[cfg(feature = "timestamp")]
impl From<Ticks> for prost_types::Timestamp {
    fn from(ticks: Ticks) -> Self {
        let (seconds, nanos) = ticks.to_unix();
        Self { seconds, nanos }
    }
}

/// A source of time.
pub trait Clock: Send + Sync + 'static {
    /// The time now. May step back; callers that need order keep it themselves.
    fn now(&self) -> Ticks;
}

/// The clock of the machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> Ticks {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ticks = since.as_nanos() / 100 + u128::from(UNIX_SECONDS.unsigned_abs() * PER_SECOND);
        u64::try_from(ticks).ok().and_then(Ticks::new).unwrap_or(Ticks::MAX)
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Stands at `start`.
    #[must_use]
    pub fn new(start: Ticks) -> Self {
        Self(AtomicU64::new(start.0))
    }

    /// Moves to `now`, forward or back.
    pub fn set(&self, now: Ticks) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    /// Moves forward.
    pub fn advance(&self, by: Duration) {
        let ticks = u64::try_from(by.as_nanos() / 100).unwrap_or(u64::MAX);
        self.0.fetch_add(ticks, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Ticks {
        Ticks(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_times_convert_both_ways_at_the_edges_of_the_calendar() {
        for (seconds, nanos) in [(-62_135_596_800, 0), (0, 100), (253_402_300_799, 999_999_900)] {
            let ticks = Ticks::from_unix(seconds, nanos).expect("in range");
            assert_eq!(ticks.to_unix(), (seconds, nanos));
        }
        assert_eq!(Ticks::from_unix(253_402_300_799, 999_999_900), Some(Ticks::MAX));
        assert_eq!(Ticks::from_unix(253_402_300_800, 0), None, "year 10000");
        assert_eq!(Ticks::from_unix(-62_135_596_801, 0), None, "year 0");
        assert_eq!(Ticks::from_unix(0, 50), None, "between two ticks");
        assert_eq!(Ticks::from_unix(0, -100), None, "negative nanoseconds");
    }
}
