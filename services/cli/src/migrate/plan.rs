//! What a source holds, before anything is copied.

use std::collections::HashMap;

use trestle_proto::service::v1::AccessPolicy;

use super::notes::Left;

/// What is to be copied, and what is known from the start to stay behind.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) tables: Vec<PlannedTable>,
    pub(super) queues: Vec<PlannedQueue>,
    pub(super) left: Vec<Left>,
}

/// A table of the source.
#[derive(Debug, Default, Clone)]
pub(super) struct PlannedTable {
    /// As the source spells it.
    pub(super) name: String,
    pub(super) policies: Vec<AccessPolicy>,
}

/// A queue of the source.
#[derive(Debug, Default, Clone)]
pub(super) struct PlannedQueue {
    pub(super) name: String,
    pub(super) metadata: HashMap<String, String>,
    pub(super) policies: Vec<AccessPolicy>,
}
