//! Waiting for a condition.

use std::time::{Duration, Instant};

use crate::HANG;

/// How long a wait rests between two looks: a busy one takes the processor from what it waits for.
const REST: Duration = Duration::from_millis(2);

/// Whether a condition becomes true within the time limit.
#[allow(clippy::disallowed_methods, reason = "the thread of a test waits for other processes")]
pub fn becomes(mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + HANG;
    while Instant::now() < until {
        if is_so() {
            return true;
        }
        std::thread::sleep(REST);
    }
    false
}
