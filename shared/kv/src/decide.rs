//! Runs the decision of a change. Shared by the engines.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use crate::keyspace::Keyspaces;
use crate::limits::Limits;
use crate::time::Ticks;
use crate::version::Versions;
use crate::{Change, CommitError, Reads, Version, Writes};

/// What a decision returned, within the limits and the domains.
#[derive(Debug)]
pub(crate) struct DecidedChange {
    pub(crate) version: Version,
    pub(crate) writes: Writes,
}

/// What each change is checked against.
pub(crate) struct ChangeRules<'a> {
    pub(crate) keyspaces: &'a Keyspaces,
    pub(crate) limits: &'a Limits,
}

/// Runs the decision of a change on the newest values of its reads. A panic of the decision rejects the change and
/// harms no other change: the engine's state is not in its reach.
pub(crate) fn decide(
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
