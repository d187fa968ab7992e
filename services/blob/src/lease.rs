//! Leases of blobs and containers: a state machine of pure functions. Times are those of the store, which never step.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod write_tests;

use std::time::Duration;

use trestle_model::time::Ticks;
use uuid::Uuid;

/// A lease as it is stored; its state follows from the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ResourceLease {
    /// There is none.
    #[default]
    Absent,
    /// It was acquired.
    Held {
        /// Its id.
        id: Uuid,
        /// Its duration and its end; none where it has no expiry.
        term: Option<LeaseTerm>,
    },
    /// It was broken, and is active until this time.
    Breaking {
        /// Its id.
        id: Uuid,
        /// The end of its break period.
        until: Ticks,
    },
}

/// How long a lease is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseTerm {
    /// From each renewal on.
    pub(crate) duration: Duration,
    /// The end, exclusive.
    pub(crate) until: Ticks,
}

/// The state of a lease at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// There is no lease.
    Available,
    /// The lease is active.
    Leased,
    /// Its duration has ended.
    Expired,
    /// It was broken, and is active until its break period ends.
    Breaking,
    /// It was broken.
    Broken,
}

/// What a call does with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseAction {
    /// Acquires it; none: it has no expiry.
    Acquire {
        /// How long.
        duration: Option<Duration>,
        /// The id that the client proposes.
        proposed: Option<Uuid>,
        /// The id otherwise.
        generated: Uuid,
    },
    /// Renews it.
    Renew(Uuid),
    /// Gives it another id.
    Change {
        /// The id so far.
        id: Uuid,
        /// The new id.
        proposed: Uuid,
    },
    /// Releases it.
    Release(Uuid),
    /// Breaks it, after a break period if there is one.
    Break(Option<Duration>),
}

impl LeaseAction {
    /// Whether it breaks the lease.
    pub(crate) fn is_break(self) -> bool {
        matches!(self, Self::Break(_))
    }
}

/// The result of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseResult {
    /// The client holds the lease with this id.
    Held(Uuid),
    /// The lease was released.
    Released,
    /// The lease is active for so long.
    Broken(Duration),
}

/// Why a lease does not permit an action or a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LeaseError {
    /// Another lease is active.
    #[error("there is already a lease present")]
    AlreadyPresent,
    /// The action states another id than the lease has, or there is no lease to renew or release.
    #[error("the lease id specified did not match the lease id")]
    ActionMismatch,
    /// There is no active lease to change or break.
    #[error("there is currently no lease")]
    ActionNotPresent,
    /// The break period has not ended.
    #[error("there is already a breaking lease, and it cannot be acquired until it is broken")]
    BreakingNotAcquired,
    /// A lease that is being broken keeps its id.
    #[error("the lease id matched, but the lease is currently in breaking state")]
    BreakingNotChanged,
    /// A broken lease cannot be renewed.
    #[error("the lease has been broken explicitly and cannot be renewed")]
    BrokenNotRenewed,
    /// The call states no id, and a lease is active.
    #[error("there is currently a lease, and no lease id was specified in the request")]
    IdMissing,
    /// The call states another id than the lease has.
    #[error("the lease id specified did not match the lease id of the resource")]
    Mismatch,
    /// The call states an id, and there is no lease.
    #[error("there is currently no lease on the resource")]
    NotPresent,
    /// The lease of the call has ended.
    #[error("a lease id was specified, but the lease has expired or was broken")]
    Lost,
}

impl ResourceLease {
    /// The state.
    pub(crate) fn state(&self, now: Ticks) -> LeaseState {
        match self {
            Self::Absent => LeaseState::Available,
            Self::Held { term: Some(term), .. } if now >= term.until => LeaseState::Expired,
            Self::Held { .. } => LeaseState::Leased,
            Self::Breaking { until, .. } if now >= *until => LeaseState::Broken,
            Self::Breaking { .. } => LeaseState::Breaking,
        }
    }

    /// Whether it has no expiry.
    pub(crate) fn is_infinite(&self) -> bool {
        matches!(self, Self::Held { term: None, .. })
    }

    fn id(&self) -> Option<Uuid> {
        match self {
            Self::Absent => None,
            Self::Held { id, .. } | Self::Breaking { id, .. } => Some(*id),
        }
    }

    /// The lease after an action, and its result.
    ///
    /// # Errors
    /// Those of each state and action.
    pub(crate) fn apply(
        &self,
        action: LeaseAction,
        now: Ticks,
    ) -> Result<(Self, LeaseResult), LeaseError> {
        match action {
            LeaseAction::Acquire { duration, proposed, generated } => {
                self.check_acquire(proposed, now)?;
                Ok(hold(proposed.unwrap_or(generated), duration, now))
            }
            LeaseAction::Renew(id) => self.renew(id, now),
            LeaseAction::Change { id, proposed } => self.change(id, proposed, now),
            LeaseAction::Release(id) if self.id() == Some(id) => {
                Ok((Self::Absent, LeaseResult::Released))
            }
            LeaseAction::Release(_) => Err(LeaseError::ActionMismatch),
            LeaseAction::Break(period) => self.break_after(period, now),
        }
    }

    fn check_acquire(&self, proposed: Option<Uuid>, now: Ticks) -> Result<(), LeaseError> {
        let is_own = proposed.is_some() && proposed == self.id();
        match (self.state(now), is_own) {
            (LeaseState::Leased, false) | (LeaseState::Breaking, false) => {
                Err(LeaseError::AlreadyPresent)
            }
            (LeaseState::Breaking, true) => Err(LeaseError::BreakingNotAcquired),
            _ => Ok(()),
        }
    }

    fn renew(&self, id: Uuid, now: Ticks) -> Result<(Self, LeaseResult), LeaseError> {
        match self {
            Self::Held { id: held, term } if *held == id => {
                Ok(hold(id, term.map(|term| term.duration), now))
            }
            Self::Breaking { id: held, .. } if *held == id => Err(LeaseError::BrokenNotRenewed),
            _ => Err(LeaseError::ActionMismatch),
        }
    }

    fn change(
        &self,
        id: Uuid,
        proposed: Uuid,
        now: Ticks,
    ) -> Result<(Self, LeaseResult), LeaseError> {
        match (self.state(now), *self) {
            (LeaseState::Leased, Self::Held { id: held, term })
                if held == id || held == proposed =>
            {
                Ok((Self::Held { id: proposed, term }, LeaseResult::Held(proposed)))
            }
            (LeaseState::Breaking, _) if self.id() == Some(id) => {
                Err(LeaseError::BreakingNotChanged)
            }
            (LeaseState::Leased | LeaseState::Breaking, _) => Err(LeaseError::ActionMismatch),
            _ => Err(LeaseError::ActionNotPresent),
        }
    }

    fn break_after(
        &self,
        period: Option<Duration>,
        now: Ticks,
    ) -> Result<(Self, LeaseResult), LeaseError> {
        let (id, remaining) = match *self {
            Self::Absent => return Err(LeaseError::ActionNotPresent),
            Self::Held { id, term } => (id, term.map(|term| term.until.since(now))),
            Self::Breaking { id, until } => (id, Some(until.since(now))),
        };
        let active = match (period, remaining) {
            (Some(period), Some(remaining)) => period.min(remaining),
            // An infinite lease has nothing that remains.
            (period, remaining) => period.or(remaining).unwrap_or_default(),
        };
        Ok((Self::Breaking { id, until: now.after(active) }, LeaseResult::Broken(active)))
    }

    /// Whether a write with this lease id is permitted, and the lease after it.
    ///
    /// # Errors
    /// Those of each state.
    pub(crate) fn check_write(&self, id: Option<Uuid>, now: Ticks) -> Result<Self, LeaseError> {
        match (id, self.state(now)) {
            (Some(_), _) => self.check_read(id, now).map(|()| *self),
            (None, LeaseState::Leased | LeaseState::Breaking) => Err(LeaseError::IdMissing),
            // The write ends what is left of the lease: it cannot be renewed.
            (None, _) => Ok(Self::Absent),
        }
    }

    /// Whether a read with this lease id is permitted.
    ///
    /// # Errors
    /// Those of each state.
    pub(crate) fn check_read(&self, id: Option<Uuid>, now: Ticks) -> Result<(), LeaseError> {
        let Some(id) = id else { return Ok(()) };
        match self.id() {
            None => Err(LeaseError::NotPresent),
            Some(held) if held != id => Err(LeaseError::Mismatch),
            Some(_) => match self.state(now) {
                LeaseState::Leased | LeaseState::Breaking => Ok(()),
                _ => Err(LeaseError::Lost),
            },
        }
    }
}

/// A lease that is held from now on.
fn hold(id: Uuid, duration: Option<Duration>, now: Ticks) -> (ResourceLease, LeaseResult) {
    let term = duration.map(|duration| LeaseTerm { duration, until: now.after(duration) });
    (ResourceLease::Held { id, term }, LeaseResult::Held(id))
}
