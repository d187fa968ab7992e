//! Conditions on the sequence number of a page blob.

use super::PageError;

/// Conditions on the sequence number; absent ones require nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SequenceConditions {
    /// It is at most this.
    pub(crate) at_most: Option<u64>,
    /// It is less than this.
    pub(crate) less_than: Option<u64>,
    /// It is this.
    pub(crate) equal: Option<u64>,
}

impl SequenceConditions {
    /// Whether a sequence number fulfils every condition.
    ///
    /// # Errors
    /// [`PageError::Sequence`].
    pub(super) fn check(&self, current: u64) -> Result<(), PageError> {
        let is_met = self.at_most.is_none_or(|bound| current <= bound)
            && self.less_than.is_none_or(|bound| current < bound)
            && self.equal.is_none_or(|expected| current == expected);
        if is_met { Ok(()) } else { Err(PageError::Sequence(current)) }
    }
}
