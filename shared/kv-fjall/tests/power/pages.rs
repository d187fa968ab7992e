//! The content of one file, in memory and on disk, page by page.
//!
//! A write changes the page cache. A sync that succeeds makes durable what was written before it began. After one that
//! failed the kernel marks the pages clean, though it is unknown which of them reached the disk: later syncs do not
//! write them, and only a new write of such a page does.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use rand::{RngExt as _, rngs::StdRng};

pub(crate) const PAGE: usize = 4096;
/// What a disk writes as a whole.
const SECTOR: usize = 512;

/// Pages that are not zero, and the length of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FilePages {
    pub(crate) pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
    pub(crate) length: u64,
}

/// A change of a file that is not durable yet.
#[derive(Debug, Clone)]
pub(crate) enum PageChange {
    /// The whole page as it is from now on.
    Page {
        number: u64,
        content: Arc<[u8; PAGE]>,
    },
    Length(u64),
}

impl FilePages {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut pages = Self::default();
        for change in pages.write(0, bytes) {
            pages.apply(&change);
        }
        pages
    }

    fn page(&self, number: u64) -> [u8; PAGE] {
        self.pages.get(&number).map_or([0; PAGE], |page| **page)
    }

    /// The changes that a write makes, in order.
    fn write(&self, at: u64, bytes: &[u8]) -> Vec<PageChange> {
        let (mut changes, mut left, mut position) = (Vec::new(), bytes, at);
        while !left.is_empty() {
            let (number, offset) = (position / PAGE as u64, (position % PAGE as u64) as usize);
            let (piece, behind) = left.split_at(left.len().min(PAGE - offset));
            let mut content = self.page(number);
            content[offset..offset + piece.len()].copy_from_slice(piece);
            changes.push(PageChange::Page { number, content: Arc::new(content) });
            (left, position) = (behind, position + piece.len() as u64);
        }
        if position > self.length {
            changes.push(PageChange::Length(position));
        }
        changes
    }

    pub(crate) fn apply(&mut self, change: &PageChange) {
        match change {
            PageChange::Page { number, content } => {
                self.pages.insert(*number, Arc::clone(content));
            }
            PageChange::Length(length) => {
                if *length < self.length {
                    self.pages.split_off(&length.div_ceil(PAGE as u64));
                    let (number, offset) = (length / PAGE as u64, (length % PAGE as u64) as usize);
                    if offset > 0 && self.pages.contains_key(&number) {
                        let mut content = self.page(number);
                        content[offset..].fill(0);
                        self.pages.insert(number, Arc::new(content));
                    }
                }
                self.length = *length;
            }
        }
    }

    /// Whether a reader sees no difference: a page that is missing is zeros.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        let numbers = self.pages.keys().chain(other.pages.keys());
        self.length == other.length
            && numbers.into_iter().all(|number| self.page(*number) == other.page(*number))
    }

    /// A page of which only the first sectors were written.
    pub(crate) fn tear(&mut self, number: u64, content: &[u8; PAGE], random: &mut StdRng) {
        let sectors = random.random_range(1..PAGE / SECTOR);
        let mut torn = self.page(number);
        torn[..sectors * SECTOR].copy_from_slice(&content[..sectors * SECTOR]);
        self.pages.insert(number, Arc::new(torn));
    }
}

/// A file: as it is in memory, as it is on disk, and what is between.
#[derive(Debug, Default)]
pub(crate) struct CachedFile {
    cached: FilePages,
    pub(crate) durable: FilePages,
    pub(crate) pending: VecDeque<PageChange>,
    /// How many changes are not pending any more.
    done: u64,
    /// Of each sync that began and did not end: how many changes there were.
    syncs: VecDeque<u64>,
}

impl CachedFile {
    /// A file that was on disk before the trace.
    pub(crate) fn existing(bytes: &[u8]) -> Self {
        let pages = FilePages::of(bytes);
        Self { cached: pages.clone(), durable: pages, ..Self::default() }
    }

    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) {
        for change in self.cached.write(at, bytes) {
            self.change(change);
        }
    }

    pub(crate) fn truncate(&mut self, length: u64) {
        self.change(PageChange::Length(length));
    }

    fn change(&mut self, change: PageChange) {
        self.cached.apply(&change);
        self.pending.push_back(change);
    }

    pub(crate) fn begin_sync(&mut self) {
        self.syncs.push_back(self.done + self.pending.len() as u64);
    }

    /// The changes from before the sync began are durable now, or whatever became of them if it failed.
    pub(crate) fn end_sync(&mut self, failed: Option<&mut StdRng>) {
        let until = self.syncs.pop_front().expect("a sync that ends has begun");
        let count = until.saturating_sub(self.done) as usize;
        self.done += count as u64;
        let changes = self.pending.drain(..count);
        let Some(random) = failed else {
            changes.for_each(|change| self.durable.apply(&change));
            return;
        };
        // Mostly nothing: the disk was cut off.
        let reach = if random.random_bool(0.7) { 0.0 } else { 0.5 };
        for change in changes {
            if matches!(change, PageChange::Length(_)) || random.random_bool(reach) {
                self.durable.apply(&change);
            }
        }
    }

    /// Syncs of a process that ended have no end.
    pub(crate) fn forget_syncs(&mut self) {
        self.syncs.clear();
    }

    /// The content in memory: what a process reads.
    pub(crate) fn cached(&self) -> &FilePages {
        &self.cached
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    /// A file of three pages of `a`, synced.
    fn synced() -> CachedFile {
        let mut file = CachedFile::default();
        file.write(0, &[b'a'; 3 * PAGE]);
        file.begin_sync();
        file.end_sync(None);
        file
    }

    #[test]
    fn a_sync_makes_durable_what_was_written_before_it_began() {
        let mut file = synced();
        file.write(10, b"before");
        file.begin_sync();
        file.write(PAGE as u64, b"after");
        file.end_sync(None);

        assert_eq!(&file.durable.page(0)[..20], b"aaaaaaaaaabeforeaaaa");
        assert_eq!(file.durable.page(1), [b'a'; PAGE]);
        assert_eq!(&file.cached().page(1)[..5], b"after");
    }

    #[test]
    fn a_page_whose_sync_failed_becomes_durable_only_when_it_is_written_again() {
        // A seed with which nothing reaches the disk.
        let mut random = StdRng::seed_from_u64(1);
        let mut file = synced();
        file.write(0, b"one");
        file.write(PAGE as u64, b"two");
        file.begin_sync();
        file.end_sync(Some(&mut random));
        file.write(PAGE as u64 + 3, b"three");
        file.begin_sync();
        file.end_sync(None);

        assert_eq!(file.durable.page(0), [b'a'; PAGE]);
        assert_eq!(&file.cached().page(0)[..3], b"one");
        assert_eq!(&file.durable.page(1)[..8], b"twothree");
    }

    #[test]
    fn what_was_cut_off_reads_as_zeros_when_the_file_grows() {
        let mut file = synced();
        file.truncate(PAGE as u64 + 1);
        file.write(2 * PAGE as u64, b"b");

        assert_eq!(file.cached().length, 2 * PAGE as u64 + 1);
        assert_eq!(file.cached().page(1)[..2], [b'a', 0]);
        assert_eq!(file.cached().page(2)[..2], [b'b', 0]);
    }
}
