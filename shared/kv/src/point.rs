//! Points in the path of a commit at which a test can step in.
//!
//! A hook is called a few times for each group, never for each change, so that where there is none it costs nothing
//! that can be measured.

use std::sync::Arc;

/// A point in the path of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommitPoint {
    /// A group was decided, and nothing of it was written. A failure counts as one of the journal.
    BeforeJournal,
    /// The group is in the journal, synced as configured, and can be read. A failure counts as one of the sync.
    AfterSync,
    /// The outcome of the group is known and no caller was answered. A failure loses the answers, and nothing else.
    BeforeAnswer,
    /// The journal is about to be flushed at its interval. A failure counts as one of the flush.
    BeforeFlush,
}

impl CommitPoint {
    /// Every point.
    pub const ALL: [Self; 4] =
        [Self::BeforeJournal, Self::AfterSync, Self::BeforeAnswer, Self::BeforeFlush];

    /// The name of the point.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeJournal => "before_journal",
            Self::AfterSync => "after_sync",
            Self::BeforeAnswer => "before_answer",
            Self::BeforeFlush => "before_flush",
        }
    }

    /// The point of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.name() == name)
    }
}

/// Called at each point, on the thread that is there. An error is a failure at the point, with its reason.
pub type PointHook = Arc<dyn Fn(CommitPoint) -> Result<(), Arc<str>> + Send + Sync>;
