//! What an engine that commits changes in groups reports of each group.

use std::{sync::Arc, time::Duration};

/// A group that was written and synced; the engine on files reports one that failed too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupWrite {
    /// Changes that wrote something in it.
    pub changes: u64,
    /// Time that writing and syncing it took.
    pub took: Duration,
}

/// Receives every group that was written. Called where other changes wait, so it must be quick.
pub type GroupObserver = Arc<dyn Fn(GroupWrite) + Send + Sync>;
