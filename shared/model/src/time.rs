//! Points in time, as steps of 100 ns since the year 1: what versions, timestamps and etags are made of. And the clocks
//! of the machine, which are passed in and read nowhere else.
//!
//! An engine derives its own time from them, of which versions are made too: see `service_clock` of the storage seam.
//! What people and other machines wrote down, such as the expiry of a token, is compared with the wall clock itself.

use std::sync::OnceLock;
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

impl From<Ticks> for prost_types::Timestamp {
    fn from(ticks: Ticks) -> Self {
        let (seconds, nanos) = ticks.to_unix();
        Self { seconds, nanos }
    }
}

/// The clocks of a machine.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock now. It may step, forward and back.
    fn now(&self) -> Ticks;

    /// The time since a fixed point of this boot, the time that the machine was suspended included. It never steps.
    fn elapsed(&self) -> Duration;

    /// Which boot of which machine [`Clock::elapsed`] counts from; `None` where the system has no name for it.
    fn boot_id(&self) -> Option<u128>;
}

/// The clocks of this machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> Ticks {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ticks = since.as_nanos() / 100 + u128::from(UNIX_SECONDS.unsigned_abs() * PER_SECOND);
        u64::try_from(ticks).ok().and_then(Ticks::new).unwrap_or(Ticks::MAX)
    }

    fn elapsed(&self) -> Duration {
        // Messages go on to expire while a laptop sleeps. On macOS the monotonic clock counts that too.
        #[cfg(target_os = "linux")]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = rustix::time::ClockId::Monotonic;
        Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
    }

    fn boot_id(&self) -> Option<u128> {
        static BOOT: OnceLock<Option<u128>> = OnceLock::new();
        *BOOT.get_or_init(|| {
            // A UUID; the file exists on Linux only.
            let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
            u128::from_str_radix(&id.trim().replace('-', ""), 16).ok()
        })
    }
}

/// The clocks of a machine that a test moves.
#[derive(Debug)]
pub struct ManualClock {
    wall: AtomicU64,
    elapsed: AtomicU64,
    boot: AtomicU64,
}

impl ManualClock {
    /// The wall clock shows `start`. The machine has just booted.
    #[must_use]
    pub fn new(start: Ticks) -> Self {
        let clock =
            Self { wall: AtomicU64::new(start.0), elapsed: AtomicU64::new(0), boot: 0.into() };
        clock.reboot();
        clock
    }

    /// Steps the wall clock to `now`, forward or back, while no time passes.
    pub fn set(&self, now: Ticks) {
        self.wall.store(now.0, Ordering::SeqCst);
    }

    /// Time passes.
    pub fn advance(&self, by: Duration) {
        let ticks = u64::try_from(by.as_nanos() / 100).unwrap_or(u64::MAX);
        self.elapsed.fetch_add(ticks, Ordering::SeqCst);
        self.wall.fetch_add(ticks, Ordering::SeqCst);
    }

    /// The machine boots anew; no time passes.
    pub fn reboot(&self) {
        static BOOTS: AtomicU64 = AtomicU64::new(0);
        self.boot.store(BOOTS.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        self.elapsed.store(0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Ticks {
        Ticks(self.wall.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        Ticks(self.elapsed.load(Ordering::SeqCst)).since(Ticks::MIN)
    }

    fn boot_id(&self) -> Option<u128> {
        Some(self.boot.load(Ordering::SeqCst).into())
    }
}

#[cfg(test)]
mod tests;
