//! How long deleted contents are kept for reads in progress.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::time::Ticks;

/// How long deleted contents are kept for reads in progress.
pub const READ_GRACE: Duration = Duration::from_secs(3600);
/// The same while disk space is short.
pub const READ_GRACE_SHORT: Duration = Duration::from_secs(60);
/// For so long after a shortage the short grace stays: longer than what was deleted during it is kept, with time for
/// the ticks that delete it.
const AFTER_SHORTAGE: Duration = Duration::from_secs(2 * 60);

/// Decides which of the two holds. All that is deleted to make room is freed soon, and not only the part that ends the
/// shortage.
#[derive(Debug, Default)]
pub struct ReadGrace {
    /// When space was short last.
    short_at: Mutex<Option<Ticks>>,
}

impl ReadGrace {
    /// The grace at a time, with whether space is short then.
    pub fn at(&self, now: Ticks, is_short: bool) -> Duration {
        let mut short_at = self.short_at.lock().unwrap_or_else(PoisonError::into_inner);
        if is_short {
            *short_at = Some(now);
        }
        match *short_at {
            Some(at) if now.since(at) <= AFTER_SHORTAGE => READ_GRACE_SHORT,
            _ => READ_GRACE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_is_short_during_a_shortage_and_until_what_was_deleted_in_it_is_freed() {
        let grace = ReadGrace::default();
        let start = Ticks::new(1_000_000).unwrap();
        let at = |seconds| start.after(Duration::from_secs(seconds));

        assert_eq!(grace.at(at(0), false), READ_GRACE);
        assert_eq!(grace.at(at(10), true), READ_GRACE_SHORT);
        assert_eq!(grace.at(at(40), true), READ_GRACE_SHORT);
        // Deleted at the last instant of the shortage, it is a minute old.
        assert_eq!(grace.at(at(40 + 61), false), READ_GRACE_SHORT);
        assert_eq!(grace.at(at(40 + 120), false), READ_GRACE_SHORT);
        assert_eq!(grace.at(at(40 + 121), false), READ_GRACE);
        assert_eq!(grace.at(at(400), true), READ_GRACE_SHORT);
    }
}
