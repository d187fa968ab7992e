//! The row of a chunk: the pages of 64 KiB that have data.
//!
//! ```text
//! CRC-64 of what follows, u64 | which pages have data, u128, bit by bit | the data of these pages
//! ```
//!
//! Numbers are little-endian.

#[cfg(test)]
mod model_tests;

use std::ops::Range;

use bytes::Bytes;

use super::PAGE_BYTES;
use crate::{checksum::Crc64, error::BlobError, extent::to_usize};

/// Pages of a chunk: one for each bit of a mask.
pub(super) const CHUNK_PAGES: u64 = 128;
/// Length of a chunk, in bytes.
pub(super) const CHUNK_BYTES: u64 = CHUNK_PAGES * PAGE_BYTES;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PageChunk {
    /// The pages that have data, by their bits.
    mask: u128,
    data: Bytes,
}

/// The bits of pages.
fn bits(pages: &Range<u64>) -> u128 {
    let upto = |page: u64| match page {
        CHUNK_PAGES.. => u128::MAX,
        _ => (1_u128 << page) - 1,
    };
    upto(pages.end) & !upto(pages.start)
}

impl PageChunk {
    /// From its row.
    ///
    /// # Errors
    /// [`BlobError::Corrupt`].
    pub(super) fn decode(row: &Bytes) -> Result<Self, BlobError> {
        let fields = || {
            let (checksum, rest) = row.split_first_chunk::<8>()?;
            let (mask, data) = rest.split_first_chunk::<16>()?;
            let mask = u128::from_le_bytes(*mask);
            let is_whole = data.len() as u64 == u64::from(mask.count_ones()) * PAGE_BYTES;
            let is_same = Crc64::of(rest) == u64::from_le_bytes(*checksum);
            (is_whole && is_same).then(|| Self { mask, data: row.slice(24..) })
        };
        fields().ok_or_else(|| BlobError::corrupt("pages differ from their checksum"))
    }

    /// Its row.
    pub(super) fn encode(&self) -> Bytes {
        let mut crc = Crc64::new();
        crc.update(&self.mask.to_le_bytes());
        crc.update(&self.data);
        let mut row = Vec::with_capacity(24 + self.data.len());
        row.extend_from_slice(&crc.value().to_le_bytes());
        row.extend_from_slice(&self.mask.to_le_bytes());
        row.extend_from_slice(&self.data);
        row.into()
    }

    /// Whether no page has data.
    pub(super) fn is_empty(&self) -> bool {
        self.mask == 0
    }

    /// Whether a page has data.
    pub(super) fn has(&self, page: u64) -> bool {
        page < CHUNK_PAGES && self.mask & (1 << page) != 0
    }

    /// The data of a page, if it has any.
    pub(super) fn page(&self, page: u64) -> Option<&[u8]> {
        if !self.has(page) {
            return None;
        }
        let before = u64::from((self.mask & bits(&(0..page))).count_ones());
        let start = usize::try_from(before * PAGE_BYTES).ok()?;
        self.data.get(start..start + usize::try_from(PAGE_BYTES).ok()?)
    }

    /// With data from a page on, as long as whole pages.
    pub(super) fn with(&self, first: u64, data: &Bytes) -> Self {
        let pages = first..first + data.len() as u64 / PAGE_BYTES;
        let written = bits(&pages);
        if written == u128::MAX {
            return Self { mask: written, data: data.clone() };
        }
        let mask = self.mask | written;
        let new = |page: u64| {
            let start = usize::try_from((page - first) * PAGE_BYTES).ok()?;
            data.get(start..start + usize::try_from(PAGE_BYTES).ok()?)
        };
        let page = |page: u64| if pages.contains(&page) { new(page) } else { self.page(page) };
        let data = (0..CHUNK_PAGES).filter_map(page).flatten().copied().collect::<Vec<_>>();
        Self { mask, data: data.into() }
    }

    /// Without the data of pages.
    pub(super) fn without(&self, pages: &Range<u64>) -> Self {
        let mask = self.mask & !bits(pages);
        let kept = (0..CHUNK_PAGES).filter(|page| !pages.contains(page));
        let data = kept.filter_map(|page| self.page(page)).flatten().copied().collect::<Vec<_>>();
        Self { mask, data: data.into() }
    }

    /// Copies a range of the bytes of the chunk, of which pages without data are zeros.
    pub(super) fn copy_to(&self, range: Range<u64>, target: &mut [u8]) {
        for page in range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES) {
            let Some(data) = self.page(page) else { continue };
            let start = page * PAGE_BYTES;
            let from = range.start.max(start);
            let inside =
                to_usize(from - start)..to_usize(range.end.min(start + PAGE_BYTES) - start);
            let at = to_usize(from - range.start);
            if let (Some(source), Some(target)) =
                (data.get(inside.clone()), target.get_mut(at..at + inside.len()))
            {
                target.copy_from_slice(source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(fill: u8) -> Vec<u8> {
        vec![fill; 512]
    }

    #[test]
    fn pages_are_written_over_each_other_and_cleared() {
        let chunk = PageChunk::default().with(3, &[page(1), page(2)].concat().into());
        let chunk = chunk.with(4, &[page(3), page(4)].concat().into());
        let chunk = chunk.with(127, &page(9).into());

        let found = |chunk: &PageChunk| (0..128).map(|at| chunk.page(at).map(|it| it[0])).collect();
        let some = |pages: Vec<Option<u8>>| -> Vec<(usize, u8)> {
            pages.into_iter().enumerate().filter_map(|(at, it)| Some((at, it?))).collect()
        };
        assert_eq!(some(found(&chunk)), [(3, 1), (4, 3), (5, 4), (127, 9)]);
        assert_eq!(some(found(&chunk.without(&(4..127)))), [(3, 1), (127, 9)]);
        assert!(chunk.without(&(0..128)).is_empty());
        assert_eq!(PageChunk::decode(&chunk.encode()).expect("a row"), chunk);
    }

    #[test]
    fn a_whole_chunk_is_its_data() {
        let data: Bytes = vec![7; 65_536].into();

        let chunk = PageChunk::default().with(0, &data);

        assert_eq!(chunk, PageChunk { mask: u128::MAX, data });
    }

    #[test]
    fn a_changed_row_is_corrupt() {
        let row = PageChunk::default().with(3, &page(1).into()).encode();
        for at in 0..row.len() {
            let mut changed = row.to_vec();
            changed[at] ^= 1;
            assert!(PageChunk::decode(&changed.into()).is_err(), "{at}");
        }
        assert!(PageChunk::decode(&row.slice(..row.len() - 1)).is_err());
    }

    #[test]
    fn any_range_of_bytes_is_copied() {
        let chunk = PageChunk::default().with(1, &[page(1), page(2)].concat().into());
        let mut whole = vec![0; 65_536];
        chunk.copy_to(0..65_536, &mut whole);

        assert_eq!(whole, [page(0), page(1), page(2), vec![0; 65_536 - 1536]].concat());
        for range in [0..1, 511..513, 600..1500, 1535..1600, 65_535..65_536] {
            let mut part = vec![0; usize::try_from(range.end - range.start).expect("small")];
            chunk.copy_to(range.clone(), &mut part);
            let at = |offset| usize::try_from(offset).expect("small");
            assert_eq!(part, whole[at(range.start)..at(range.end)], "{range:?}");
        }
    }
}
