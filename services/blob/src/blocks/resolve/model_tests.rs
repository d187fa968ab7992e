//! Tests of block lists against a model: any blocks in the content and in the staging, and any list of them.

use proptest::prelude::*;

use super::*;
use crate::record::ContentId;

const IDS: u8 = 5;

/// Blocks with ids, with contents from a number on.
fn blocks(ids: &[u8], first: u64) -> Vec<StoredBlock> {
    let part = |content| Part { content: ContentId(content), mark: 0, size: content + 1 };
    let block =
        |(id, content): (&u8, u64)| StoredBlock { id: vec![*id].into(), part: part(content) };
    ids.iter().zip(first..).map(block).collect()
}

/// Distinct ids.
fn staged_ids() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::subsequence((0..IDS).collect::<Vec<_>>(), 0..=usize::from(IDS))
}

/// One source for each id.
fn sources() -> impl Strategy<Value = Vec<BlockSource>> {
    use BlockSource::{Committed, Latest, Uncommitted};
    let source = prop::sample::select(vec![Committed, Uncommitted, Latest]);
    prop::collection::vec(source, usize::from(IDS))
}

/// The part that a choice names, by the first block with its id.
fn chosen(choice: &BlockChoice, committed: &[StoredBlock], staged: &[StoredBlock]) -> Option<Part> {
    let first = |blocks: &[StoredBlock]| {
        blocks.iter().find(|block| block.id == choice.id).map(|block| block.part)
    };
    match choice.source {
        BlockSource::Committed => first(committed),
        BlockSource::Uncommitted => first(staged),
        BlockSource::Latest => first(staged).or(first(committed)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_list_has_the_chosen_blocks_and_every_other_content_is_dropped_once(
        committed in prop::collection::vec(0..IDS, 0..6),
        staged in staged_ids(),
        sources in sources(),
        named in prop::collection::vec(0..IDS, 0..8),
    ) {
        let (committed, staged) = (blocks(&committed, 100), blocks(&staged, 200));
        let choices = named.iter().map(|id| BlockChoice {
            id: vec![*id].into(),
            source: sources[usize::from(*id)],
        });
        let choices: Vec<_> = choices.collect();
        let parts: Vec<_> = choices.iter().map(|it| chosen(it, &committed, &staged)).collect();
        let missing = parts.iter().position(Option::is_none);

        match (resolve(&choices, &committed, &staged), missing) {
            (Ok(resolved), None) => {
                let found: Vec<_> = resolved.blocks.iter().map(|it| Some(it.part)).collect();
                prop_assert_eq!(&found, &parts);
                let ids = resolved.blocks.iter().map(|block| &block.id);
                prop_assert!(ids.eq(choices.iter().map(|choice| &choice.id)));

                let all = committed.iter().chain(&staged).map(|block| block.part.content);
                let is_dropped =
                    |it: &ContentId| found.iter().flatten().all(|part| part.content != *it);
                let mut rest: Vec<_> = all.filter(is_dropped).collect();
                let mut dropped: Vec<_> = resolved.dropped.iter().map(|it| it.content).collect();
                rest.sort_unstable();
                dropped.sort_unstable();
                prop_assert_eq!(dropped, rest);
            }
            (Err(error), Some(index)) => {
                let fault = Fault::from(error);
                prop_assert_eq!(fault.reason, Reason::InvalidBlockList);
                prop_assert_eq!(&fault.violations[0].field, &format!("blocks[{index}].id"));
            }
            (resolved, missing) => prop_assert!(false, "{:?} {:?}", resolved, missing),
        }
    }
}
