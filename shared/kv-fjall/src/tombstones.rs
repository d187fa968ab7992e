//! How many entries a scan may have to pass that it does not return: marks of deletes, what they
//! delete, and overwritten versions.
//!
//! The database cannot be stopped between two rows, and passes about ten thousand such entries a
//! millisecond. The number decides where a scan may run. It is an upper estimate for the whole
//! database: counted as changes are written, lowered when memtables were flushed, and read from the
//! tables on disk once a tick.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use fjall::AbstractTree as _;

use super::shared::Tree;

/// Up to so many obsolete entries a scan holds its thread for a millisecond or two at worst.
const FEW: u64 = 20_000;

/// Counts obsolete entries.
#[derive(Debug, Default)]
pub(super) struct TombstoneEstimate {
    in_memory: AtomicU64,
    on_disk: AtomicU64,
    /// Held while a group is written: it is counted before the memtables have it, and a
    /// measurement in between would take it back.
    writing: Mutex<()>,
}

impl TombstoneEstimate {
    /// Of a database that was just opened: anything that the journal restored may be obsolete.
    pub(super) fn of(trees: &[Tree]) -> Self {
        let in_memory = entries_in_memory(trees).unwrap_or(u64::MAX / 2);
        let on_disk = marks_on_disk(trees).into();
        Self { in_memory: in_memory.into(), on_disk, writing: Mutex::default() }
    }

    /// Notes what a group obsoletes, ahead of its write. What is returned is to be kept until the
    /// group is written.
    pub(super) fn add(&self, entries: u64) -> MutexGuard<'_, ()> {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.in_memory.fetch_add(entries, Relaxed);
        writing
    }

    /// Measures anew.
    pub(super) fn measure(&self, trees: &[Tree]) {
        {
            let _no_group = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(entries) = entries_in_memory(trees) {
                self.in_memory.fetch_min(entries, Relaxed);
            }
        }
        self.on_disk.store(marks_on_disk(trees), Relaxed);
    }

    /// Whether any scan passes the obsolete entries quickly.
    pub(super) fn are_few(&self) -> bool {
        self.in_memory.load(Relaxed).saturating_add(self.on_disk.load(Relaxed)) <= FEW
    }
}

/// Entries of the memtables; none while some wait to be flushed, which cannot be looked into.
fn entries_in_memory(trees: &[Tree]) -> Option<u64> {
    trees.iter().try_fold(0_u64, |sum, tree| {
        let entries = u64::try_from(tree.handle.tree.active_memtable().len()).ok()?;
        (tree.handle.sealed_memtable_count() == 0).then(|| sum.saturating_add(entries))
    })
}

/// Marks of deletes in the tables on disk.
fn marks_on_disk(trees: &[Tree]) -> u64 {
    trees.iter().map(|tree| tree.handle.tree.tombstone_count()).sum()
}

#[cfg(test)]
mod tests;
