//! Groups of a journal that follow each other without damage.

/// Whole groups one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WholeRun {
    pub(crate) start: u64,
    /// Behind the last one.
    pub(crate) end: u64,
    pub(crate) groups: u64,
    /// The sequence numbers of the first and of the last one.
    pub(crate) seqnos: (u64, u64),
}

impl WholeRun {
    pub(super) fn at(start: u64) -> Self {
        Self { start, end: start, groups: 0, seqnos: (0, 0) }
    }

    /// One group longer.
    pub(super) fn with(self, end: u64, seqno: u64) -> Self {
        let first = if self.groups == 0 { seqno } else { self.seqnos.0 };
        Self { end, groups: self.groups + 1, seqnos: (first, seqno), ..self }
    }

    /// The sequence number and the end of its last group.
    pub(super) fn last(&self) -> Option<(u64, u64)> {
        (self.groups > 0).then_some((self.seqnos.1, self.end))
    }
}
