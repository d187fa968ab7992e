//! What a repair changes in the rows of queues, where rows were lost.

use trestle_kv::Entry;

use crate::{backup, keys};

/// The row that gives the next queue this id or a later one. Messages of a queue whose record was lost are still there,
/// and must not be those of a new queue.
#[must_use]
pub fn raised(first: u64) -> Vec<Entry> {
    vec![Entry { key: keys::next_queue_id(), value: keys::encode_number(first) }]
}

/// The row as a repaired store has it: a head may be an earlier one than that which was lost, as that of a backup is.
/// One that cannot be read stays.
#[must_use]
pub fn repaired(row: Entry) -> Entry {
    backup::restored(row.clone()).unwrap_or(row)
}
