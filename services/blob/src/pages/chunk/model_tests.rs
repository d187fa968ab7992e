//! Tests of a chunk of pages against a plain array: any sequence of writes and clears.

use proptest::prelude::*;

use super::*;

/// Pages from one on that are written with these bytes, or so many that are cleared.
#[derive(Debug, Clone)]
enum ChunkStep {
    Write(u64, Vec<u8>),
    Clear(Range<u64>),
}

fn step() -> impl Strategy<Value = ChunkStep> {
    let fills = prop::collection::vec(1_u8.., 1..9);
    let write =
        (0_u64..=CHUNK_PAGES - 8, fills).prop_map(|(at, fills)| ChunkStep::Write(at, fills));
    let clear = (0_u64..=CHUNK_PAGES, 0_u64..40)
        .prop_map(|(at, count)| ChunkStep::Clear(at..(at + count).min(CHUNK_PAGES)));
    prop_oneof![2 => write, 1 => clear]
}

/// The chunk and the byte of each of its pages after steps.
fn run(steps: &[ChunkStep]) -> (PageChunk, Vec<Option<u8>>) {
    let mut pages = vec![None; to_usize(CHUNK_PAGES)];
    let mut chunk = PageChunk::default();
    for step in steps {
        match step {
            ChunkStep::Write(at, fills) => {
                let data: Vec<u8> = fills.iter().flat_map(|fill| [*fill; 512]).collect();
                chunk = chunk.with(*at, &data.into());
                let target = pages.iter_mut().skip(to_usize(*at));
                target.zip(fills).for_each(|(page, fill)| *page = Some(*fill));
            }
            ChunkStep::Clear(cleared) => {
                chunk = chunk.without(cleared);
                pages[to_usize(cleared.start)..to_usize(cleared.end)].fill(None);
            }
        }
    }
    (chunk, pages)
}

/// Cases are large: fewer of them.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn any_steps_leave_the_pages_of_the_model(steps in prop::collection::vec(step(), 0..10)) {
        let (chunk, pages) = run(&steps);

        let found: Vec<_> = (0..CHUNK_PAGES).map(|at| chunk.page(at).map(<[u8]>::to_vec)).collect();
        let expected: Vec<_> = pages.iter().map(|it| it.map(|fill| vec![fill; 512])).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(chunk.is_empty(), pages.iter().all(Option::is_none));
        prop_assert!(!chunk.has(CHUNK_PAGES) && chunk.page(u64::MAX).is_none());
        prop_assert_eq!(PageChunk::decode(&chunk.encode()).ok(), Some(chunk));
    }

    #[test]
    fn a_row_takes_a_head_and_its_pages_with_data(steps in prop::collection::vec(step(), 0..10)) {
        let (chunk, pages) = run(&steps);
        let count = pages.iter().flatten().count();
        prop_assert_eq!(chunk.encode().len(), 24 + 512 * count);
    }

    #[test]
    fn any_range_of_bytes_is_that_of_the_model(
        steps in prop::collection::vec(step(), 1..6),
        (start, length) in (0_u64..CHUNK_BYTES, 0_u64..5000),
    ) {
        let (chunk, pages) = run(&steps);
        let whole: Vec<u8> = pages.iter().flat_map(|fill| [fill.unwrap_or(0); 512]).collect();
        let end = (start + length).min(CHUNK_BYTES);
        let mut part = vec![0; to_usize(end - start)];

        chunk.copy_to(start..end, &mut part);

        prop_assert_eq!(&part, &whole[to_usize(start)..to_usize(end)]);
    }

    #[test]
    fn any_bytes_are_a_row_or_corrupt_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        // A checksum of 64 bits is not met by chance.
        prop_assert!(PageChunk::decode(&bytes.into()).is_err());
    }
}
