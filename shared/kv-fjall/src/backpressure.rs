//! Which keyspaces take no writes for the moment: those whose memtables take more than their part of the write
//! buffer, and those where flushes or compaction lag behind.
//!
//! The database itself sleeps inside a write, without bound, when a keyspace has 30 runs in level 0 or 4 sealed
//! memtables; the one commit thread must never get there, so the gate closes earlier.
//!
//! A keyspace may take up to twice what is left of the write buffer. So one that is flooded takes two thirds of it,
//! and there is always room for small writes elsewhere.

use std::sync::atomic::Ordering::Relaxed;

use fjall::AbstractTree as _;

use super::shared::{EngineState, Tree};

const L0_RUNS_MAX: usize = 24;
const SEALED_MEMTABLES_MAX: usize = 2;
/// Journals, with the one that is written. A journal of 64 MiB and more is kept until every keyspace has flushed what
/// it has in it: an idle one does so late, while a busy one goes on filling journals, which a start would have to read.
const JOURNALS_MAX: usize = 4;
/// How much of the rest of the write buffer a keyspace may take.
const PART_OF_REST: u64 = 2;

/// A set of keyspaces, by their index among the keyspaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct KeyspaceSet(u16);

impl KeyspaceSet {
    /// With the keyspace of an index.
    pub(super) fn with(self, index: usize) -> Self {
        Self(
            self.0
                | u32::try_from(index).ok().and_then(|index| 1_u16.checked_shl(index)).unwrap_or(0),
        )
    }

    /// Whether the sets have one in common.
    pub(super) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The keyspaces that take no writes now.
pub(super) fn pressed(shared: &EngineState) -> KeyspaceSet {
    let buffered: Vec<u64> = shared.trees.iter().map(buffered_bytes).collect();
    shared.buffered_bytes.store(buffered.iter().sum(), Relaxed);
    let over = over_part(&buffered, shared.write_buffer_bytes);
    let journals = shared.database.journal_count();
    let lagging = shared.trees.iter().enumerate().filter(|(_, Tree { handle, .. })| {
        lags(handle.tree.l0_run_count(), handle.sealed_memtable_count(), journals)
    });
    lagging.fold(over, |set, (index, _)| set.with(index))
}

/// Whether a keyspace takes no writes now.
pub(super) fn is_pressed(shared: &EngineState) -> bool {
    pressed(shared) != KeyspaceSet::default()
}

/// Bytes of the memtables of a keyspace, with those that are flushed and not released yet.
pub(super) fn buffered_bytes(tree: &Tree) -> u64 {
    tree.handle.tree.version_memtable_size_sum()
}

fn over_part(buffered: &[u64], limit: u64) -> KeyspaceSet {
    let rest = limit.saturating_sub(buffered.iter().sum());
    let is_over = |bytes: u64| bytes > rest.saturating_mul(PART_OF_REST);
    let indices = buffered.iter().enumerate().filter(|(_, bytes)| is_over(**bytes));
    indices.fold(KeyspaceSet::default(), |set, (index, _)| set.with(index))
}

/// Whether flushes or compactions of a keyspace lag behind, in a store that no engine has open.
pub(super) fn is_lagging(Tree { handle, .. }: &Tree) -> bool {
    lags(handle.tree.l0_run_count(), handle.sealed_memtable_count(), 1)
}

/// With too many journals a keyspace waits while a flush of its own is under way, which ends by itself.
fn lags(l0_runs: usize, sealed_memtables: usize, journals: usize) -> bool {
    let sealed_max = if journals > JOURNALS_MAX { 0 } else { SEALED_MEMTABLES_MAX };
    l0_runs > L0_RUNS_MAX || sealed_memtables > sealed_max
}

#[cfg(test)]
mod tests;
