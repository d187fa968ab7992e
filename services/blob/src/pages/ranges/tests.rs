//! Tests of ranges of pages against a model of single pages: data, changes, and where the next ranges begin.

use proptest::prelude::*;

use super::*;

/// Chunks of the model.
const CHUNKS: u64 = 3;
/// The epoch of the chunks before the snapshot, that of those after it, and the snapshot between them.
const EPOCHS: (u64, u64) = (10, 30);
const SNAPSHOT: u64 = 20;

/// Pages that are written with a byte, or cleared.
type PageWrite = (u64, u64, Option<u8>);

fn writes() -> impl Strategy<Value = Vec<PageWrite>> {
    let page = prop_oneof![0_u64..8, 120_u64..136, 250_u64..264, Just(383)];
    let write = (page, 1_u64..12, prop::option::weighted(0.7, 0_u8..3));
    prop::collection::vec(write, 0..8)
}

/// The byte of each page after writes.
fn apply(mut pages: Vec<Option<u8>>, writes: &[PageWrite]) -> Vec<Option<u8>> {
    for (first, count, fill) in writes {
        let pages = pages.iter_mut().zip(0_u64..);
        let inside = pages.filter(|(_, at)| (*first..first + count).contains(at));
        inside.for_each(|(page, _)| *page = *fill);
    }
    pages
}

fn chunk(pages: &[Option<u8>]) -> PageChunk {
    let runs = pages.iter().zip(0_u64..).collect::<Vec<_>>();
    let runs = runs.chunk_by(|(one, _), (other, _)| one.is_some() == other.is_some());
    let with_data = runs.filter(|run| run[0].0.is_some());
    with_data.fold(PageChunk::default(), |chunk, run| {
        let data = run.iter().filter_map(|(fill, _)| **fill).flat_map(|fill| [fill; 512]);
        chunk.with(run[0].1, &data.collect::<Vec<_>>().into())
    })
}

/// The rows of each chunk: those before the snapshot, and those that changed after it.
fn stored(before: &[Option<u8>], after: &[Option<u8>]) -> Vec<Vec<StoredChunk>> {
    let size = usize::try_from(CHUNK_PAGES).expect("small");
    let mut chunks = Vec::new();
    for ((before, after), index) in before.chunks(size).zip(after.chunks(size)).zip(0..) {
        let row = |epoch, pages| StoredChunk { index, epoch, chunk: chunk(pages) };
        let mut epochs = Vec::new();
        if before.iter().any(Option::is_some) {
            epochs.push(row(EPOCHS.0, before));
        }
        if before != after {
            epochs.push(row(EPOCHS.1, after));
        }
        chunks.push(epochs);
    }
    chunks
}

fn list(
    chunks: &[Vec<StoredChunk>],
    view: ChunkView,
    request: &PageRangesRequest,
) -> PageRangeList {
    let mut list = PageRangeList::default();
    let _ = chunks.iter().all(|epochs| list.add_chunk(epochs, view, request));
    list
}

/// All ranges by the model: maximal runs of pages that are the same.
fn expected(now: &[Option<u8>], since: Option<&[Option<u8>]>, bytes: (u64, u64)) -> Vec<PageRange> {
    let mut ranges: Vec<PageRange> = Vec::new();
    for (index, now) in now.iter().enumerate() {
        let start = index as u64 * PAGE_BYTES;
        let earlier = since.map(|pages| pages[index]);
        let is_listed = earlier.map_or(now.is_some(), |earlier| *now != earlier);
        if !is_listed || start < bytes.0 || start >= bytes.1 {
            continue;
        }
        let is_cleared = now.is_none();
        match ranges.last_mut() {
            Some(last) if last.bytes.end == start && last.is_cleared == is_cleared => {
                last.bytes.end += PAGE_BYTES;
            }
            _ => ranges.push(PageRange { bytes: start..start + PAGE_BYTES, is_cleared }),
        }
    }
    ranges
}

fn view(before_epoch: Option<u64>) -> ChunkView {
    ChunkView { generation: 1, before_epoch }
}

/// Cases are large: fewer of them.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn ranges_are_those_of_the_model_and_the_next_ones_follow(
        (first, second) in (writes(), writes()),
        compares: bool,
        (start, length) in (0_u64..384, 0_u64..384),
        ranges_max in 1_usize..5,
    ) {
        let empty = vec![None; usize::try_from(CHUNKS * CHUNK_PAGES).expect("small")];
        let before = apply(empty, &first);
        let after = apply(before.clone(), &second);
        let bytes = (start * PAGE_BYTES, (start + length) * PAGE_BYTES);
        let since = compares.then(|| Ticks::new(SNAPSHOT).expect("in range"));
        let earlier = compares.then_some(before.as_slice());
        let expected = expected(&after, earlier, bytes);

        let chunks = stored(&before, &after);
        let mut request = PageRangesRequest { since, bytes, ranges_max };
        let mut found = Vec::new();
        loop {
            let page = list(&chunks, view(None), &request);
            prop_assert!(page.ranges.len() <= ranges_max);
            found.extend(page.ranges);
            let Some(next) = page.next else { break };
            prop_assert!(next > request.bytes.0 && next < bytes.1, "it goes on: {}", next);
            prop_assert_eq!(found.len() % ranges_max, 0, "a page before the last one is full");
            request.bytes.0 = next;
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_snapshot_has_the_pages_before_it((first, second) in (writes(), writes())) {
        let empty = vec![None; usize::try_from(CHUNKS * CHUNK_PAGES).expect("small")];
        let before = apply(empty, &first);
        let after = apply(before.clone(), &second);
        let bytes = (0, CHUNKS * CHUNK_BYTES);
        let request = PageRangesRequest { since: None, bytes, ranges_max: usize::MAX };

        let found = list(&stored(&before, &after), view(Some(SNAPSHOT)), &request);

        prop_assert_eq!(found.ranges, expected(&before, None, bytes));
        prop_assert_eq!(found.next, None);
    }
}

#[test]
fn a_page_that_was_written_again_with_the_same_bytes_is_no_change() {
    let row = |epoch, fill: &[u8]| {
        let data: Vec<u8> = fill.iter().flat_map(|fill| [*fill; 512]).collect();
        StoredChunk { index: 0, epoch, chunk: PageChunk::default().with(0, &data.into()) }
    };
    let chunks = [vec![row(EPOCHS.0, &[1, 2, 3]), row(EPOCHS.1, &[1, 9, 3])]];
    let since = Ticks::new(SNAPSHOT);
    let request = PageRangesRequest { since, bytes: (0, CHUNK_BYTES), ranges_max: 9 };

    let found = list(&chunks, view(None), &request);

    let changed = PageRange { bytes: 512..1024, is_cleared: false };
    assert_eq!(found, PageRangeList { ranges: vec![changed], next: None });
}
