//! What a source holds, before anything is copied.

use std::collections::HashMap;

use trestle_proto::{queue::v1 as queue, table::v1 as table};

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
    pub(super) policies: Vec<table::AccessPolicy>,
}

/// A queue of the source.
#[derive(Debug, Default, Clone)]
pub(super) struct PlannedQueue {
    pub(super) name: String,
    pub(super) metadata: HashMap<String, String>,
    pub(super) policies: Vec<queue::AccessPolicy>,
}

/// A stored access policy, as both services of a source write it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) id: String,
    pub(super) start: Option<prost_types::Timestamp>,
    pub(super) expiry: Option<prost_types::Timestamp>,
    pub(super) permissions: Option<String>,
}

impl Policy {
    /// As a policy of a table.
    pub(super) fn of_table(self) -> table::AccessPolicy {
        let Self { id, start: start_time, expiry: expiry_time, permissions } = self;
        table::AccessPolicy { id, start_time, expiry_time, permissions }
    }

    /// As a policy of a queue.
    pub(super) fn of_queue(self) -> queue::AccessPolicy {
        let Self { id, start: start_time, expiry: expiry_time, permissions } = self;
        queue::AccessPolicy { id, start_time, expiry_time, permissions }
    }
}
