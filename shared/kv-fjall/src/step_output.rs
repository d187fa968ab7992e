//! How much the next compaction of a keyspace writes, by the files of its levels.

/// With so many files the first level is compacted; the database's own.
const FILES_OF_FIRST: usize = 4;

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
    too_big(sorted, level_bytes_max).max(into_first)
}

/// Of a file of a level that is too big into the level below, the most of all levels.
fn too_big(sorted: &[Vec<File<'_>>], level_bytes_max: u64) -> u64 {
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    let full = pairs.filter(|(level, _)| total(level) > level_bytes_max);
    full.map(|(level, next)| cheapest(level, next)).fold(0, u64::max)
}

/// Of what the database compacts after its next flush, which it does only where the first level has enough files or
/// another one is too big.
pub(super) fn due_output_of(levels: &[Vec<File<'_>>], level_bytes_max: u64) -> u64 {
    match levels.split_first() {
        Some((newest, sorted)) if newest.len() + 1 < FILES_OF_FIRST => {
            too_big(sorted, level_bytes_max)
        }
        _ => output_of(levels, level_bytes_max),
    }
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
    level.iter().map(|file| merged(level, next, file)).min().unwrap_or(0)
}

/// Bytes that merging a file into the next level writes. The database takes so many files of that level that they span
/// the file, and merges with them all files of the level that they span.
fn merged(level: &[File<'_>], next: &[File<'_>], file: &File<'_>) -> u64 {
    let start = next.partition_point(|below| below.last < file.first);
    let end = next.partition_point(|below| below.first <= file.last);
    if start == end {
        return file.bytes;
    }
    let is_spanned_from =
        |index: usize| next.get(index).is_some_and(|below| below.first <= file.first);
    let start = if is_spanned_from(start) { start } else { start.saturating_sub(1) };
    let is_spanned_to = |end: usize| next.get(end - 1).is_some_and(|below| below.last >= file.last);
    let end = if is_spanned_to(end) { end } else { next.len().min(end + 1) };
    let window = next.get(start..end).unwrap_or_default();
    let (Some(from), Some(to)) = (first_key(window), last_key(window)) else { return file.bytes };
    let first = level.partition_point(|other| other.first < from);
    let spanned = level.iter().skip(first).take_while(|other| other.last <= to);
    total(window).saturating_add(spanned.map(|other| other.bytes).sum::<u64>().max(file.bytes))
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
