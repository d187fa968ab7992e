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

/// Size of a file that compaction writes; the database's own.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// A level below the first that has more is compacted into the next one; the database's own.
const LEVEL_BYTES_MIN: u64 = 4 * FILE_BYTES;

/// A file of a level.
struct File<'a> {
    first: &'a [u8],
    last: &'a [u8],
    bytes: u64,
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

/// The most that the next compaction by the database writes before what it read is removed, in bytes.
pub(super) fn next_output(tree: &Tree) -> u64 {
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
    output_of(&levels)
}

fn output_of(levels: &[Vec<File<'_>>]) -> u64 {
    let Some((newest, sorted)) = levels.split_first() else { return 0 };
    let first = sorted.iter().find(|level| !level.is_empty()).map_or(&[][..], Vec::as_slice);
    let into_first = match (first_key(newest), last_key(newest)) {
        (Some(from), Some(to)) => total(newest).saturating_add(overlap(first, from, to)),
        _ => 0,
    };
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    let into_next =
        pairs.filter(|(level, _)| total(level) > LEVEL_BYTES_MIN).map(|(level, next)| {
            let with_next = level
                .iter()
                .map(|file| file.bytes.saturating_add(overlap(next, file.first, file.last)));
            with_next.min().unwrap_or(0)
        });
    into_next.fold(into_first, u64::max)
}

fn total(files: &[File<'_>]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

fn first_key<'a>(files: &[File<'a>]) -> Option<&'a [u8]> {
    files.iter().map(|file| file.first).min()
}

fn last_key<'a>(files: &[File<'a>]) -> Option<&'a [u8]> {
    files.iter().map(|file| file.last).max()
}

/// Bytes of the files of a sorted level that have keys from `from` to `to`.
fn overlap(level: &[File<'_>], from: &[u8], to: &[u8]) -> u64 {
    let start = level.partition_point(|file| file.last < from);
    let files = level.iter().skip(start);
    files.take_while(|file| file.first <= to).map(|file| file.bytes).sum()
}

/// Compacts a whole keyspace into its last level. Flushes and other compactions of it wait meanwhile.
pub(super) fn compact_whole(tree: &Tree, watermark: SeqNo) -> Result<(), fjall::Error> {
    tree.handle.tree.major_compact(FILE_BYTES, watermark).map_err(fjall::Error::from)
}

/// One step that brings the marks of deletes nearer to what they delete: every level above the last counts as too
/// big. Returns whether there was something to do.
pub(super) fn push_down(tree: &Tree, watermark: SeqNo) -> Result<bool, fjall::Error> {
    let before = tree.handle.tree.current_version().id();
    let levels = Leveled::default().with_l0_threshold(1).with_level_ratio_policy(vec![0.0]);
    tree.handle.tree.compact(Arc::new(levels), watermark)?;
    Ok(tree.handle.tree.current_version().id() != before)
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
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn file<'a>(first: &'a str, last: &'a str, mebibytes: u64) -> File<'a> {
        File { first: first.as_bytes(), last: last.as_bytes(), bytes: mebibytes * MIB }
    }

    fn output(levels: &[Vec<File<'_>>]) -> u64 {
        output_of(levels) / MIB
    }

    #[test]
    fn a_compaction_of_the_first_level_writes_it_and_what_it_overlaps() {
        let below = || vec![file("a", "c", 64), file("d", "f", 64), file("g", "i", 64)];

        assert_eq!(output(&[vec![], below()]), 0);
        assert_eq!(output(&[vec![file("a", "b", 16)], vec![], vec![]]), 16);
        assert_eq!(output(&[vec![file("x", "z", 16)], vec![], below()]), 16);
        let spread = vec![file("e", "f", 16), file("b", "d", 16)];
        assert_eq!(output(&[spread, vec![], below()]), 2 * 16 + 2 * 64);
    }

    #[test]
    fn a_level_that_is_too_big_moves_the_file_that_costs_least() {
        let level = || {
            let letters = ["a", "b", "c", "d", "e"];
            letters.iter().map(|letter| file(letter, letter, 64)).collect::<Vec<_>>()
        };
        let next = || vec![file("a", "b", 64), file("c", "c", 32), file("d", "e", 64)];

        assert_eq!(output(&[vec![], level(), next()]), 64 + 32);
        let small = level().into_iter().take(4).collect();
        assert_eq!(output(&[vec![], small, next()]), 0, "it is not too big");
    }

    #[test]
    fn dead_bytes_are_the_marks_and_as_many_entries() {
        let stored = StoredRows { version: 1, bytes: 1_000, entries: 10, deletes: 3 };

        assert_eq!(stored.dead_bytes(), 600);
        assert_eq!(StoredRows { deletes: 9, ..stored }.dead_bytes(), 1_000);
        assert_eq!(StoredRows::default().dead_bytes(), 0);
    }
}
