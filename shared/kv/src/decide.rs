//! Runs the decision of a change. Shared by the engines.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use crate::{Change, CommitError, Write, limits};

/// What the change wants to write, within the limits. A panic of the decision refuses the change
/// and harms nobody else: the engine's state is not in its reach.
pub(crate) fn decide(
    change: &mut Change,
    current: &[Option<Bytes>],
) -> Result<Vec<Write>, CommitError> {
    let decided = catch_unwind(AssertUnwindSafe(|| (change.decide)(current)));
    let Ok(writes) = decided else {
        return Err(CommitError::Refused { reason: "the decision of the change panicked".into() });
    };
    limits::check_writes(&writes)?;
    Ok(writes)
}
