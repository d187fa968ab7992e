//! Named points in the path of a commit at which a test delays, fails or ends the process.
//!
//! An effect is armed for the n-th time that a point is reached, or drawn by a seed: the same seed gives the same
//! effect at the same point and count, whatever the order in which points are reached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::point::PointHook;

pub use crate::point::CommitPoint;

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// It takes longer.
    Delay(Duration),
    /// It fails there.
    Fail,
    /// The process ends there, as by SIGKILL.
    Abort,
}

/// How often each effect is drawn, from 0.0, never, to 1.0, always. At most one happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EffectRates {
    /// A delay of up to `delay_max`.
    pub delay: f64,
    /// Longest delay. Delays are spread evenly.
    pub delay_max: Duration,
    /// A failure.
    pub fail: f64,
    /// An end of the process.
    pub abort: f64,
}

/// What is armed, and how often each point was reached.
#[derive(Debug, Default)]
pub struct PressurePoints {
    seeded: Option<(u64, EffectRates)>,
    state: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    reached: HashMap<CommitPoint, u64>,
    armed: HashMap<(CommitPoint, u64), Effect>,
}

impl PressurePoints {
    /// Nothing is armed.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Effects are drawn at every point.
    #[must_use]
    pub fn seeded(seed: u64, rates: EffectRates) -> Arc<Self> {
        Arc::new(Self { seeded: Some((seed, rates)), ..Self::default() })
    }

    /// Arms an effect for the `count`-th time that a point is reached, counted from 1.
    pub fn arm(&self, point: CommitPoint, count: u64, effect: Effect) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.armed.insert((point, count), effect);
    }

    /// How often a point was reached.
    #[must_use]
    pub fn reached(&self, point: CommitPoint) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reached.get(&point).copied().unwrap_or(0)
    }

    /// Counts that a point is reached; what is to happen there.
    pub fn next(&self, point: CommitPoint) -> Option<Effect> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = state.reached.entry(point).or_default();
        *reached += 1;
        let count = *reached;
        let armed = state.armed.remove(&(point, count));
        armed.or_else(|| self.seeded.and_then(|(seed, rates)| rates.draw(seed, point, count)))
    }

    /// The hook for an engine: see [`PointHook`].
    #[must_use]
    pub fn hook(self: &Arc<Self>) -> PointHook {
        let points = Arc::clone(self);
        Arc::new(move |point| match points.next(point) {
            None => Ok(()),
            Some(Effect::Delay(time)) => {
                sleep(time);
                Ok(())
            }
            Some(Effect::Fail) => Err(failed(point)),
            Some(Effect::Abort) => std::process::abort(),
        })
    }
}

impl EffectRates {
    fn draw(&self, seed: u64, point: CommitPoint, count: u64) -> Option<Effect> {
        let nonce = (point as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ count;
        let mut random = StdRng::seed_from_u64(seed.wrapping_mul(0xD1B5_4A32_D192_ED03) ^ nonce);
        let drawn = random.random::<f64>();
        if drawn < self.delay {
            return Some(Effect::Delay(self.delay_max.mul_f64(random.random::<f64>())));
        }
        if drawn < self.delay + self.fail {
            return Some(Effect::Fail);
        }
        (drawn < self.delay + self.fail + self.abort).then_some(Effect::Abort)
    }
}

/// Why it failed at a point.
pub(crate) fn failed(point: CommitPoint) -> Arc<str> {
    format!("failed on purpose: point=`{}`", point.name()).into()
}

#[expect(clippy::disallowed_methods, reason = "the threads of an engine are not async workers")]
fn sleep(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests;
