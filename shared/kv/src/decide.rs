//! Runs the decision of a change: for engines.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use crate::keyspace::Keyspaces;
use crate::limits::Limits;
use crate::version::Versions;
use crate::{Change, CommitError, Reads, Version, Writes};
use trestle_model::time::Ticks;

/// What a decision returned, within the limits and the domains.
#[derive(Debug)]
pub struct DecidedChange {
    /// Its version.
    pub version: Version,
    /// Its writes, in order.
    pub writes: Writes,
}

/// What each change is checked against.
pub struct ChangeRules<'a> {
    /// Which keys there are.
    pub keyspaces: &'a Keyspaces,
    /// How big a change may be.
    pub limits: &'a Limits,
}

/// Runs the decision of a change on the newest values of its reads. A panic of the decision rejects the change and
/// harms no other change: the engine's state is not in its reach.
///
/// # Errors
/// [`CommitError::Rejected`].
pub fn decide(
    change: &mut Change,
    current: &[Option<Bytes>],
    rules: &ChangeRules<'_>,
    versions: &mut Versions,
    now: Ticks,
) -> Result<DecidedChange, CommitError> {
    let version = versions.next(now)?;
    let reads = Reads::new(&change.spec.reads, current);
    let decided = catch_unwind(AssertUnwindSafe(|| (change.decide)(&reads, version)));
    let Ok(writes) = decided else {
        return Err(CommitError::Rejected { reason: "the decision of the change panicked".into() });
    };
    rules.limits.check_writes(writes.as_slice())?;
    change.spec.check_writes(writes.as_slice(), rules.keyspaces)?;
    versions.leave_room(writes.len());
    Ok(DecidedChange { version, writes })
}
