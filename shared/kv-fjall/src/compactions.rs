//! What compactions of a keyspace need, and the ones that the engine runs on its own to give back space.
//!
//! The database compacts by size alone: the marks of deletes wait in the upper levels until more data comes, and
//! files that were replaced are kept until the next flush. So deleted space is not given back where nothing more
//! is written. What runs here takes the same locks as the compactions of the database and may run
//! beside them.

use std::sync::Arc;

use fjall::compaction::Leveled;
use fjall::{AbstractTree as _, SeqNo};

use super::shared::Tree;
use super::step_output::{File, due_output_of, output_of, piece_bytes, step_output_of};

/// Biggest size of a file that compaction writes; the database's own.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Smallest size of a file that compaction writes.
const FILE_BYTES_MIN: u64 = 8 * 1024 * 1024;

/// A file has at most one of so many parts of the reserve, so that a compaction of several files fits into it.
const FILES_OF_RESERVE: u64 = 8;

/// A level below the first that has more files' worth is compacted into the next one; the database's own.
const FILES_OF_LEVEL: u64 = 4;

/// While space is short, compactions write files of one of so many parts of the usual size: the next step down then
/// overlaps little.
const PIECES_OF_FILE: u64 = 8;

/// What a row takes in a file beside its key and value, at most, with its parts of the index and the filter.
const ROW_BYTES: usize = 32;

/// Size of the files that compactions write to a store that keeps so many bytes free.
pub(super) fn file_bytes(reserve_bytes: u64) -> u64 {
    match reserve_bytes / FILES_OF_RESERVE {
        0 => FILE_BYTES_MAX,
        bytes => bytes.clamp(FILE_BYTES_MIN, FILE_BYTES_MAX),
    }
}

/// The strategy of the compactions that the database runs on its own.
pub(super) fn strategy(file_bytes: u64) -> Leveled {
    Leveled::default().with_table_target_size(file_bytes)
}

/// What a keyspace has on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StoredRows {
    /// Which state this is of; another one has another.
    pub(super) version: u64,
    pub(super) bytes: u64,
    pub(super) entries: u64,
    /// Marks of deletes among the entries.
    pub(super) deletes: u64,
}

impl StoredRows {
    pub(super) fn of(tree: &Tree) -> Self {
        let version = tree.handle.tree.current_version();
        let stored = Self { version: version.id(), ..Self::default() };
        version.iter_tables().fold(stored, |stored, table| Self {
            bytes: stored.bytes.saturating_add(table.metadata.file_size),
            entries: stored.entries.saturating_add(table.metadata.item_count),
            deletes: stored.deletes.saturating_add(table.metadata.tombstone_count),
            ..stored
        })
    }

    /// About how many bytes the marks of deletes and what they delete take.
    pub(super) fn dead_bytes(&self) -> u64 {
        let average = self.bytes.checked_div(self.entries).unwrap_or(0);
        average.saturating_mul(self.deletes).saturating_mul(2).min(self.bytes)
    }
}

/// The most that the database writes in a compaction before what it read is removed, in bytes: in the next one, and in
/// the one that follows its next flush, if one is due then.
pub(super) fn outputs(tree: &Tree) -> (u64, u64) {
    let level_bytes_max = tree.file_bytes * FILES_OF_LEVEL;
    with_levels(tree, |levels| {
        (output_of(levels, level_bytes_max), due_output_of(levels, level_bytes_max))
    })
}

/// The most that the next step of [`push_down`] writes before what it read is removed, in bytes.
pub(super) fn next_step_output(tree: &Tree) -> u64 {
    with_levels(tree, step_output_of)
}

fn with_levels<T>(tree: &Tree, output: impl FnOnce(&[Vec<File<'_>>]) -> T) -> T {
    let version = tree.handle.tree.current_version();
    let levels: Vec<Vec<File<'_>>> = version
        .iter_levels()
        .map(|level| {
            let tables = level.iter().flat_map(|run| run.iter());
            let files = tables.map(|table| File {
                first: table.metadata.key_range.min(),
                last: table.metadata.key_range.max(),
                bytes: table.metadata.file_size,
            });
            files.collect()
        })
        .collect();
    output(&levels)
}

/// Compacts a whole keyspace into its last level. Flushes and other compactions of it wait meanwhile.
pub(super) fn compact_whole(tree: &Tree, watermark: SeqNo) -> Result<(), fjall::Error> {
    tree.handle.tree.major_compact(tree.file_bytes, watermark).map_err(fjall::Error::from)
}

/// One step that brings the marks of deletes nearer to what they delete: every level above the last counts as too
/// big, the deepest first. Returns whether there was something to do.
pub(super) fn push_down(
    tree: &Tree,
    watermark: SeqNo,
    is_short: bool,
) -> Result<bool, fjall::Error> {
    let before = tree.handle.tree.current_version().id();
    let bytes = match is_short {
        true => with_levels(tree, |levels| piece_bytes(levels, tree.file_bytes / PIECES_OF_FILE)),
        false => tree.file_bytes,
    };
    // With a threshold of none, a level may have no byte.
    let levels = strategy(bytes).with_l0_threshold(0).with_level_ratio_policy(vec![0.0]);
    tree.handle.tree.compact(Arc::new(levels), watermark)?;
    Ok(tree.handle.tree.current_version().id() != before)
}

/// Bytes of rows that are not deleted, uncompressed; some number above `most` if they are more.
pub(super) fn live_bytes(tree: &Tree, most: u64) -> Result<u64, fjall::Error> {
    let mut live = 0_u64;
    for row in tree.handle.iter() {
        let (key, value) = row.into_inner()?;
        let bytes = key.len() + value.len() + ROW_BYTES;
        live = live.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if live > most {
            break;
        }
    }
    Ok(live)
}

/// Whether there are files or memtables that were replaced, and kept for snapshots.
pub(super) fn has_replaced(tree: &Tree) -> bool {
    tree.handle.tree.version_free_list_len() > 0
}

/// Removes what was replaced and is needed by no snapshot from the watermark on.
pub(super) fn release_files(tree: &Tree, watermark: SeqNo) -> Result<(), fjall::Error> {
    let mut versions = tree.handle.tree.get_version_history_lock();
    versions.maintenance(tree.handle.path(), watermark).map_err(fjall::Error::from)
}

#[cfg(test)]
mod tests;
