//! Service time: the time of an engine, of which versions are made and by which messages become visible and expire.
//!
//! It is elapsed time. It follows the wall clock by slewing only: it runs at most a twentieth faster or slower than
//! time elapses, until the two agree. So a wall clock that steps makes no message visible and expires none, in
//! whichever direction and however far it steps, and an hour of error that remains is corrected after twenty.
//!
//! A twentieth is what consumers tolerate. A message that is invisible for 30 s is so for 28.5 s at least, and
//! consumers renew long before; a hundredth would make an hour last four days. The wall clock drifts by a few
//! millionths, so where nothing steps the two agree to the tick.
//!
//! # Restarts
//! The engine stores a `ClockCheckpoint` with its version floor: service time, elapsed time, and the boot.
//! - Same boot: service time continues by what elapsed since the checkpoint, however the wall clock was set, and
//!   slews from there. An error is smaller after the restart than before, never greater.
//! - Another boot, or another machine: how long the store was down is not known but by the wall clock. Service time
//!   is that of the wall clock, or that of the checkpoint if that is later, for it never goes back.
//!
//! The version floor bounds versions only: after a crash it is up to a second ahead of them, and of service time.
//!
//! What this cannot repair: a store that was *started* under a clock far in the future has versions from there, which
//! must not be given again. Service time then continues from them, and slews back. A clock that jumps there while the
//! store runs moves it by a twentieth of the time for which it is wrong.
//!
//! A machine that is suspended counts as running: the elapsed time includes it. One that was restored from a snapshot,
//! or paused from outside, does not notice the pause; the wall clock is then set forward, and service time slews.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use trestle_model::time::{Clock, Ticks};

/// The share of elapsed time by which service time runs faster or slower at most: one of so many.
const SLEW_SHARE: u64 = 20;

/// A first reading of both clocks within this time is exact enough: a millisecond.
const EXACT_WITHIN: u64 = 10_000;
/// How often they are read at the start for one that is.
const FIRST_READINGS: usize = 100;

/// A greater distance from the wall clock is logged, once: two seconds.
const FAR_MS: u64 = 2_000;
/// A distance up to this is near again.
const NEAR_MS: u64 = 1_000;

/// Ticks in a millisecond.
const PER_MS: i64 = 10_000;

/// Service time at an instant, stored so that a restart continues from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockCheckpoint {
    /// Service time.
    pub time: Ticks,
    /// [`Clock::elapsed`] at that time, in ticks.
    pub elapsed: u64,
    /// The boot that the elapsed time counts from.
    pub boot_id: u128,
}

/// What the clocks of the machine show at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClockReading {
    wall: Ticks,
    /// In ticks.
    elapsed: u64,
}

/// Service time as a function of readings, without a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ServiceTime {
    now: Ticks,
    /// The elapsed time of the last reading.
    elapsed: u64,
    /// Elapsed ticks of which no share was used to slew yet, fewer than [`SLEW_SHARE`].
    unused: u64,
    /// Service time minus the wall clock, in ticks.
    offset: i64,
}

/// How far service time is from the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distance {
    Near,
    Far,
}

/// The clock of an engine. It never goes back.
pub struct ServiceClock {
    clock: Arc<dyn Clock>,
    boot_id: Option<u128>,
    state: Mutex<(ServiceTime, Distance)>,
}

impl ServiceClock {
    /// Continues from a checkpoint; after the version floor, without one.
    pub fn after(floor: Ticks, checkpoint: Option<ClockCheckpoint>, clock: Arc<dyn Clock>) -> Self {
        let boot_id = clock.boot_id();
        let reading = first_reading(&*clock);
        let time = match checkpoint {
            Some(checkpoint) if Some(checkpoint.boot_id) == boot_id => {
                ServiceTime::resume(reading, checkpoint)
            }
            checkpoint => {
                ServiceTime::start(reading, checkpoint.map_or(floor, |checkpoint| checkpoint.time))
            }
        };
        Self { clock, boot_id, state: Mutex::new((time, Distance::Near)) }
    }

    /// Service time now.
    pub fn now(&self) -> Ticks {
        self.advance().now
    }

    /// How far service time is ahead of the wall clock, in milliseconds; negative where it is behind.
    pub fn offset_ms(&self) -> i64 {
        self.advance().offset / PER_MS
    }

    /// What to store; none where elapsed time means nothing to another process.
    pub fn checkpoint(&self) -> Option<ClockCheckpoint> {
        let ServiceTime { now, elapsed, .. } = self.advance();
        self.boot_id.map(|boot_id| ClockCheckpoint { time: now, elapsed, boot_id })
    }

    fn advance(&self) -> ServiceTime {
        let (time, change) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let (time, distance) = &mut *state;
            // Under the lock, so that readings have one order.
            time.advance(read(&*self.clock));
            if distance.after(time.offset) != *distance {
                // The thread may have been stopped between the readings of the two clocks.
                time.advance(read(&*self.clock));
            }
            let before = *distance;
            *distance = before.after(time.offset);
            (*time, (*distance != before).then_some(*distance))
        };
        let offset_ms = time.offset / PER_MS;
        match change {
            None => {}
            Some(Distance::Far) => tracing::warn!(
                offset_ms,
                "service time is away from the wall clock, which was set or is wrong; it follows \
                 at a twentieth of elapsed time"
            ),
            Some(Distance::Near) => {
                tracing::info!(offset_ms, "service time is near the wall clock again");
            }
        }
        time
    }
}

fn read(clock: &dyn Clock) -> ClockReading {
    ClockReading { wall: clock.now(), elapsed: ticks(clock.elapsed()) }
}

/// What both clocks show, the one as exactly at the time of the other as this machine allows. A thread that is stopped
/// between the two would begin with a service time that is behind by as long, and slew for twenty times that.
fn first_reading(clock: &dyn Clock) -> ClockReading {
    let mut first = (u64::MAX, ClockReading { wall: Ticks::MIN, elapsed: 0 });
    for _ in 0..FIRST_READINGS {
        let before = ticks(clock.elapsed());
        let reading = read(clock);
        let within = reading.elapsed.saturating_sub(before);
        if within < first.0 {
            first = (within, reading);
        }
        if within <= EXACT_WITHIN {
            break;
        }
    }
    first.1
}

fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX)
}

impl ServiceTime {
    /// Continues from a checkpoint of this boot by what elapsed since. Versions that were given after it, while service
    /// time slewed forward, may be later, by a twentieth of a second: then a message becomes visible later by as much.
    /// A start from the floor would be up to a second ahead, and deliver a message early.
    fn resume(reading: ClockReading, checkpoint: ClockCheckpoint) -> Self {
        let passed = reading.elapsed.saturating_sub(checkpoint.elapsed);
        Self::at(checkpoint.time.plus(passed), reading)
    }

    /// Starts in another boot: at the wall clock, but not before what was known.
    fn start(reading: ClockReading, earliest: Ticks) -> Self {
        Self::at(reading.wall.max(earliest), reading)
    }

    fn at(now: Ticks, reading: ClockReading) -> Self {
        let mut time = Self { now, elapsed: reading.elapsed, unused: 0, offset: 0 };
        time.advance(reading);
        time
    }

    fn advance(&mut self, reading: ClockReading) {
        let passed = reading.elapsed.saturating_sub(self.elapsed);
        self.elapsed += passed;
        let share = (passed + self.unused) / SLEW_SHARE;
        self.unused = (passed + self.unused) % SLEW_SHARE;
        let now = self.now.plus(passed);
        let slew = now.get().abs_diff(reading.wall.get()).min(share);
        self.now = match now > reading.wall {
            true => Ticks::new(now.get() - slew).unwrap_or(now),
            false => now.plus(slew),
        };
        // Times end in the year 9999, which is far below the greatest integer.
        self.offset = self.now.get().cast_signed() - reading.wall.get().cast_signed();
    }
}

impl Distance {
    fn after(self, offset: i64) -> Self {
        match offset.unsigned_abs() / PER_MS.unsigned_abs() {
            ..=NEAR_MS => Self::Near,
            ms if ms > FAR_MS => Self::Far,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests;
