//! How much the next compaction of a keyspace writes, by the files of its levels.

/// Where the first level is split, files have one of so many parts of it.
const PIECES_OF_FIRST: u64 = 64;
/// Smallest of these files.
const PIECE_BYTES_MIN: u64 = 16 * 1024;

/// A file of a level.
pub(super) struct File<'a> {
    pub(super) first: &'a [u8],
    pub(super) last: &'a [u8],
    pub(super) bytes: u64,
}

/// Of the first level into the next one that has files, or of a file of a level that is too big into the level below.
pub(super) fn output_of(levels: &[Vec<File<'_>>], level_bytes_max: u64) -> u64 {
    let Some((newest, sorted)) = levels.split_first() else { return 0 };
    let first = sorted.iter().find(|level| !level.is_empty()).map_or(&[][..], Vec::as_slice);
    let is_only = sorted.iter().filter(|level| !level.is_empty()).count() == 1;
    // The database puts a level above one that is full.
    let into_first = match (first_key(newest), last_key(newest)) {
        _ if is_only && total(first) > level_bytes_max => total(newest),
        (Some(from), Some(to)) => total(newest).saturating_add(overlap(first, from, to)),
        // What is written next may overlap all of it.
        _ => total(first).min(level_bytes_max),
    };
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    let into_next = pairs
        .filter(|(level, _)| total(level) > level_bytes_max)
        .map(|(level, next)| cheapest(level, next));
    into_next.fold(into_first, u64::max)
}

/// Of the deepest level that has one below it, file by file; of the first level, into an empty one, where no other is
/// above the last.
pub(super) fn step_output_of(levels: &[Vec<File<'_>>]) -> u64 {
    let Some((newest, sorted)) = levels.split_first() else { return 0 };
    let mut pairs = sorted.iter().zip(sorted.iter().skip(1)).rev();
    match pairs.find(|(level, _)| !level.is_empty()) {
        Some((level, next)) => cheapest(level, next),
        None => total(newest),
    }
}

/// Size of the files that the next step writes while space is short. Where the first level is to be split, so small
/// that each file overlaps little of the level below.
pub(super) fn piece_bytes(levels: &[Vec<File<'_>>], most: u64) -> u64 {
    match levels.split_first() {
        Some((newest, [above @ .., _])) if above.iter().all(Vec::is_empty) => {
            (total(newest) / PIECES_OF_FIRST).clamp(PIECE_BYTES_MIN.min(most), most)
        }
        _ => most,
    }
}

/// The fewest bytes that merging a file of a level into the next one writes.
fn cheapest(level: &[File<'_>], next: &[File<'_>]) -> u64 {
    let with_next =
        level.iter().map(|file| file.bytes.saturating_add(overlap(next, file.first, file.last)));
    with_next.min().unwrap_or(0)
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

#[cfg(test)]
mod tests;
