//! The version that an engine gives to each change.

use crate::CommitError;
use trestle_model::time::Ticks;

/// The version of a change: a time by the engine's clock that is greater than that of every change before it.
///
/// Versions rise strictly from change to change, whatever the clock does, also across restarts. After a version the
/// engine leaves room for as many more as the change has writes, so a change that writes several entities can give
/// each one its own with [`Version::nth`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Ticks);

impl Version {
    /// A version from a point in time: for engines, and for tests of decisions.
    #[must_use]
    pub const fn new(ticks: Ticks) -> Self {
        Self(ticks)
    }

    /// The version as a point in time.
    #[must_use]
    pub const fn ticks(self) -> Ticks {
        self.0
    }

    /// The version of the entity at `index`, counted from 0, of those that the change writes. No other change gets
    /// it as long as `index` is not greater than the number of the change's writes.
    #[must_use]
    pub fn nth(self, index: usize) -> Self {
        Self(self.0.plus(u64::try_from(index).unwrap_or(u64::MAX)))
    }
}

/// Gives versions, in one sequence.
#[derive(Debug)]
pub struct Versions {
    /// The newest version that a change has, with the room after it.
    newest: Ticks,
}

impl Versions {
    /// Goes on after `newest`.
    #[must_use]
    pub fn after(newest: Ticks) -> Self {
        Self { newest }
    }

    /// The newest version that a change has, with the room after it.
    #[must_use]
    pub fn newest(&self) -> Ticks {
        self.newest
    }

    /// The version of the next change: the time, or one tick after the newest version where the clock is not
    /// beyond that.
    ///
    /// # Errors
    /// [`CommitError::Rejected`] at the end of the calendar.
    pub fn next(&mut self, now: Ticks) -> Result<Version, CommitError> {
        if self.newest == Ticks::MAX {
            let reason = "the clock reached the end of the year 9999".into();
            return Err(CommitError::Rejected { reason });
        }
        self.newest = now.max(self.newest.next());
        Ok(Version(self.newest))
    }

    /// Leaves room for the writes of the change that was given the newest version.
    pub fn leave_room(&mut self, writes: usize) {
        self.newest = self.newest.plus(u64::try_from(writes).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests;
