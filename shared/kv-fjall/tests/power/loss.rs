//! What a power cut takes of what was not synced, by a seed, and the directory that is left.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::Path,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    disk::{Content, Disk, EntryKind, NodeNumber},
    pages::{CachedFile, FilePages, PAGE, PageChange},
};

/// What becomes of the pages that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PageLoss {
    All,
    /// As when the process alone is killed.
    None,
    /// Written in order up to some page, of which a part.
    Tail,
    /// One page, whenever it was written, and no other.
    OnePage,
    /// Written in any order: some are there, some are not.
    Some,
    /// The same, and pages of which some sectors are there.
    Torn,
}

pub(crate) const PAGE_LOSSES: [PageLoss; 6] = [
    PageLoss::All,
    PageLoss::None,
    PageLoss::Tail,
    PageLoss::OnePage,
    PageLoss::Some,
    PageLoss::Torn,
];

/// What becomes of directory entries that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryLoss {
    /// They are durable in the order in which they were made, as with every file system that has a journal.
    InOrder,
    /// Each by itself, as POSIX allows.
    Any,
}

/// What a cut takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) pages: PageLoss,
    pub(crate) entries: EntryLoss,
    pub(crate) seed: u64,
}

impl Loss {
    /// The loss of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let pages = PAGE_LOSSES[random.random_range(0..PAGE_LOSSES.len())];
        let entries = if random.random_bool(0.5) { EntryLoss::InOrder } else { EntryLoss::Any };
        Self { pages, entries, seed: random.random() }
    }
}

/// Makes the directory that a disk holds after a cut; `root` must be empty.
pub(crate) fn write_image(disk: &Disk, loss: Loss, root: &Path) -> io::Result<()> {
    let mut random = StdRng::seed_from_u64(loss.seed);
    for (path, node) in entries_left(disk, loss.entries, &mut random) {
        let path = root.join(path);
        match &disk.nodes[node] {
            // What lies in a directory that was lost is lost with it.
            Content::Directory(_) => match fs::create_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
            Content::File(file) => match File::create_new(path) {
                Ok(target) => write_pages(&target, &pages_left(file, loss.pages, &mut random))?,
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Err(_) => {}
            },
        }
    }
    Ok(())
}

/// The directory tree that is left; a directory comes before what it holds.
fn entries_left(disk: &Disk, loss: EntryLoss, random: &mut StdRng) -> BTreeMap<String, NodeNumber> {
    let open = disk.entries.iter().filter(|change| !change.is_in_order).count();
    let mut kept_in_order = if open == 0 { 0 } else { random.random_range(0..=open) };
    let mut tree = BTreeMap::new();
    // A change of a name is there only if those before it are.
    let mut lost: Vec<&str> = Vec::new();
    for change in &disk.entries {
        let names = match &change.kind {
            EntryKind::Added { path, .. } | EntryKind::Removed { path } => [path, path],
            EntryKind::Renamed { from, to } => [from, to],
        };
        let is_kept = match loss {
            EntryLoss::InOrder if change.is_in_order => true,
            EntryLoss::InOrder => {
                let is_left = kept_in_order > 0;
                kept_in_order = kept_in_order.saturating_sub(1);
                is_left
            }
            EntryLoss::Any => {
                let is_possible = !names.iter().any(|name| lost.contains(&name.as_str()));
                change.is_synced || (is_possible && random.random_bool(0.5))
            }
        };
        if !is_kept {
            lost.extend(names.map(String::as_str));
            continue;
        }
        match &change.kind {
            EntryKind::Added { path, node } => _ = tree.insert(path.clone(), *node),
            EntryKind::Removed { path } => _ = tree.remove(path),
            EntryKind::Renamed { from, to } => {
                let node = tree.remove(from);
                tree.extend(node.map(|node| (to.clone(), node)));
            }
        }
    }
    tree
}

fn pages_left(file: &CachedFile, loss: PageLoss, random: &mut StdRng) -> FilePages {
    let mut left = file.durable.clone();
    let count = file.pending.len();
    if count == 0 || loss == PageLoss::All {
        return left;
    }
    let until = match loss {
        PageLoss::Tail => random.random_range(0..=count),
        _ => count,
    };
    let numbers: Vec<u64> = file.pending.iter().filter_map(number).collect();
    let hole = (!numbers.is_empty()).then(|| numbers[random.random_range(0..numbers.len())]);
    let lengths = file.pending.len() - numbers.len();
    let mut lengths_left = match loss {
        PageLoss::Some | PageLoss::Torn => random.random_range(0..=lengths),
        _ => lengths,
    };
    let share = [0.1, 0.5, 0.9][random.random_range(0..3_usize)];
    for (index, change) in file.pending.iter().enumerate() {
        match change {
            PageChange::Length(_) if index < until && lengths_left > 0 => {
                lengths_left -= 1;
                left.apply(change);
            }
            PageChange::Length(_) => {}
            PageChange::Page { number, content } => match loss {
                PageLoss::All => {}
                PageLoss::None => left.apply(change),
                PageLoss::Tail if index < until => left.apply(change),
                PageLoss::Tail if index == until => left.tear(*number, content, random),
                PageLoss::Tail => {}
                PageLoss::OnePage if Some(*number) == hole => {}
                PageLoss::OnePage => left.apply(change),
                PageLoss::Torn if random.random_bool(0.2) => left.tear(*number, content, random),
                PageLoss::Some | PageLoss::Torn => {
                    if random.random_bool(share) {
                        left.apply(change);
                    }
                }
            },
        }
    }
    left
}

fn number(change: &PageChange) -> Option<u64> {
    match change {
        PageChange::Page { number, .. } => Some(*number),
        PageChange::Length(_) => None,
    }
}

/// Writes runs of pages; the rest are holes.
fn write_pages(target: &File, file: &FilePages) -> io::Result<()> {
    target.set_len(file.length)?;
    let mut run: (u64, Vec<u8>) = (0, Vec::new());
    for (number, content) in &file.pages {
        if run.0 + (run.1.len() / PAGE) as u64 != *number {
            write_run(target, &run, file.length)?;
            run = (*number, Vec::new());
        }
        run.1.extend_from_slice(&content[..]);
    }
    write_run(target, &run, file.length)
}

fn write_run(target: &File, (first, bytes): &(u64, Vec<u8>), length: u64) -> io::Result<()> {
    let at = first * PAGE as u64;
    let inside = usize::try_from(length.saturating_sub(at)).unwrap_or(usize::MAX);
    target.write_all_at(&bytes[..bytes.len().min(inside)], at)
}
